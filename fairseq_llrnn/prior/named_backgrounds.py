"""Backgrounds that others bring, by the name before the colon in an expression of --background: `NAME:SOURCE`.

    @register_background("mrf", example="mrf:field")
    def read(source, prior): return SomePart(…), {"words that it lacks": 3}

An extra says so in its file part.py, beside its part (fairseq_llrnn/extras): both are found without being named here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from fairseq_llrnn.prior.part import Part, import_parts_of_extras

if TYPE_CHECKING:
    from fairseq_llrnn.prior.prior import Prior

Read = Callable[[str, "Prior"], tuple[Part, Mapping[str, int]]]
ReadType = TypeVar("ReadType", bound=Read)
_KNOWN: dict[str, NamedBackground] = {}


@dataclass(frozen=True)
class NamedBackground:
    """What an expression may name."""

    example: str  # of an expression, for messages
    read: Read  # what is behind the colon, and a prior with b₀ -> the part, and what a user should know about it


def register_background(name: str, example: str) -> Callable[[ReadType], ReadType]:
    """Make `name:…` known to expressions; a later reader takes an earlier one's place."""

    def known(read: ReadType) -> ReadType:
        _KNOWN[name] = NamedBackground(example, read)
        return read

    return known


def named_background(name: str) -> NamedBackground | None:
    """What was registered under that name, here or in an extra; None: nothing."""
    if name not in _KNOWN:
        import_parts_of_extras()
    return _KNOWN.get(name)
