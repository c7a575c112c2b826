"""A distribution over a finite list of strings: the words of a list or a lexicon, by their counts.

Sizes: n strings, m wanted strings, O classes.

`ListedByClass` has the words that fit a class, with P(o | w) guessed from the spelling (spelling_classes.py):

    P(w | o)  =  P(w) P(o | w) / Z_o                Z_o = Σ_w P(w) P(o | w)

The strings are sorted, so that those with a given beginning are adjacent. The probability of a beginning is a
difference of two cumulative sums, and no trie is built.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairseq_llrnn.open_vocabulary.spelling_classes import SpellingClasses

KEPT_LENGTH = 2
LEAST_TOTAL = 1e-300
PART = 20_000  # strings whose classes are computed together


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

    def draw(self, count: int, random: np.random.Generator, of_class: int = 0) -> list[str]:
        """Return samples of a class."""
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


@dataclass(frozen=True)
class ListedByClass(ListedStrings):
    """P(w | o) of the strings (module docstring). The probabilities of beginnings are those of P(w)."""

    classes: SpellingClasses
    totals: np.ndarray  # (O,) float64, Z > 0

    @classmethod
    def of_list(cls, listed: ListedStrings, classes: SpellingClasses) -> ListedByClass:
        """Return the words of a list by class."""
        starts = range(0, len(listed.strings), PART)
        joint = [listed.probs[i : i + PART] @ classes.probs(listed.strings[i : i + PART]) for i in starts]
        return cls(listed.strings, listed.probs, classes, np.maximum(np.sum(joint, axis=0), LEAST_TOTAL))

    def string_probs(self, strings: Sequence[str]) -> np.ndarray:
        """Return P(w | o) of each string: (m, O) float64."""
        probs = super().string_probs(strings)
        found = np.flatnonzero(probs)
        of_class = np.zeros((len(strings), len(self.totals)))
        fits = self.classes.probs([strings[i] for i in found.tolist()])
        of_class[found] = probs[found, None] * fits / self.totals
        return of_class

    def draw(self, count: int, random: np.random.Generator, of_class: int = 0) -> list[str]:
        """Return samples of a class."""
        if not count:
            return []
        weights = self.probs * self._fits[:, of_class]
        return ListedStrings(self.strings, weights / max(weights.sum(), LEAST_TOTAL)).draw(count, random)

    @cached_property
    def _fits(self) -> np.ndarray:
        """P(o | w): (n, O) float32."""
        parts = (self.strings[i : i + PART] for i in range(0, len(self.strings), PART))
        return np.concatenate([self.classes.probs(part).astype(np.float32) for part in parts])
