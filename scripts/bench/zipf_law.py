"""Zipf's law: the r-th most frequent word has 1/r of the frequency of the first."""

import numpy as np


def zipf(n: int) -> np.ndarray:
    """Return the probabilities of n words, shape (n,), the most frequent first. They sum to one."""
    weights = 1.0 / np.arange(1, n + 1)
    return weights / weights.sum()
