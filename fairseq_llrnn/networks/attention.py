"""Global attention of a decoder's states over a source, for all positions at once.

Sizes: B batch, T target time, L source length, H decoder width, E source width. Sources: Luong et al. 2015 (§3.1: dot,
general), Bahdanau et al. 2015 (additive), and Luong's combination tanh(W [context; h]).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

KINDS = ("dot", "general", "additive")


class GlobalAttention(nn.Module):
    """h, source -> the attentional state tanh(W [context; h]) and the weights.

    Args:
        kind: how a state is compared with a source state. "dot" needs H = E.
    """

    def __init__(self, kind: str, hidden_size: int, source_size: int) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"kind: expected one of {KINDS}, found {kind!r}")
        if kind == "dot" and hidden_size != source_size:
            raise ValueError(f"dot attention: expected equal widths, found {hidden_size} and {source_size}")
        self.kind = kind
        compared = hidden_size if kind == "additive" else source_size
        self.query = nn.Identity() if kind == "dot" else nn.Linear(hidden_size, compared, bias=False)
        if kind == "additive":
            self.key = nn.Linear(source_size, hidden_size)
            self.energy = nn.Linear(hidden_size, 1, bias=False)
        self.combine = nn.Linear(source_size + hidden_size, hidden_size, bias=False)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def scores(self, hidden: Tensor, source: Tensor) -> Tensor:
        """How well each state fits each source state: (B, T, H), (B, L, E) -> (B, T, L)."""
        query = self.query(hidden)
        if self.kind == "additive":
            # shape: (B, T, L, H)
            return self.energy(torch.tanh(query.unsqueeze(2) + self.key(source).unsqueeze(1))).squeeze(-1)
        return query @ source.transpose(1, 2)

    def forward(self, hidden: Tensor, source: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
        """Attend.

        Args:
            hidden: (B, T, H). source: (B, L, E). padding: (B, L) bool, true where the source is padding.

        Returns:
            attentional states (B, T, H) and weights (B, T, L), zero on padding and summing to one.
        """
        joined, weights = self.joined(hidden, source, padding)
        return self.combined(joined), weights

    def combined(self, joined: Tensor) -> Tensor:
        """tanh(W [context; h]): (B, T, E + H) -> (B, T, H)."""
        return torch.tanh(self.combine(joined))

    def joined(self, hidden: Tensor, source: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
        """[context; h], (B, T, E + H), and weights; arguments as for `forward`."""
        scores = self.scores(hidden, source).masked_fill(padding.unsqueeze(1), float("-inf"))
        # the softmax in float32 or better, whatever the dtype of the products
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        weights = scores.softmax(-1).to(source.dtype)
        context = weights @ source  # shape: (B, T, E)
        return torch.cat([context, hidden], dim=-1), weights
