"""Interpolation of two models, token by token. All figures are in nats.

    p(x | K) = w · p₁(x | K) + (1 − w) · p₂(x | K)

If each model gives probabilities to all strings, so does their mixture.

Sizes: N tokens of a text with their ends.
"""

from __future__ import annotations

import numpy as np


def loss(log_probs: np.ndarray) -> float:
    """Return the base-e log-perplexity."""
    return -float(log_probs.mean())


def mixed(first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
    """Return log(weight · p₁ + (1 − weight) · p₂) of every token, (N,)."""
    if weight in (0.0, 1.0):
        return first if weight == 1.0 else second
    return np.logaddexp(np.log(weight) + first, np.log1p(-weight) + second)


def best_weight(first: np.ndarray, second: np.ndarray) -> float:
    """Return the weight of the first model, in hundredths, with the least loss on a text: both (N,)."""
    return min((loss(mixed(first, second, w / 100)), w / 100) for w in range(101))[1]
