"""Backgrounds by their name in an expression of --background: `NAME:SOURCE`, or `NAME(SOURCE, OPTION=VALUE, …)`.

    @register_background("mrf", FieldPart, example="mrf:field", options=FieldOptions)
    def read(source, prior, inputs): return FieldPart(…), {"words that it lacks": 3}

`options` is a dataclass of settings (settings.py); the options of the expression are `inputs.options`. What is wrong in
an expression is said before anything is read: the class of the part tells whether it can stand beside others and
whether it knows the source, and `check` refuses what does not go together.

A reader stands beside its part, in parts/, or where registry.py finds it: in a system, or in another package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.files.reading import is_file_or_pipe
from fairseq_llrnn.prior.part import Part, PriorView
from fairseq_llrnn.registry import load_all
from fairseq_llrnn.settings import Settings

# a checkpoint, a prior with b₀, options of `model` -> the part, and what a user should know about it
OpenModel = Callable[[str, PriorView, Any], tuple[Part, Mapping[str, int]]]


@dataclass(frozen=True)
class NoOptions(Settings):
    """Of a background that has none."""


@dataclass(frozen=True)
class Inputs:
    """What a background can be made of beside what is behind its colon."""

    words: WordList
    counts: np.ndarray  # (V,) of the unigram
    texts: Sequence[str]  # the training text, tokenised, one sentence a line
    options: Any  # of the class that was registered
    open_model: OpenModel | None = None  # who can read other trained models
    workers: int | None = None  # processes that read the texts; None: one for each core
    source_symbols: tuple[str, ...] = ()  # the words of the source dictionary, where a part knows the source


Read = Callable[[str, PriorView, Inputs], tuple[Part, Mapping[str, int]]]
Check = Callable[[str, Any, Sequence[str]], object]  # of what is behind the name, its options, and the training texts
ReadType = TypeVar("ReadType", bound=Read)
_REGISTERED: dict[str, NamedBackground] = {}


def no_file(source: str) -> bool:
    """What is behind the name is not looked at before it is read."""
    return False


def a_file(source: str) -> bool:
    """It is a file. Raises ValueError."""
    if not is_file_or_pipe(source):
        raise ValueError("expected the path of a file behind the name, found none there; check the spelling")
    return True


@dataclass(frozen=True)
class NamedBackground:
    """What an expression may name."""

    part: type[Part]  # which the reader returns
    example: str  # of an expression, for messages
    # what is behind the name, and a prior with b₀ -> the part, and what a user should know; None: an option makes it
    read: Read | None
    is_file: Callable[[str], bool]  # whether a file is behind the name; raises ValueError where neither will do
    options: type[Settings]
    check: Check | None
    is_constraint: bool  # whether it says what is possible at all


def register_background(
    name: str,
    part: type[Part],
    example: str,
    is_file: Callable[[str], bool] = no_file,
    options: type[Settings] = NoOptions,
    check: Check | None = None,
    is_constraint: bool = False,
    by_option: bool = False,
) -> Callable[[ReadType], ReadType]:
    """Make `name:…` known to expressions; a later reader takes an earlier one's place.

    Args:
        part: the class of what the reader returns. check: raises OptionError where what is behind the name, its options
            and the training texts do not go together; it is asked before anything is read. is_constraint: whether it
            says what is possible at all, so that translations are multiplied with it and not mixed into it.
        by_option: whether another option makes its part, after all others; it has no reader.
    """

    def register(read: ReadType) -> ReadType:
        add(read)
        return read

    def add(read: Read | None) -> None:
        _REGISTERED[name] = NamedBackground(part, example, read, is_file, options, check, is_constraint)

    if by_option:
        add(None)

    return register


def named_background(name: str) -> NamedBackground | None:
    """What was registered under that name, here or elsewhere; None: nothing."""
    if name not in _REGISTERED:
        load_all("parts")
    return _REGISTERED.get(name)


def named_backgrounds() -> Mapping[str, NamedBackground]:
    """All that are registered, by name."""
    load_all("parts")
    return dict(sorted(_REGISTERED.items()))
