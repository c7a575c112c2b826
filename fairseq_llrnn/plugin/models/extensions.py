"""What systems and other packages add to our models and tasks: options, and what these make of a model, or of data.

    @dataclass
    @takes(HEAD)                        the options of a model of ours: also those that extensions have for this place
                                        (of a task of ours: its name, "llrnn_translation")
    class TheirConfig(FairseqDataclass): …

    EXTENSIONS.append(TheirExtension())        in a light plugin/__init__.py of a system, or in a module that another
                                               package announces as an entry point of `plugins` (registry.py)

Plugins are imported before any model or task, so that all options are known; what is heavy, an extension imports when
one of its options asks for it.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, field, fields
from typing import Any, ClassVar, TypeAlias, TypeVar

from fairseq.data import Dictionary, FairseqDataset
from fairseq.dataclass import FairseqDataclass
from torch import nn

from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.head.inputs import InputOf
from fairseq_llrnn.networks.recurrent import RecurrentNetwork

Args: TypeAlias = Namespace | FairseqDataclass
Config = TypeVar("Config", bound=type)

# Places, whose models take the same options.
HEAD, INPUT, SOURCE, RECURRENT, ATTENTIVE = "head", "input", "source", "recurrent", "attentive"


class TaskExtension:
    """What an extension does in a task; here it does nothing.

    Attributes:
        of_log_linear: the option that a log-linear model alone can follow; "": any can.
    """

    of_log_linear: ClassVar[str] = ""

    def changed_data(
        self, data: FairseqDataset, training: bool, first: Callable[[], FairseqDataset]
    ) -> FairseqDataset:
        """A data set as the model is to see it. first: that of the first folder, as it was read."""
        return data

    def encoder(self, tokenizer: Any) -> Any:
        """A tokeniser, or an encoder of pieces, changed as the model's lines need it; None where a run has none."""
        return tokenizer


class Extension:
    """An idea that models can have. Each method answers "nothing" unless it is overridden.

    Attributes:
        options: by place, a dataclass of options; with their defaults, as in older checkpoints, nothing happens.
        recorded: by task, those of its options that every command needs as training had them.
        modules: by the names that its modules have in a head, what messages expect where a checkpoint has them, and the
            model does not: "--option: expected this option".
    """

    options: ClassVar[Mapping[str, type[FairseqDataclass]]] = {}
    recorded: ClassVar[Mapping[str, Sequence[str]]] = {}
    modules: ClassVar[Mapping[str, str]] = {}

    def head_arguments(self, args: Args, task: Any, beside: int | None = None) -> dict[str, Any]:
        """Arguments of LogLinearHead beside those that the model gives: `normaliser`, `classes`, `class_weights`, …

        Args:
            task: with its `prior`. beside: the width of the context and state that the model can hand over beside the
                hidden states (`Batch.spelling`), where a source of classes asks for them (`reads_beside`); None: none.

        Raises:
            OptionError: options out of range, or that exclude each other.
        """
        return {}

    def embedding(self, args: Args, features: InputOf | None, size: int | None) -> InputOf | None:
        """What a head reads words with in the place of `features`; None: it leaves them.

        Args:
            features: None: a table with a row per word, beside the head. size: the width that it must have; None: any.

        Raises:
            OptionError: as `head_arguments`.
        """
        return None

    def source_embedding(self, args: Args, task: Any, size: int) -> nn.Module | None:
        """What an encoder reads words with, in the place of a table or beside features of a source prior; None: none.

        Args:
            task: with its dictionaries, and `source_words`. size: the width of the vectors.

        Raises:
            OptionError: as `head_arguments`.
        """
        return None

    def set_up_network(self, args: Args, network: RecurrentNetwork, dictionary: Dictionary) -> None:
        """Change a recurrent network that was made by --cell, or let it have more `terms` or another `call_layer`.

        Args:
            dictionary: of the words that it reads.

        Raises:
            OptionError: as `head_arguments`.
        """

    def before_batch(self, head: LogLinearHead, model: Any, optimizer: Any) -> None:
        """Do what is due before a batch of training.

        Args:
            model: as fairseq has wrapped it; optimizer: as well.

        Raises:
            OptionError: training cannot go on with this optimiser.
        """

    def task_extension(self, task: Any, from_checkpoint: bool) -> TaskExtension | None:
        """What it does in a task for which it has options; None: nothing.

        Args:
            task: with its `options`, prior and dictionaries. from_checkpoint: whether the options come from one.

        Raises:
            OptionError: options out of range, or that exclude each other.
        """
        return None


EXTENSIONS: list[Extension] = []


def takes(*places: str) -> Callable[[Config], Config]:
    """A decorator, below @dataclass, that adds the options of all extensions for these places to a class of options."""

    def extend(config: Config) -> Config:
        declared = dict(vars(config).get("__annotations__", {}))
        for option in options_of(*places):
            declared[option.name] = option.type
            setattr(config, option.name, field(default=option.default, metadata=option.metadata))
        config.__annotations__ = declared
        return config

    return extend


def options_of(*places: str) -> list[Field[Any]]:
    """The options that extensions have for these places, each once."""
    kinds = [extension.options[place] for extension in EXTENSIONS for place in places if place in extension.options]
    return list({option.name: option for kind in kinds for option in declared_options(kind)}.values())


def declared_options(kind: type[FairseqDataclass]) -> list[Field[Any]]:
    """The options of a dataclass without fairseq's own field."""
    return [option for option in fields(kind) if not option.name.startswith("_")]


def non_default_options(args: Args, kind: type[FairseqDataclass]) -> dict[str, Any]:
    """The options of a dataclass, by name, whose values are not their defaults; older checkpoints lack some."""
    options = {option.name: option.default for option in declared_options(kind)}
    values = {name: getattr(args, name, default) for name, default in options.items()}
    return {name: value for name, value in values.items() if value != options[name]}


def check_sizes(args: Args, *names: str) -> None:
    """Raise OptionError for a size below 1."""
    for name in names:
        check_least(f"--{name.replace('_', '-')}", getattr(args, name), 1)


def check_dropouts(args: Args, *names: str) -> None:
    """Raise OptionError for what is no probability below 1."""
    for name in names:
        probability = getattr(args, name, None)  # fairseq leaves out some that are not given
        if probability is not None and not 0.0 <= probability < 1.0:
            raise OptionError(f"--{name.replace('_', '-')} {probability}: expected a probability from 0 to below 1")


def all_head_arguments(args: Args, task: Any, beside: int | None = None) -> dict[str, Any]:
    """Arguments of a LogLinearHead, of all extensions; beside: as of `Extension.head_arguments`."""
    arguments: dict[str, Any] = {}
    for extension in EXTENSIONS:
        more = extension.head_arguments(args, task, beside)
        classes = [*arguments.pop("classes", ()), *more.pop("classes", ())]
        check_single_maker(arguments, more)
        arguments |= {**more, "classes": classes} if classes else more
    return arguments


def check_single_maker(arguments: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    """Raise OptionError where two options make the same part of a head."""
    if clash := sorted(arguments.keys() & more.keys()):
        raise OptionError(
            f"expected options of which one makes the {clash[0]} of a model, found several that do; leave one out"
        )


def input_of(args: Args, features: InputOf | None, size: int | None = None) -> InputOf | None:
    """What a head reads words with; features, size: as of `Extension.embedding`."""
    for extension in EXTENSIONS:
        features = extension.embedding(args, features, size) or features
    return features
