"""A bitext as arrays of word ids, and links between its tokens.

Sizes: I sentence pairs, L links.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]  # source words, target words, weights


@dataclass(frozen=True)
class BitextSide:
    """One language of a bitext: sentences of word ids, one after the other."""

    tokens: np.ndarray  # (all,) int64
    offsets: np.ndarray  # (I + 1,) int64

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def with_words(self, wanted: np.ndarray) -> BitextSide:
        """Without the words that are not `wanted`, a bool for every word of the vocabulary."""
        kept = wanted[self.tokens]
        return BitextSide(self.tokens[kept], np.concatenate([[0], kept.cumsum()])[self.offsets])

    def with_sentences(self, wanted: np.ndarray) -> BitextSide:
        """Without the sentences that are not `wanted` (I,) bool."""
        kept = np.repeat(wanted, self.lengths)
        return BitextSide(self.tokens[kept], np.concatenate([[0], self.lengths[wanted].cumsum()]))

    def with_null(self, null: int) -> BitextSide:
        """With the word `null` before each sentence."""
        return BitextSide(np.insert(self.tokens, self.offsets[:-1], null), self.offsets + np.arange(len(self) + 1))


@dataclass(frozen=True)
class Bitext:
    """Sentences and their translations."""

    source: BitextSide
    target: BitextSide


@dataclass(frozen=True)
class Links:
    """Pairs of tokens of a bitext, by their places in `source.tokens` and `target.tokens`: (L,) int64 each."""

    source: np.ndarray
    target: np.ndarray
