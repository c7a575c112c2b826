"""Translations of single words, t(x | s): the sparse table of a lexical background.

Sizes: U source words, V target words, E entries. aligners.py estimates it, prior/parts/lexical.py stores it, and
backgrounds/lexical_background.py uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.features.dictionary import BOS, EOS, PAD, SPECIALS
from fairseq_llrnn.features.feature_table import are_rows
from fairseq_llrnn.files.numbers import LARGEST_SCORE

ROW_TOLERANCE = 1e-3  # of the sum of a row of float32 probabilities


def is_word(symbols: Sequence[str]) -> np.ndarray:
    """Return (V,) bool: all but <s>, <pad>, </s> and <unk>, which neither have nor are translations."""
    return np.array([symbol not in SPECIALS for symbol in symbols], dtype=bool)


def is_content_word(source_symbols: Sequence[str]) -> np.ndarray:
    """Return the source tokens that count in the mean over a sentence's words, with <unk>: (U,) bool."""
    return np.array([symbol not in (BOS, PAD, EOS) for symbol in source_symbols], dtype=bool)


@dataclass(frozen=True)
class LexicalTable:
    """Rows of translations in CSR form, the most probable ones of each source word. A row sums to one or is empty."""

    offsets: np.ndarray  # (U + 1,) int64
    targets: np.ndarray  # (E,) int64, the most probable one of a row first
    probabilities: np.ndarray  # (E,) float32
    links: np.ndarray  # (U,) float32, number of (expected) links in the bitext that the row was estimated from

    @property
    def num_sources(self) -> int:
        return len(self.offsets) - 1

    @property
    def expected_links(self) -> np.ndarray:
        """The expected links of each pair: (E,) float32."""
        return self.probabilities * self.links.repeat(np.diff(self.offsets))

    @classmethod
    def from_pairs(
        cls, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray, num_sources: int, top: int
    ) -> LexicalTable:
        """Keep the `top` heaviest translations of every source word, and normalise each row.

        Args:
            sources, targets: word ids of the pairs, (P,); each pair occurs once.
            weights: (P,) ≥ 0, the links of each pair. Equal weights are ordered by the target's id, so that the same
                pairs make the same table.
        """
        order = np.lexsort((targets, -weights, sources))
        order = order[weights[order] > 0]
        place = np.arange(len(order)) - np.searchsorted(sources[order], sources[order])  # inside its row
        order = order[place < top]
        totals = np.bincount(sources[order], weights[order], num_sources)
        probabilities = (weights[order] / totals[sources[order]]).astype(np.float32)
        order, probabilities = order[probabilities > 0], probabilities[probabilities > 0]  # float32 ends at 1e-45
        offsets = np.concatenate([[0], np.bincount(sources[order], minlength=num_sources).cumsum()])
        return cls(offsets.astype(np.int64), targets[order].astype(np.int64), probabilities, totals.astype(np.float32))

    def row(self, source: int) -> list[tuple[int, float]]:
        """Return the translations of a source word with their probabilities, best first."""
        span = slice(self.offsets[source], self.offsets[source + 1])
        return list(zip(self.targets[span].tolist(), self.probabilities[span].tolist(), strict=True))

    def check(self, possible: np.ndarray) -> None:
        """Raise ValueError unless the table is sound and its translations are `possible` (V,) bool target words."""
        offsets, targets, probabilities = self.offsets, self.targets, self.probabilities
        if not are_rows(offsets, targets, len(possible)) or len(probabilities) != len(targets):
            raise ValueError("the lexical translations point outside their tables")
        if not possible[targets].all():
            raise ValueError("the lexical translations contain a word that the background forbids, or no word")
        rows = np.repeat(np.arange(self.num_sources), np.diff(offsets))
        pairs = rows * np.int64(len(possible)) + targets
        if len(np.unique(pairs)) < len(pairs):
            raise ValueError("the lexical translations contain a pair of words twice")
        totals = np.bincount(rows, probabilities, self.num_sources)
        is_filled = np.diff(offsets) > 0
        if not ((probabilities > 0).all() and (np.abs(totals[is_filled] - 1.0) < ROW_TOLERANCE).all()):
            raise ValueError("the lexical translations are no probabilities")

    def check_links(self, sources: np.ndarray) -> None:
        """Raise ValueError unless rows are of `sources` (U,) bool words, each with a valid number of links."""
        if self.num_sources != len(sources):
            raise ValueError("the lexical translations and the source words differ in number")
        if np.diff(self.offsets)[~sources].any():
            raise ValueError("the lexical translations contain a special symbol")
        is_filled, links = np.diff(self.offsets) > 0, self.links
        if len(links) != len(is_filled) or not ((links[is_filled] > 0).all() and (links <= LARGEST_SCORE).all()):
            raise ValueError("the lexical translations have invalid numbers of links")
