"""A distribution over a finite list of strings: the words of a list or a lexicon, by their counts.

Sizes: n strings, m wanted strings.

The strings are sorted, so that those with a given beginning are adjacent. The probability of a beginning is a
difference of two cumulative sums, and no trie is built.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class ListedStrings:
    """P(w) of different strings that are not empty; any other string has probability 0."""

    strings: tuple[str, ...]  # n, ascending
    probs: np.ndarray  # (n,) float64, Σ = 1

    @classmethod
    def of(cls, weights: Mapping[str, float], power: float = 1.0) -> ListedStrings:
        """Return P(w) ∝ weight to a power; all weights are positive."""
        strings = tuple(sorted(weights))
        raw = np.array([weights[string] for string in strings], dtype=np.float64)
        raw = (raw / raw.max()) ** power
        return cls(strings, raw / raw.sum())

    def string_probs(self, strings: Sequence[str]) -> np.ndarray:
        """Return P of each string: (m,) float64."""
        places = np.array([self._index.get(string, len(self.strings)) for string in strings], dtype=np.int64)
        probs: np.ndarray = np.append(self.probs, 0.0)[places]
        return probs

    def next_probs(self, beginning: str) -> dict[str, float]:
        """Return the probability of the strings that continue a beginning with each character; "" ends the string.

        The values sum to the probability of all strings with this beginning.
        """
        if beginning not in self._next_probs:
            size, cumulative = len(beginning), self._cumulative
            first = bisect_left(self.strings, beginning)
            last = bisect_right(self.strings, beginning, first, key=lambda string: string[:size])
            found: dict[str, float] = {}
            while first < last:
                longer = self.strings[first][: size + 1]
                if len(longer) == size:
                    after, character = first + 1, ""
                else:
                    after = bisect_right(self.strings, longer, first, last, key=lambda string: string[: size + 1])
                    character = longer[size]
                found[character] = float(cumulative[after] - cumulative[first])
                first = after
            if size > KEPT_LENGTH:
                return found
            self._next_probs[beginning] = found
        return self._next_probs[beginning]

    def draw(self, count: int, random: np.random.Generator) -> list[str]:
        """Return samples."""
        places = np.searchsorted(self._cumulative[1:-1], random.random(count), side="right")
        return [self.strings[place] for place in places.tolist()]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {string: i for i, string in enumerate(self.strings)}

    @cached_property
    def _cumulative(self) -> np.ndarray:
        """Σ of the first i probabilities: (n + 1,)."""
        return np.concatenate([[0.0], np.cumsum(self.probs)])

    @cached_property
    def _next_probs(self) -> dict[str, dict[str, float]]:
        """Results for beginnings of up to KEPT_LENGTH characters."""
        return {}


KEPT_LENGTH = 2
