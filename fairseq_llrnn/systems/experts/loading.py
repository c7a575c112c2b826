"""Load experts from path/to/file.py:ClassName, a user's code given on the command line, and open them with a prior."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import BOS, EOS, PAD, UNK
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.experts.expert import Expert
from fairseq_llrnn.systems.experts.panel import Panel

EXAMPLE = "--expert path/to/file.py:ClassName"


def load_experts(names: str) -> tuple[Expert, ...]:
    """Return the experts named in `names`, separated by commas.

    Raises:
        OptionError: the file or class is missing, the file fails, or the class is not an expert.
    """
    return tuple(_load(name.strip()) for name in names.split(","))


def _load(name: str) -> Expert:
    option = f"--expert {name}"
    file, colon, class_name = name.rpartition(":")
    path = Path(file)
    if not (colon and class_name.isidentifier() and path.suffix == ".py"):
        raise OptionError(f"{option}: expected a file and a class in it, as {EXAMPLE}; found {name!r}")
    if not os.path.isfile(path):
        raise OptionError(f"{option}: expected a file of Python code, found no {file}; check the path")
    spec = importlib.util.spec_from_file_location(f"llrnn_expert_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # used by dataclasses
    sys.modules["fairseq_llrnn.experts.expert"] = sys.modules[Expert.__module__]  # the module's earlier name
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[-1]
        raise OptionError(
            f"{option}: the file failed at import: {type(error).__name__}: {error} ({line.filename}, line "
            f"{line.lineno}); fix it"
        ) from error
    expert_class = getattr(module, class_name, None)
    if not (isinstance(expert_class, type) and issubclass(expert_class, Expert)):
        classes = {name: value for name, value in vars(module).items() if isinstance(value, type)}
        names = [name for name, value in classes.items() if issubclass(value, Expert) and value is not Expert]
        raise OptionError(
            f"{option}: expected a class that extends fairseq_llrnn.systems.experts.expert.Expert, found "
            f"{'none of that name' if expert_class is None else type(expert_class).__name__}; experts in the file: "
            f"{', '.join(names) or 'none'}"
        )
    try:
        return expert_class()
    except Exception as error:
        raise OptionError(
            f"{option}: the class cannot be created without arguments ({type(error).__name__}: {error}); remove them"
        ) from error


def open_experts(experts: Sequence[Expert], prior: Prior, source_word_of: Callable[[int], str] | None = None) -> Panel:
    """Return the panel of a head's opened experts.

    Args:
        source_word_of: the string of a source token, for models with a source, whose special symbols have the target's
            numbers.

    Raises:
        DataError: an expert cannot be opened.
    """
    target, pad, eos = prior.session.target, prior.index(PAD), prior.index(EOS)
    has_open_words = prior.open_words is not None  # <unk> stands for many words
    offers = prior.has_source_strings and source_word_of is not None

    def token_of(word: str) -> int | None:
        if word == UNK and has_open_words:
            return None
        return target.index(word) if offers else target.word_index.get(word)

    ignored = frozenset() if source_word_of is None else frozenset((prior.index(BOS), pad, eos))
    word_of = target.symbols.__getitem__
    return Panel(experts, prior, word_of, token_of, source_word_of, eos=eos, pad=pad, ignored=ignored)
