"""Mixtures of two models, token by token, and their weights. All figures are in nats.

Sizes: N tokens of a text with their ends.
"""

import numpy as np


def loss(log_probs: np.ndarray) -> float:
    """Base-e log-perplexity."""
    return -float(log_probs.mean())


def mixed(first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
    """log(weight · p₁ + (1 − weight) · p₂) of every token, (N,)."""
    if weight in (0.0, 1.0):
        return first if weight == 1.0 else second
    return np.logaddexp(np.log(weight) + first, np.log1p(-weight) + second)


def best_weight(first: np.ndarray, second: np.ndarray) -> float:
    """That of the first model, in hundredths, with the least loss on a text: both (N,)."""
    return min((loss(mixed(first, second, w / 100)), w / 100) for w in range(101))[1]
