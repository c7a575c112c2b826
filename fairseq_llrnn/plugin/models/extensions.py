"""Extensions: options that systems and other packages add to our models and tasks, and what they build from them.

    @dataclass
    @takes(HEAD)                        options of one of our models: adds those that extensions have for this place
                                        (for a task: its name, "llrnn_translation")
    class TheirConfig(FairseqDataclass): …

    EXTENSIONS.append(TheirExtension())        in the plugin/__init__.py of a system, which imports little, or in a
                                               module that a package announces as an entry point of `plugins`
                                               (registry.py)

Plugins are imported before any model or task, so that all options are known. An extension imports slow modules only if
one of its options is set.
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

# groups of models with the same options
HEAD, INPUT, SOURCE, RECURRENT = "head", "input", "source", "recurrent"


class TaskExtension:
    """The effects of an extension on a task. By default it has none.

    Attributes:
        of_log_linear: an option that needs a log-linear model ("": any model).
    """

    of_log_linear: ClassVar[str] = ""

    def changed_data(self, data: FairseqDataset, training: bool, first: Callable[[], FairseqDataset]) -> FairseqDataset:
        """Return a data set as the model reads it. first: returns the data set of the first folder, unchanged."""
        return data

    def encoder(self, tokenizer: Any) -> Any:
        """Return a tokeniser, or an encoder of subword pieces, changed for the model's lines. It may be None."""
        return tokenizer


class Extension:
    """An optional feature of models. Methods that are not overridden do nothing.

    Attributes:
        options: a dataclass of options for each place. Their defaults, as in older checkpoints, change nothing.
        recorded: options of each task that every command takes from the checkpoint.
        modules: names of its modules in a head -> message if a checkpoint has them and the model does not: "--option:
            expected this option".
    """

    options: ClassVar[Mapping[str, type[FairseqDataclass]]] = {}
    recorded: ClassVar[Mapping[str, Sequence[str]]] = {}
    modules: ClassVar[Mapping[str, str]] = {}

    def head_arguments(self, args: Args, task: Any) -> dict[str, Any]:
        """Return further arguments of LogLinearHead: `normaliser`, `classes`, `mass_change`, …

        Args:
            task: it has a `prior`.

        Raises:
            OptionError: options out of range, or that exclude each other.
        """
        return {}

    def embedding(
        self, args: Args, features: InputOf | None, size: int | None, row_rms: float | None
    ) -> InputOf | None:
        """Return an embedding that replaces `features` in a head, or None for no change.

        Args:
            features: None: a table with a row per word, outside the head.
            size: required width (None: any).
            row_rms: the initial root mean square of the vectors' elements that the network expects (None: any).

        Raises:
            OptionError: as `head_arguments`.
        """
        return None

    def source_embedding(self, args: Args, task: Any, size: int, row_rms: float | None) -> nn.Module | None:
        """Return an encoder's embedding, which replaces a table or is added to a source prior's features, or None.

        Args:
            task: it has dictionaries, and `source_words`.
            size: width of the vectors. row_rms: as for `embedding`.

        Raises:
            OptionError: as `head_arguments`.
        """
        return None

    def set_up_network(self, args: Args, network: RecurrentNetwork, dictionary: Dictionary) -> None:
        """Change a recurrent network that --cell built, for example its `terms` or its `call_layer`.

        Args:
            dictionary: of the words that it reads.

        Raises:
            OptionError: as `head_arguments`.
        """

    def before_batch(
        self, head: LogLinearHead, model: Any, optimizer: Any, updates: int, updates_per_epoch: int, has_gradient: bool
    ) -> None:
        """Run before each batch of training.

        Args:
            model, optimizer: in fairseq's wrappers.
            updates: so far. updates_per_epoch: in the first epoch.
            has_gradient: False if one of several processes has no batch left, and repeats one with a gradient of 0.

        Raises:
            OptionError: the optimiser does not support the extension.
        """

    def task_extension(self, task: Any, from_checkpoint: bool) -> TaskExtension | None:
        """Return its effects on a task for which it has options, or None.

        Args:
            task: it has `options`, prior and dictionaries.
            from_checkpoint: whether the options come from a checkpoint.

        Raises:
            OptionError: options out of range, or that exclude each other.
        """
        return None


EXTENSIONS: list[Extension] = []


def takes(*places: str) -> Callable[[Config], Config]:
    """Return a decorator, to be placed below @dataclass, that adds the options of all extensions for these places."""

    def extend(config: Config) -> Config:
        declared = dict(vars(config).get("__annotations__", {}))
        for option in options_of(*places):
            declared[option.name] = option.type
            setattr(config, option.name, field(default=option.default, metadata=option.metadata))
        config.__annotations__ = declared
        return config

    return extend


def options_of(*places: str) -> list[Field[Any]]:
    """Return the options that extensions have for these places, each once."""
    kinds = [extension.options[place] for extension in EXTENSIONS for place in places if place in extension.options]
    return list({option.name: option for kind in kinds for option in declared_options(kind)}.values())


def declared_options(kind: type[FairseqDataclass]) -> list[Field[Any]]:
    """Return the options of a dataclass without fairseq's own field."""
    return [option for option in fields(kind) if not option.name.startswith("_")]


def non_default_options(args: Args, kind: type[FairseqDataclass]) -> dict[str, Any]:
    """Return the options of a dataclass with other values than their defaults, by name. Older checkpoints lack some."""
    options = {option.name: option.default for option in declared_options(kind)}
    values = {name: getattr(args, name, default) for name, default in options.items()}
    return {name: value for name, value in values.items() if value != options[name]}


def check_sizes(args: Args, *names: str) -> None:
    """Raise OptionError for a size below 1."""
    for name in names:
        check_least(f"--{name.replace('_', '-')}", getattr(args, name), 1)


def check_dropouts(args: Args, *names: str) -> None:
    """Raise OptionError unless these are probabilities below 1."""
    for name in names:
        probability = getattr(args, name, None)  # fairseq omits some options with default values
        if probability is not None and not 0.0 <= probability < 1.0:
            raise OptionError(f"--{name.replace('_', '-')} {probability}: expected a probability from 0 to below 1")


def all_head_arguments(args: Args, task: Any) -> dict[str, Any]:
    """Return the arguments of a LogLinearHead from all extensions."""
    arguments: dict[str, Any] = {}
    for extension in EXTENSIONS:
        more = extension.head_arguments(args, task)
        classes = [*arguments.pop("classes", ()), *more.pop("classes", ())]
        check_single_maker(arguments, more)
        arguments |= {**more, "classes": classes} if classes else more
    return arguments


def check_single_maker(arguments: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    """Raise OptionError if two options build the same part of a head."""
    if clash := sorted(arguments.keys() & more.keys()):
        raise OptionError(f"several options set the {clash[0]} of the model; remove all but one")


def input_of(
    args: Args, features: InputOf | None, size: int | None = None, row_rms: float | None = None
) -> InputOf | None:
    """Return the embedding of a head. `features`, `size`, `row_rms`: as for `Extension.embedding`."""
    for extension in EXTENSIONS:
        features = extension.embedding(args, features, size, row_rms) or features
    return features
