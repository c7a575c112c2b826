"""Count tokens of a text, and pairs of them at each distance, for a chain of order K.

The text is laid out as a cycle (thesis, §4.3, figure 4.2): K separators precede each sentence, so that no edge joins
words of two sentences, and the last token's neighbours are the first ones. The order of sentences is therefore
irrelevant, and a text's counts are the sums of those of its sentences.

Sizes: R kinds of tokens (words, or signatures), K order, N tokens in the layout, n sentences, T words, P pairs that
occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

BLOCK = 1 << 22  # tokens counted in one pass


@dataclass(frozen=True)
class Moments:
    """Relative frequencies μ̂ of a text."""

    tokens: int  # N, separators included
    words: int  # T
    sentences: int  # n, without empty ones
    unary: Tensor  # (R,) float64, sum 1
    pairs: tuple[Tensor, ...]  # K sparse (R, R), float64, sum 1; entry x, y: x is l places before y


def layout(tokens: np.ndarray, lengths: np.ndarray, separator: int, order: int) -> np.ndarray:
    """Return the cycle of a text: K separators before the words of each sentence that has words.

    Args:
        tokens: (T,) the concatenated words of all sentences.
        lengths: (n,).

    Returns:
        (N,) int64, N = T + K · (number of sentences that have words).
    """
    lengths = lengths[lengths > 0]
    begins = lengths.cumsum() - lengths
    places = np.arange(len(tokens)) + np.repeat(order * (1 + np.arange(len(lengths))), lengths)
    cycle = np.full(len(tokens) + order * len(begins), separator, dtype=np.int64)
    cycle[places] = tokens
    return cycle


def count_moments(
    tokens: np.ndarray, lengths: np.ndarray, separator: int, order: int, size: int, block: int = BLOCK
) -> Moments:
    """Return the moments of a text (T,), (n,) over R = `size` kinds of tokens, using memory for a block and the pairs.
    """
    full = lengths > 0
    unary = np.zeros(size)
    by_distance: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(order)]
    ends = lengths.cumsum()
    first, total = 0, 0
    while first < len(lengths):
        begin = 0 if first == 0 else ends[first - 1]
        last = max(first + 1, int(np.searchsorted(ends, begin + block, side="right")))
        cycle = layout(tokens[begin : ends[last - 1]], lengths[first:last], separator, order)
        unary += np.bincount(cycle, minlength=size)
        total += len(cycle)
        for distance, pairs in enumerate(by_distance, 1):
            keys = cycle * size + np.roll(cycle, -distance)
            pairs.append(np.unique(keys, return_counts=True))
            if len(pairs) > 8:
                pairs[:] = [_summed(pairs)]
        first = last
    matrices = [_matrix(*_summed(pairs), size, total) for pairs in by_distance] if total else []
    return Moments(total, len(tokens), int(full.sum()), torch.from_numpy(unary / max(1, total)), tuple(matrices))


def _summed(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct keys and their summed counts."""
    keys, place = np.unique(np.concatenate([key for key, _ in pairs]), return_inverse=True)
    return keys, np.bincount(place, weights=np.concatenate([count for _, count in pairs]))


def _matrix(keys: np.ndarray, counts: np.ndarray, size: int, tokens: int) -> Tensor:
    places = torch.from_numpy(np.stack([keys // size, keys % size]))
    values = torch.from_numpy(counts / tokens)
    return torch.sparse_coo_tensor(places, values, (size, size), is_coalesced=True, check_invariants=False)
