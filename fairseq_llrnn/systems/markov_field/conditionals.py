"""The exact conditional of a token given all others, which are its K neighbours on either side (thesis, end of §4.2).

    p(tᵢ = s | t without tᵢ)  ∝  exp( θ⁰_s + Σ_l θˡ(tᵢ₋ₗ, s) + θˡ(s, tᵢ₊ₗ) )

Sizes: R kinds of tokens, K order, N tokens of a text's layout (moments.py), n positions of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from .potentials import Potentials

POSITIONS = 4096  # that are computed at a time, at most
BYTES = 64 << 20  # of their scores


def windows(cycle: np.ndarray, order: int) -> Tensor:
    """Every token of a cycle (N,) with its neighbours, those before it first: (N, 2K+1)."""
    return torch.from_numpy(np.stack([np.roll(cycle, -shift) for shift in range(-order, order + 1)], axis=1))


def conditional_scores(potentials: Potentials, window: Tensor) -> Tensor:
    """The exponent above for all s: (n, 2K+1) -> (n, R)."""
    order = potentials.order
    scores = potentials.unary
    for edge in range(order):
        scores = scores + potentials.rows(edge, window[:, order - edge - 1])
        scores = scores + potentials.columns(edge, window[:, order + edge + 1])
    return scores


def log_conditionals(potentials: Potentials, window: Tensor) -> Tensor:
    """log p(token | neighbours) of the middle token of each row: (n, 2K+1) -> (n,)."""
    parts = []
    for some in batches(window, potentials.size):
        scores = conditional_scores(potentials, some)
        middle = some[:, potentials.order].unsqueeze(1)
        parts.append(scores.gather(1, middle).squeeze(1) - scores.logsumexp(1))
    return torch.cat(parts) if parts else potentials.unary.new_zeros(0)


def batches(window: Tensor, size: int) -> Iterator[Tensor]:
    """The rows of (N, …), so many at a time that scores (n, R) take no more than BYTES."""
    yield from window.split(max(1, min(POSITIONS, BYTES // (8 * size))))
