"""Algorithm 4.1: the dual variables δ that make the bound on log Z tightest, for given potentials.

log Z★ is smooth in δ, so that L-BFGS takes the place of the thesis' sub-gradient steps (§4.4).

Sizes: R kinds of tokens, K order.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from .lbfgs import LBFGS
from .star import Beliefs, Star

ITERATIONS = 200
TOLERANCE = 1e-9  # of log Z★, relative


@dataclass(frozen=True)
class Tightened:
    """Where it ended."""

    delta: Tensor  # (K, R)
    beliefs: Beliefs
    log_z: tuple[float, ...]  # at the beginning, and after each iteration


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
    best = search.x.view_as(delta)
    return Tightened(best, star.solve(best), tuple(values))
