"""A distribution over compounds of listed words: two parts or more, each drawn from the list.

    P(w)  =  Σ_n (1 − κ) κ^(n−2) Σ_{w = v_1 … v_n} Π P(v_i)            n ≥ 2

The sum over all divisions of w is one pass over its characters. The set of compounds is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairseq_llrnn.open_vocabulary.listed_strings import ListedStrings

FURTHER_PART = 0.2  # κ
LONGEST_COMPOUND = 200  # characters; a longer string has probability 0


@dataclass(frozen=True)
class Compounds:
    """P(w) of compounds (module docstring)."""

    parts: ListedStrings

    @cached_property
    def _of_part(self) -> dict[str, float]:
        return dict(zip(self.parts.strings, self.parts.probs.tolist(), strict=True))

    @cached_property
    def _lengths(self) -> list[int]:
        return sorted({len(part) for part in self.parts.strings})

    def string_probs(self, strings: Sequence[str]) -> np.ndarray:
        """Return P of each string: (m,) float64."""
        return np.array([self._prob(string) for string in strings], dtype=np.float64)

    def _prob(self, string: str) -> float:
        return (1.0 - FURTHER_PART) * self._ends(string)[-1][2] if len(string) <= LONGEST_COMPOUND else 0.0

    def next_probs(self, beginning: str) -> dict[str, float]:
        """Return the probability of the strings that continue a beginning with each character; "" ends the string."""
        found: dict[str, float] = {}
        if len(beginning) >= LONGEST_COMPOUND:
            return found
        ends = self._ends(beginning)
        for start, (none, single, more) in enumerate(ends):
            if before := none + single + FURTHER_PART * more:  # of the parts before an unfinished one
                for character, prob in self.parts.next_probs(beginning[start:]).items():
                    if character:
                        found[character] = found.get(character, 0.0) + before * prob
        if more := ends[-1][2]:
            found[""] = (1.0 - FURTHER_PART) * more
        return found

    def _ends(self, string: str) -> list[tuple[float, float, float]]:
        """Return the probability of the parts before each place, if they are none, one, or more: (len + 1)."""
        size = len(string)
        ends = [(1.0, 0.0, 0.0)] + [(0.0, 0.0, 0.0)] * size  # with no part, with one, with more, before each place
        for start in range(size):
            none, single, more = ends[start]
            if none == single == more == 0.0:
                continue
            for length in self._lengths:
                if start + length > size:
                    break
                if prob := self._of_part.get(string[start : start + length]):
                    _, single_end, more_end = ends[start + length]
                    longer = more_end + (single + FURTHER_PART * more) * prob
                    ends[start + length] = 0.0, single_end + none * prob, longer
        return ends

    def draw(self, count: int, random: np.random.Generator, of_class: int = 0) -> list[str]:
        """Return samples, the same in all classes."""
        sizes = 1 + random.geometric(1.0 - FURTHER_PART, count)
        drawn = iter(self.parts.draw(int(sizes.sum()), random))
        return ["".join(next(drawn) for _ in range(size)) for size in sizes.tolist()]
