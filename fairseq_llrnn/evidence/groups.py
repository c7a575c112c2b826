"""Groups of strings of which a translation has to have one, and source tokens that carry marks: which are asked for.

A system that requires strings of a translation (systems/terms) adds its groups to the one `GroupTable` of a session,
and marks source tokens. A sentence's marks travel inside its source ids, so that whatever sorts, splits or repeats
sentences cannot part them:

    id  =  (mark + 1) · 2³²  +  the token's own id

A mark is a number of the table, and says which groups are asked for at the token. Evidence reads them, and who hands a
source to it; everyone else is given the tokens' own ids (`plain` of features/dictionary.py). Groups and marks have
numbers that live as long as the session's evidence table, whose part this is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairseq_llrnn.features.dictionary import SHIFT, Ids, plain


def marks_of(ids: Ids) -> Ids:
    """Their marks, −1 for tokens that carry none."""
    return (ids >> SHIFT) - 1


def marked(token: int, mark: int) -> int:
    """A token that carries a mark."""
    return ((mark + 1) << SHIFT) | token


@dataclass(frozen=True)
class Group:
    """Strings: exactly one of them, as often as it is asked for; or, if it need not be, made likely."""

    name: str
    words: tuple[int, ...]  # target ids, different ones
    rows: tuple[int, ...]  # of EvidenceTable.rows
    read_as: tuple[int, ...]  # target ids: what a network reads in their place
    must: bool
    beside: tuple[tuple[int, int], ...] = ()  # other tokens that spell some of the strings, with their rows


@dataclass(frozen=True)
class Use:
    """A group at a source token."""

    group: int
    counts: bool  # whether it is asked for once more here; only one token of a phrase does
    is_place: bool  # whether its translation is to be looked for here


class GroupTable:
    """Groups and marks by number."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.required = False  # whether there is a group that must be said
        self._number_of: dict[Group, int] = {}
        self._marks: list[tuple[Use, ...]] = []
        self._mark_of: dict[tuple[Use, ...], int] = {}

    def add(self, group: Group) -> int:
        """The number of a group."""
        if group not in self._number_of:
            self._number_of[group] = len(self.groups)
            self.groups.append(group)
            self.required |= group.must
        return self._number_of[group]

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
