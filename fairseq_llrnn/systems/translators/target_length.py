"""How long a translation will be: m ~ Poisson(λ(k)), k the length of the source.

Sizes: B batch. Source: Kalchbrenner & Blunsom 2013. λ(k) = α k + β, α and β learned.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class PoissonLength(nn.Module):
    """α begins at 1 and β near 0: as long as the source."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(math.log(math.e - 1)))  # α = log(1 + exp of it)
        self.intercept = nn.Parameter(torch.tensor(-4.0))

    def forward(self, source_lengths: Tensor) -> Tensor:
        """λ: (B,) -> (B,), at least float32."""
        dtype = torch.promote_types(self.slope.dtype, torch.float32)
        slope, intercept = functional.softplus(self.slope.to(dtype)), functional.softplus(self.intercept.to(dtype))
        return slope * source_lengths + intercept


def most_probable(rate: Tensor) -> Tensor:
    """The most probable length of at least 1: ⌊λ⌋, (B,) -> (B,)."""
    return rate.detach().floor().long().clamp_min(1)


def log_prob(rate: Tensor, lengths: Tensor) -> Tensor:
    """log p(m): λ and m, (B,) -> (B,)."""
    m = lengths.to(rate.dtype)
    return m * rate.log() - rate - torch.lgamma(m + 1)
