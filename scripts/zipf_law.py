"""Words as frequent as a language's: the r-th one 1/r times as often as the first (Zipf's law)."""

import numpy as np


def zipf(n: int) -> np.ndarray:
    """Shares of n words, shape (n,), the most frequent first; they sum to one."""
    weights = 1.0 / np.arange(1, n + 1)
    return weights / weights.sum()
