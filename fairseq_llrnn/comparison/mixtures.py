"""Interpolation of models, token by token. All figures are in nats.

    p(x | K) = Σ_m w_m p_m(x | K)

If each model gives probabilities to all strings, so does their mixture. Each step of EM (Dempster et al. 1977) makes
w_m the mean share of w_m p_m in p, and p of the text never falls.

Sizes: N tokens of a text with their ends, M models.
"""

from __future__ import annotations

import numpy as np

EM_STEPS, LEAST_GAIN = 1_000, 1e-8  # at most so many steps, which end when one gains less nats per token
LEAST_WEIGHT = 1e-9  # a model without weight may be the only one that expects a word of another text


def loss(log_probs: np.ndarray) -> float:
    """Return the base-e log-perplexity."""
    return -float(log_probs.mean())


def mixed(first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
    """Return log(weight · p₁ + (1 − weight) · p₂) of every token, (N,)."""
    if weight in (0.0, 1.0):
        return first if weight == 1.0 else second
    return np.logaddexp(np.log(weight) + first, np.log1p(-weight) + second)


def mixed_all(log_probs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the log-probabilities of a mixture, (N,). log_probs: (M, N). weights: (M,)."""
    highest = log_probs.max(0)
    result: np.ndarray = np.log(weights @ np.exp(log_probs - highest)) + highest
    return result


def best_weights(log_probs: np.ndarray) -> np.ndarray:
    """Return the weights of M models with the least loss on a text, by EM: (M, N) -> (M,)."""
    probs = np.exp(log_probs - log_probs.max(0))
    weights = np.full(len(probs), 1.0 / len(probs))
    previous = -np.inf
    for _ in range(EM_STEPS):
        together = weights @ probs
        if (gained := float(np.log(together).mean())) - previous < LEAST_GAIN:
            break
        weights *= (probs / together).mean(1)
        previous = gained
    return (weights + LEAST_WEIGHT) / (weights + LEAST_WEIGHT).sum()


def best_weight(first: np.ndarray, second: np.ndarray) -> float:
    """Return the weight of the first model, in hundredths, with the least loss on a text: both (N,)."""
    return min((loss(mixed(first, second, w / 100)), w / 100) for w in range(101))[1]
