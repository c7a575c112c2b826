"""Source tokens that carry terms: ids beyond all others, which say the token and which terms are asked for at it.

A sentence's terms travel inside its source ids, so that whatever sorts, splits or repeats sentences cannot part them:

    id  =  (mark + 1) · 2³²  +  the token's own id

A mark is a number of a `TermTable` (evidence/groups.py). Who reads a source token asks for its own id (`plain`).

Terms that sentences may carry: groups of forms of which a translation has to have one, and marks of source tokens.

A group is a lemma (or phrase) of the target with the forms in which it may be said: target ids, each with the row of
its features. A mark says which groups are asked for at a source token (evidence/groups.py). Both have numbers that
live as long as the session's evidence table, whose part this is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor


SHIFT = 32
OWN = (1 << SHIFT) - 1

Ids = TypeVar("Ids", "Tensor", np.ndarray, int)


def plain(ids: Ids) -> Ids:
    """The tokens' own ids."""
    return ids & OWN


def marks_of(ids: Ids) -> Ids:
    """Their marks, −1 for tokens that carry none."""
    return (ids >> SHIFT) - 1


def marked(token: int, mark: int) -> int:
    """A token that carries a mark."""
    return ((mark + 1) << SHIFT) | token


MOST_FORMS = 64  # of a group; those behind are left out


@dataclass(frozen=True)
class TermGroup:
    """The forms of a term: exactly one of them, as often as it is asked for; or, if it need not be, made likely."""

    lemma: str
    words: tuple[int, ...]  # target ids, different ones
    rows: tuple[int, ...]  # of EvidenceTable.rows
    read_as: tuple[int, ...]  # target ids: what a network reads in their place
    must: bool
    beside: tuple[tuple[int, int], ...] = ()  # other tokens that spell forms, with their rows


@dataclass(frozen=True)
class Use:
    """A group at a source token."""

    group: int
    counts: bool  # whether it is asked for once more here; only one token of a phrase does
    is_place: bool  # whether its translation is to be looked for here


class TermTable:
    """Groups and marks by number."""

    def __init__(
        self,
        index: Callable[[str], int],
        row: Callable[[str, Mapping[str, float]], int],
        read_as: Callable[[str], int],
        beside: Callable[[Sequence[str], bool], Sequence[tuple[int, int]]],
    ) -> None:
        """
        Args:
            index: the target id of a string. row: that of the features of one, what is known of it beside them.
            read_as: what a network reads in the place of one, a target id of the dictionary.
            beside: of the forms of a group, and whether it must be said, the tokens that would spell them beside their
                own, with their rows.
        """
        self.groups: list[TermGroup] = []
        self.required = False  # whether there is a group that must be said
        self._index, self._row, self._read_as, self._beside = index, row, read_as, beside
        self._group_of: dict[tuple[str, tuple[str, ...], bool], int] = {}
        self._marks: list[tuple[Use, ...]] = []
        self._mark_of: dict[tuple[Use, ...], int] = {}

    def group(self, lemma: str, forms: Mapping[str, Mapping[str, float]], must: bool) -> int:
        """The number of a group. forms: string -> features, as far as more is known than its spelling shows."""
        key = lemma, tuple(forms), must
        if key not in self._group_of:
            kept = list(forms.items())[:MOST_FORMS]
            words = tuple(self._index(form) for form, _ in kept)
            rows = tuple(self._row(*one) for one in kept)
            read_as = tuple(self._read_as(form) for form, _ in kept)
            beside = tuple(self._beside([form for form, _ in kept], must))
            self.groups.append(TermGroup(lemma, words, rows, read_as, must, beside))
            self._group_of[key] = len(self.groups) - 1
            self.required |= must
        return self._group_of[key]

    def mark(self, uses: Sequence[Use]) -> int:
        """The number of a mark that says these uses."""
        key = tuple(uses)
        if key not in self._mark_of:
            self._mark_of[key] = len(self._marks)
            self._marks.append(key)
        return self._mark_of[key]

    def marked(self, token: int, uses: Sequence[Use]) -> int:
        """A source token with these uses beside those that it has."""
        return marked(plain(token), self.mark((*self.uses(token), *uses)))

    def uses(self, token: int) -> tuple[Use, ...]:
        """What a source token carries; () for most."""
        mark = marks_of(token)
        return self._marks[mark] if mark >= 0 else ()
