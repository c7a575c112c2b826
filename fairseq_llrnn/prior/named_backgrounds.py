"""Registration of backgrounds by their name in --background: `NAME:SOURCE`, or `NAME(SOURCE, OPTION=VALUE, …)`.

    @register_background("mrf", FieldPart, example="mrf:field", options=FieldOptions)
    def read(source, prior, inputs): return FieldPart(…), {"words that it lacks": 3}

`options` is a dataclass of settings (settings.py). `inputs.options` holds the options of the expression. Expressions
are checked before anything is read: by the attributes of the part's class, and by `check`.

A reader stands in the file of its part: in parts/, in a system, or in another package (registry.py finds it).
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

# a checkpoint, a prior with b₀, options of `model` -> the part, and notes for the user with counts
OpenModel = Callable[[str, PriorView, Any], tuple[Part, Mapping[str, int]]]


@dataclass(frozen=True)
class NoOptions(Settings):
    """Options of a background without options."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of a background in addition to the text after its colon."""

    words: WordList
    counts: np.ndarray  # (V,) of the unigram
    texts: Sequence[str]  # the training text, tokenised, one sentence a line
    options: Any  # an instance of the registered class
    open_model: OpenModel | None = None  # reads other trained models
    workers: int | None = None  # processes that read the texts; None: one for each core
    source_symbols: tuple[str, ...] = ()  # the words of the source dictionary, if a part uses the source


Read = Callable[[str, PriorView, Inputs], tuple[Part, Mapping[str, int]]]
Check = Callable[[str, Any, Sequence[str]], object]  # the text after the name, its options, and the training texts
ReadType = TypeVar("ReadType", bound=Read)
_REGISTERED: dict[str, NamedBackground] = {}


def no_text(source: str) -> bool:
    """Return False. Raises ValueError if there is a text after the name."""
    if source:
        raise ValueError(f"expected nothing after the name, found {source}; leave it out")
    return False


def no_file(source: str) -> bool:
    """Return False: the text after the name is no file."""
    return False


def a_file(source: str) -> bool:
    """Return True if the text after the name is a file. Raises ValueError if it is not."""
    if not is_file_or_pipe(source):
        raise ValueError("expected an existing file after the name, found none; check the spelling")
    return True


@dataclass(frozen=True)
class NamedBackground:
    """A background that an expression may name."""

    part: type[Part]  # the class that the reader returns
    example: str  # an expression for messages
    # the text after the name, and a prior with b₀ -> the part and notes; None: another option makes the part
    read: Read | None
    is_file: Callable[[str], bool]  # whether the text after the name is a file; raises ValueError for invalid text
    options: type[Settings]
    check: Check | None
    is_constraint: bool  # whether it defines the possible words


def register_background(
    name: str,
    part: type[Part],
    example: str,
    is_file: Callable[[str], bool] | None = None,
    options: type[Settings] = NoOptions,
    check: Check | None = None,
    is_constraint: bool = False,
    by_option: bool = False,
) -> Callable[[ReadType], ReadType]:
    """Register the reader of `name:…`. A later reader replaces an earlier one.

    Args:
        part: the class that the reader returns.
        example: an expression for messages; without a colon or bracket, no text may follow the name.
        is_file: returns whether the text after the name is a file, such as `a_file`. None: it is no file.
        check: raises OptionError if the text after the name, its options and the training texts do not fit together. It
            is called before anything is read.
        is_constraint: whether it defines the possible words, so that translations are multiplied with it and not mixed.
        by_option: whether another option makes its part, after all others. It then has no reader.
    """

    def register(read: ReadType) -> ReadType:
        add(read)
        return read

    checked = is_file or (no_file if ":" in example or "(" in example else no_text)

    def add(read: Read | None) -> None:
        _REGISTERED[name] = NamedBackground(part, example, read, checked, options, check, is_constraint)

    if by_option:
        add(None)

    return register


def named_background(name: str) -> NamedBackground | None:
    """Return the background that is registered under `name`, also in systems and other packages, or None."""
    if name not in _REGISTERED:
        load_all("parts")
    return _REGISTERED.get(name)


def named_backgrounds() -> Mapping[str, NamedBackground]:
    """Return all registered backgrounds by name."""
    load_all("parts")
    return dict(sorted(_REGISTERED.items()))
