"""Slow and obvious versions of what systems/markov_field computes: sums over all sequences, sub-gradient steps.

And small texts and forms to compute it for.

Sizes: R kinds of tokens, K order, N tokens.
"""

from __future__ import annotations

import itertools

import numpy as np
import torch
from torch import Tensor

from llrnn_research.markov_field.moments import Moments, count_moments
from llrnn_research.markov_field.potentials import Form, Potentials
from llrnn_research.markov_field.star import Star

SEPARATOR = 0
SENTENCES = [[1, 2, 3], [2], [], [3, 3, 1, 2, 1], [1, 2]]


def dense(potentials: Potentials) -> Tensor:
    """θˡ: (K, R, R)."""
    every = slice(0, potentials.size)
    return torch.stack([potentials.rows(edge, every) for edge in range(potentials.order)])


def sequences(size: int, length: int) -> Tensor:
    """All of them: (R^N, N)."""
    return torch.tensor(list(itertools.product(range(size), repeat=length)))


def cyclic_scores(potentials: Potentials, tokens: Tensor) -> Tensor:
    """Σ_i θ⁰ + Σ_l θˡ(tᵢ, tᵢ₊ₗ) around the cycle: (n, N) -> (n,)."""
    edges, total = dense(potentials), potentials.unary[tokens].sum(1)
    for edge in range(potentials.order):
        total = total + edges[edge][tokens, tokens.roll(-edge - 1, dims=1)].sum(1)
    return total


def cyclic_log_partition(potentials: Potentials, length: int) -> Tensor:
    return cyclic_scores(potentials, sequences(potentials.size, length)).logsumexp(0)


def linear_log_partition(potentials: Potentials, length: int, separator: int) -> Tensor:
    """Of the sequences whose first K tokens are separators: the cycle, cut there."""
    tokens = sequences(potentials.size, length - potentials.order)
    before = torch.full((len(tokens), potentials.order), separator)
    return cyclic_scores(potentials, torch.cat([before, tokens], dim=1)).logsumexp(0)


def star_log_partition(potentials: Potentials, delta: Tensor) -> Tensor:
    """log Z★, by enumeration of the centre and its K leaves."""
    order, edges = potentials.order, dense(potentials)
    tokens = sequences(potentials.size, order + 1)
    total = (potentials.unary - delta.sum(0))[tokens[:, 0]]
    for edge in range(order):
        total = total + (potentials.unary + delta[edge])[tokens[:, edge + 1]]
        total = total + (order + 1) * edges[edge][tokens[:, 0], tokens[:, edge + 1]]
    return total.logsumexp(0)


def random_potentials(size: int, order: int, spread: float = 1.0, seed: int = 0, width: int = 0) -> Potentials:
    """Explicit ones, or of some width."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return spread * torch.randn(*shape, generator=generator, dtype=torch.float64)

    unary = normal(size)
    if not width:
        return Potentials(unary, tuple(normal(size, size) for _ in range(order)), None)
    left = tuple(normal(size, width) for _ in range(order))
    return Potentials(unary, left, tuple(normal(size, width) for _ in range(order)))


def no_delta(star: Star) -> Tensor:
    """δ = 0: (K, R)."""
    return torch.zeros(star.potentials.order, star.potentials.size, dtype=star.potentials.unary.dtype)


def moments_of(sentences: list[list[int]], order: int, size: int, block: int = 1 << 20) -> Moments:
    tokens = np.array([token for sentence in sentences for token in sentence], dtype=np.int64)
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    return count_moments(tokens, lengths, SEPARATOR, order, size, block)


def form_of(name: str, order: int = 2, size: int = 4, **more: object) -> Form:
    offset = torch.zeros(size, dtype=torch.float64)
    return Form(name, order, offset, 0 if name == "explicit" else 2, **more)  # type: ignore[arg-type]
