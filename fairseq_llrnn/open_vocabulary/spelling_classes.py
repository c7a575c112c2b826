"""P(o | w): the open classes of a word, guessed from its spelling by a log-linear model.

Sizes: n words, O classes, F features, m strings.

    P(o | w)  =  exp(b_o + Σ_f a_fo) / Σ_o' exp(b_o' + Σ_f a_fo')        f the features of w

Features are the kind, length, endings and beginnings of a word (lexicon/guessing.py). The weights maximise

    Σ_w log P(o_w | w) − RIDGE ‖a‖²

(Berger, Della Pietra & Della Pietra 1996), by STEPS steps of Adam. Each word counts once, since unknown words resemble
rare ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairseq_llrnn.lexicon.guessing import beginnings, endings, kind_of

BEGINNINGS, LONGEST = 3, 12  # letters of beginnings; length from which words are alike
LEAST_COUNT = 2  # words of a feature
RIDGE, STEPS, RATE = 1.0, 30, 0.03


@dataclass(frozen=True)
class SpellingClasses:
    """P(o | w) of any string (module docstring)."""

    features: tuple[str, ...]  # F
    weights: np.ndarray  # (F + 1, O) float64: a, and b in the last row

    @classmethod
    def fit(cls, words: Sequence[str], classes: np.ndarray, num_classes: int) -> SpellingClasses:
        """Estimate the weights from different words and their classes (n,)."""
        counts = Counter(feature for word in words for feature in _features(word))
        features = tuple(sorted(feature for feature, count in counts.items() if count >= LEAST_COUNT))
        shares = np.bincount(classes, minlength=num_classes) + 0.5
        weights = np.zeros((len(features) + 1, num_classes))
        weights[-1] = np.log(shares / shares.sum())
        model, wanted = cls(features, weights), np.eye(num_classes)[classes]
        rows, columns = model._entries(words)
        order = np.argsort(columns, kind="stable")
        starts = np.searchsorted(columns[order], np.arange(len(weights)))
        first, second = np.zeros_like(weights), np.zeros_like(weights)  # moments of Adam
        for step in range(1, STEPS + 1):
            error = model._of_entries(rows, columns, len(words)) - wanted
            gradient = np.add.reduceat(error[rows[order]], starts)
            gradient[:-1] += 2.0 * RIDGE * weights[:-1]
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
            weights -= RATE * (first / (1.0 - 0.9**step)) / (np.sqrt(second / (1.0 - 0.999**step)) + 1e-8)
        return model

    def probs(self, strings: Sequence[str]) -> np.ndarray:
        """Return P(o | w) of strings that are not empty: (m, O) float64."""
        return self._of_entries(*self._entries(strings), len(strings))

    def _of_entries(self, rows: np.ndarray, columns: np.ndarray, count: int) -> np.ndarray:
        if not count:
            return np.zeros((0, self.weights.shape[1]))
        scores = np.add.reduceat(self.weights[columns], np.searchsorted(rows, np.arange(count)))
        raw = np.exp(scores - scores.max(1, keepdims=True))
        probs: np.ndarray = raw / raw.sum(1, keepdims=True)
        return probs

    def _entries(self, strings: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of strings and features, with b as a feature of all, by string."""
        index, always = self._index, len(self.features)
        found = [[*(index[name] for name in _features(string) if name in index), always] for string in strings]
        rows = np.repeat(np.arange(len(found)), np.array([len(row) for row in found], dtype=np.int64))
        return rows, np.array([column for row in found for column in row], dtype=np.int64)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {feature: i for i, feature in enumerate(self.features)}


def _features(word: str) -> list[str]:
    """Return the names of a word's features, all different."""
    small = word.lower()
    edges = [*(f"-{end}" for end in endings(small)), *(f"{start}-" for start in beginnings(small)[:BEGINNINGS])]
    return [f"kind:{kind_of(word)}", f"length:{min(len(word), LONGEST)}", *edges]
