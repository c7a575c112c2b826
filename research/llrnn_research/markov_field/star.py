"""An upper bound on the log-partition of a chain, by belief propagation on one star (thesis, §4.3, 4.8 to 4.13).

The chain is a cycle of N tokens, each joined to the next K. Its edges are covered by stars, with token i as the centre
and leaves i+1 … i+K. For any dual variables δˡ (R,), l = 1 … K, use the potentials

    centre  θ⁰ − Σ_l δˡ,       leaf l  θ⁰ + δˡ,       edge to leaf l  (K+1) θˡ

and let Z★ be the partition function of this star. Then log Z ≤ N / (K+1) · log Z★. The thesis derives it from K+1
forests of such stars, for N divisible by K+1. It holds for every N > K: Z is a sum of products of functions f_i of K+1
tokens, and each token is in K+1 of them. The generalised Hölder inequality (Finner 1992) bounds it by Π_i ‖f_i‖_{K+1}.

Sizes: R kinds of tokens, K order, B rows of a block, D columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError

from .potentials import Potentials

MEMORY = 2 << 30  # bytes for all exponentials
BLOCK = 32 << 20  # bytes of a block


@dataclass(frozen=True)
class Beliefs:
    """The solution of the star for one δ."""

    log_z: float  # log Z★
    nodes: Tensor  # (K+1, R) marginals: of the centre, then of the leaves
    weights: Tensor  # (K, R) factor of a first token's row in the marginals of an edge
    leaves: Tensor  # (K, R) factor of a second token's column

    @property
    def dual_gradient(self) -> Tensor:
        """Return ∂ log Z★ / ∂δ (equation 4.13), (K, R)."""
        return self.nodes[1:] - self.nodes[0]


class Exponentials:
    """exp(s · θˡ), each row divided by its largest entry. Cached if memory allows, else recomputed block by block."""

    def __init__(self, potentials: Potentials, scale: float, memory: int = MEMORY, block: int = BLOCK) -> None:
        self.potentials, self.scale = potentials, scale
        size, order = potentials.size, potentials.order
        self._rows = max(1, block // (8 * size))
        self._keeps = 8 * order * size * size <= memory
        self._kept: list[list[tuple[slice, Tensor, Tensor]]] = [[] for _ in range(order)]

    def blocks(self, edge: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Yield rows, their exponentials (B, R), and the logarithms of their divisors (B,)."""
        if self._kept[edge]:
            yield from self._kept[edge]
            return
        kept = []
        for begin in range(0, self.potentials.size, self._rows):
            rows = slice(begin, min(begin + self._rows, self.potentials.size))
            exponents = self.potentials.rows(edge, rows) * self.scale
            top = exponents.amax(1)
            exponentials = exponents.sub_(top.unsqueeze(1)).exp_()
            if self._keeps:
                kept.append((rows, exponentials, top))
            yield rows, exponentials, top
        self._kept[edge] = kept

    def log_rows(self, edge: int, log_weights: Tensor) -> Tensor:
        """Return log Σ_y w(y) exp(s θˡ(x, y)): (R,) -> (R,)."""
        highest = log_weights.max()
        weights, sums = (log_weights - highest).exp(), torch.empty_like(log_weights)
        for rows, exponentials, top in self.blocks(edge):
            sums[rows] = (exponentials @ weights).log() + top + highest
        return sums

    def log_columns(self, edge: int, log_weights: Tensor) -> Tensor:
        """Return log Σ_x w(x) exp(s θˡ(x, y)): (R,) -> (R,)."""
        sums = torch.full_like(log_weights, float("-inf"))
        for rows, exponentials, top in self.blocks(edge):
            scaled = log_weights[rows] + top
            highest = scaled.max()
            if bool(highest.isfinite()):
                sums = torch.logaddexp(sums, ((scaled - highest).exp() @ exponentials).log() + highest)
        return sums


class Star:
    """The star of some potentials."""

    def __init__(self, potentials: Potentials, memory: int = MEMORY, block: int = BLOCK) -> None:
        self.potentials = potentials
        self._exponentials = Exponentials(potentials, potentials.order + 1, memory, block)

    def blocks(self, edge: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Yield blocks of exp((K+1) θˡ)."""
        return self._exponentials.blocks(edge)

    def solve(self, delta: Tensor) -> Beliefs:
        """Return log Z★ and its marginals for δ (K, R), by two matrix-vector products per edge.

        Raises:
            DataError: potentials so large that sums leave the range of float64.
        """
        order, size = self.potentials.order, self.potentials.size
        nodes = delta.new_zeros(order + 1, size)
        sums, leaves = torch.empty_like(delta), torch.empty_like(delta)
        centre = self.potentials.unary - delta.sum(0)
        for edge in range(order):
            leaf = self.potentials.unary + delta[edge]
            highest = leaf.max()
            leaves[edge] = (leaf - highest).exp()
            tops = torch.empty_like(leaf)
            for rows, exponentials, top in self.blocks(edge):
                sums[edge, rows] = exponentials @ leaves[edge]
                tops[rows] = top
            centre = centre + sums[edge].log() + tops + highest
        log_z = torch.logsumexp(centre, 0)
        if not bool(log_z.isfinite()):
            raise DataError(
                "the potentials have left the range of float64; train with a --penalty, or fewer --iterations"
            )
        nodes[0] = (centre - log_z).exp()
        weights = torch.where(sums > 0.0, nodes[0] / sums, 0.0)  # 0 for a centre of probability 0
        for edge in range(order):
            for rows, exponentials, _ in self.blocks(edge):
                nodes[edge + 1] += weights[edge, rows] @ exponentials
            nodes[edge + 1] *= leaves[edge]
        return Beliefs(float(log_z), nodes, weights, leaves)

    def products(self, beliefs: Beliefs, edge: int, right: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
        """Return μˡ right and (μˡ)ᵀ left for the marginals μˡ (R, R) of an edge: (R, D), (R, D) -> (R, D), (R, D)."""
        weights, leaves = beliefs.weights[edge].unsqueeze(1), beliefs.leaves[edge].unsqueeze(1)
        scaled, with_leaves = weights * left, leaves * right
        first, second = torch.empty_like(left), torch.zeros_like(right)
        for rows, exponentials, _ in self.blocks(edge):
            first[rows] = exponentials @ with_leaves
            second += exponentials.T @ scaled[rows]
        return weights * first, leaves * second

    def marginals(self, beliefs: Beliefs, edge: int) -> Tensor:
        """Return μˡ, (R, R)."""
        rows = torch.cat([exponentials for _, exponentials, _ in self.blocks(edge)])
        return rows.mul_(beliefs.weights[edge].unsqueeze(1)).mul_(beliefs.leaves[edge])
