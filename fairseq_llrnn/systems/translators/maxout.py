"""A layer of maxout units, each the largest of a few linear functions of what it reads.

Sizes: D input width, M units, P functions of each. Sources: Goodfellow et al. 2013; Cho et al. 2014, the output of the
decoder.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Maxout(nn.Module):
    """x (…, D) -> (…, M)."""

    def __init__(self, input_size: int, units: int, pieces: int = 2) -> None:
        """units: M. pieces: P."""
        super().__init__()
        self.units, self.pieces = units, pieces
        self.linear = nn.Linear(input_size, units * pieces)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.amax(self.linear(x).unflatten(-1, (self.units, self.pieces)), dim=-1)
