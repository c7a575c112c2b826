"""By hand: what slots that know what was said allow, group by group through dictionaries."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

KEEPS, END_KEEPS = math.exp(-6.907755), math.exp(-4.605170)


@dataclass(frozen=True)
class Group:
    """Strings, how often they are to be said together, and how strictly: "must", "wanted" or "once"."""

    strings: tuple[str, ...]
    most: int
    kind: str


def counted(groups: list[Group], words: Iterable[str]) -> list[int]:
    """How often each group was said: a word counts for the first of its groups that has room."""
    counts = [0] * len(groups)
    for word in words:
        for i, group in enumerate(groups):
            if word in group.strings and counts[i] < group.most:
                counts[i] += 1
                break
    return counts


def factor(groups: list[Group], said: list[str], word: str) -> float:
    """f(K, x): what the weight of a word (or `</s>`) is multiplied by after the words `said`."""
    counts = counted(groups, said)
    room = [count < group.most for count, group in zip(counts, groups, strict=True)]
    if word == "</s>":
        if any(r and group.kind == "must" for r, group in zip(room, groups, strict=True)):
            return 0.0
        return END_KEEPS if any(r and group.kind == "wanted" for r, group in zip(room, groups, strict=True)) else 1.0
    own = [(r, group) for r, group in zip(room, groups, strict=True) if word in group.strings]
    if not own or any(r for r, _ in own):
        return 1.0
    return 0.0 if any(group.kind == "must" for _, group in own) else KEEPS
