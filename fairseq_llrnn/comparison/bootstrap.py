"""Paired bootstrap over sentences (Koehn 2004): is the difference of two models due to the choice of sentences?

Sizes: n sentences.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

RESAMPLES = 10_000
AT_ONCE = 500  # resamples computed together
LEVEL = 0.95


class Difference(NamedTuple):
    """A difference in bits per character, with its confidence interval and two-sided p."""

    value: float
    low: float
    high: float
    p: float


def paired_bootstrap(
    bits: np.ndarray, reference: np.ndarray, characters: np.ndarray, resamples: int = RESAMPLES, seed: int = 1
) -> Difference:
    """Return the difference of two models in bits per character: all arguments are of sentences, (n,).

    p is twice the share of resamples on the other side of zero, in which the observed sample counts as one.
    """
    difference = bits - reference
    generator, size = np.random.default_rng(seed), len(bits)
    values = np.empty(resamples)
    for begin in range(0, resamples, AT_ONCE):
        count = min(AT_ONCE, resamples - begin)
        chosen = generator.integers(size, size=(count, size))
        values[begin : begin + count] = difference[chosen].sum(1) / characters[chosen].sum(1)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    below = min(int((values <= 0).sum()), int((values >= 0).sum()))
    value = float(difference.sum() / characters.sum())
    return Difference(value, float(low), float(high), min(1.0, 2 * (below + 1) / (resamples + 1)))
