"""Algorithm 4.1: the dual variables δ that make the bound on log Z tightest, for given potentials.

Two ways: the sub-gradient steps of the thesis (§4.4), and L-BFGS, since log Z★ is smooth in δ.

Sizes: R kinds of tokens, K order.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .lbfgs import LBFGS
from .star import Beliefs, Star

ITERATIONS = 200
RATE = 1e3  # of the first sub-gradient step (thesis: α = 10³ / 2^t)
TOLERANCE = 1e-9  # of log Z★, relative


@dataclass(frozen=True)
class Tightened:
    """Where it ended."""

    delta: Tensor  # (K, R)
    beliefs: Beliefs
    iterations: int
    log_z: tuple[float, ...]  # after each iteration


def tighten(star: Star, delta: Tensor, iterations: int = ITERATIONS, tolerance: float = TOLERANCE) -> Tightened:
    """By L-BFGS, from `delta` (K, R), until log Z★ falls by less than `tolerance` of itself."""

    def function(x: Tensor) -> tuple[float, Tensor]:
        beliefs = star.solve(x.view_as(delta))
        return beliefs.log_z, beliefs.dual_gradient.flatten()

    search = LBFGS(function, delta.flatten())
    values = [search.value]
    while len(values) <= iterations and search.step():
        values.append(search.value)
        if values[-2] - values[-1] < tolerance * max(1.0, abs(values[-1])):
            break
    found = search.x.view_as(delta)
    return Tightened(found, star.solve(found), len(values) - 1, tuple(values))


def tighten_by_subgradient(star: Star, delta: Tensor, iterations: int = ITERATIONS, rate: float = RATE) -> Tightened:
    """As the thesis does: δ − α∇, where α is halved whenever log Z★ did not fall. The best δ is kept."""
    best, best_beliefs = delta, star.solve(delta)
    values, here, beliefs = [best_beliefs.log_z], delta, best_beliefs
    for _ in range(iterations):
        here = here - rate * beliefs.dual_gradient
        beliefs = star.solve(here)
        if beliefs.log_z < best_beliefs.log_z:
            best, best_beliefs = here, beliefs
        else:
            rate /= 2
            here, beliefs = best, best_beliefs
        values.append(best_beliefs.log_z)
    return Tightened(best, best_beliefs, iterations, tuple(values))


def no_delta(star: Star) -> Tensor:
    """δ = 0: (K, R)."""
    return torch.zeros(star.potentials.order, star.potentials.size, dtype=star.potentials.unary.dtype)
