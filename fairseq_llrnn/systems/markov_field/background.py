"""A field as a background: what it says of the next word after the K words before (outlook.py).

    b(K, x)  =  q(row(x) | rows of the last K words) · share(x)

Words that the field lacks share what it says of <unk>, equally with <unk>. What only the field has is dropped, and so
is what b₀ forbids: b need not sum to one.

Sizes: V words of the prior, R kinds of tokens of the field, K order, D width, N hypotheses.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background

from .outlook import next_log_probs
from .potentials import Potentials


class MarkovBackground(Background):
    """Its state is the rows of the last K words, the last one first: (N, K)."""

    row_of: Tensor  # (V,) int64
    log_shares_of_rows: Tensor  # (V,) −inf forbids
    unary: Tensor  # (R,) θ⁰ + ρ
    left: Tensor  # (K, R, D), or θˡ itself: (K, R, R)
    right: Tensor | None  # (K, R, D)

    def __init__(
        self, class_of: Tensor, num_classes: int, row_of: Tensor, log_share: Tensor, field: Potentials, separator: int
    ) -> None:
        """class_of, row_of, log_share: (V,). field: with θ⁰ + ρ for θ⁰. separator: the row of </s>."""
        super().__init__(class_of, num_classes)
        self.register_buffer("row_of", row_of, persistent=False)
        self.register_buffer("log_shares_of_rows", log_share, persistent=False)
        self.register_buffer("unary", field.unary, persistent=False)
        self.register_buffer("left", torch.stack(field.left), persistent=False)
        self.register_buffer("right", None if field.right is None else torch.stack(field.right), persistent=False)
        self.separator = separator

    def start(self, n: int) -> Tensor:
        return self.row_of.new_full((n, len(self.left)), self.separator)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return torch.cat([self.row_of[tokens].unsqueeze(1), state[:, :-1]], dim=1)

    def log_weights(self, state: Tensor) -> Tensor:
        right = None if self.right is None else tuple(self.right)
        field = Potentials(self.unary, tuple(self.left), right)
        log_q = next_log_probs(field, torch.zeros_like(self.unary), state)
        weights = log_q[:, self.row_of] + self.log_shares_of_rows
        return weights.masked_fill(self.log_shares_of_rows == NEGATIVE_INFINITY, NEGATIVE_INFINITY)
