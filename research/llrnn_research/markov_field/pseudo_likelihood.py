"""Train by the pseudo-likelihood Π p(tᵢ | neighbours) with stochastic gradients, like log-bilinear models.

Sizes: R kinds of tokens, K order, D width, N tokens of a text's layout (moments.py), n positions of them.

A token given all others depends on its K neighbours on either side (thesis, end of §4.2):

    p(tᵢ = s | t without tᵢ)  ∝  exp( θ⁰_s + Σ_l θˡ(tᵢ₋ₗ, s) + θˡ(s, tᵢ₊ₗ) )

An epoch costs N · R · D. The bound (learning.py) costs R² · D, independently of the length of the text.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from llrnn_research.markov_field.learning import Progress
from llrnn_research.markov_field.potentials import Form, Parameters, Potentials

POSITIONS = 4096  # in one batch, at most
BYTES = 64 << 20  # of the scores of a batch


def windows(cycle: np.ndarray, order: int) -> Tensor:
    """Return every token of a cycle (N,) between its neighbours: (N, 2K+1)."""
    return torch.from_numpy(np.stack([np.roll(cycle, -shift) for shift in range(-order, order + 1)], axis=1))


def conditional_scores(potentials: Potentials, window: Tensor) -> Tensor:
    """Return the exponent above for all s: (n, 2K+1) -> (n, R)."""
    order = potentials.order
    scores = potentials.unary
    for edge in range(order):
        scores = scores + potentials.rows(edge, window[:, order - edge - 1])
        scores = scores + potentials.columns(edge, window[:, order + edge + 1])
    return scores


def log_conditionals(potentials: Potentials, window: Tensor) -> Tensor:
    """Return log p(token | neighbours) of the middle token of each row: (n, 2K+1) -> (n,)."""
    parts = []
    for batch in batches(window, potentials.size):
        scores = conditional_scores(potentials, batch)
        middle = batch[:, potentials.order].unsqueeze(1)
        parts.append(scores.gather(1, middle).squeeze(1) - scores.logsumexp(1))
    return torch.cat(parts) if parts else potentials.unary.new_zeros(0)


def batches(window: Tensor, size: int) -> Iterator[Tensor]:
    """Split rows (N, …) so that their scores (n, R) take at most BYTES."""
    yield from window.split(max(1, min(POSITIONS, BYTES // (8 * size))))


BATCH = 512
RATE = 0.01  # initial rate of Adam, with linear decay to 0


def learn_by_pseudo_likelihood(
    form: Form,
    parameters: Parameters,
    window: Tensor,
    valid: Tensor | None,
    epochs: int,
    penalty: float = 0.0,
    seed: int = 1,
    rate: float = RATE,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, Tensor]:
    """Return the parameters after the best epoch by `valid`, or after the last one.

    Args:
        window: (N, 2K+1) every token of the text with its neighbours.
        valid: the same of another text.
        watch: called after each epoch. Objective and bound in its argument are the mean log-conditional.
    """
    leaves = {name: value.clone().requires_grad_() for name, value in parameters.items()}
    optimizer = torch.optim.Adam(leaves.values(), lr=rate)
    generator = torch.Generator().manual_seed(seed)
    order, total = form.order, epochs * math.ceil(len(window) / BATCH)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total)
    begun, best_value = time.monotonic(), -math.inf
    best = {name: value.detach().clone() for name, value in leaves.items()}
    for epoch in range(1, epochs + 1):
        gained = 0.0
        for chosen in torch.randperm(len(window), generator=generator).split(BATCH):
            batch = window[chosen]
            scores = conditional_scores(form.potentials(leaves), batch)
            loss = torch.nn.functional.cross_entropy(scores, batch[:, order])
            gained -= loss.item() * len(batch)
            for name, value in leaves.items():
                if penalty and name != "unary":
                    loss = loss + 0.5 * penalty * value.square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        fitted = {name: value.detach().clone() for name, value in leaves.items()}
        score = (
            gained / len(window) if valid is None else float(log_conditionals(form.potentials(fitted), valid).mean())
        )
        if better := valid is None or score > best_value:
            best_value, best = score, fitted
        seconds = time.monotonic() - begun
        mean = gained / len(window)
        watch(Progress(epoch, seconds, mean, mean, None if valid is None else score, better))
    return best
