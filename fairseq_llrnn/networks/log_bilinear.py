"""The log-bilinear network: what the last few words say, each by the matrix of its distance, and no nonlinearity.

Sizes: B batch, T time, D input width, H hidden width, C words of the context. Source: Mnih & Hinton 2007; Jernite 2018,
section 3.2 (the representation of a context).

    h_t = Σ_k R_k u_{t−k},    k = 1 … C        u the words' vectors; words before the first one are zeros
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.networks.recurrent import dropout


class LogBilinearNetwork(nn.Module):
    """The matrices of the distances.

    Args:
        input_size: D. hidden_size: H. context: C. dropout: on the input and on the output.
    """

    def __init__(self, input_size: int, hidden_size: int, context: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.matrices = nn.Parameter(torch.empty(context, hidden_size, input_size))  # R_1 of the last word, R_2, …
        bound = (3.0 / (context * input_size)) ** 0.5  # states vary as much as the words' vectors do
        nn.init.uniform_(self.matrices, -bound, bound)

    @property
    def context(self) -> int:
        return self.matrices.size(0)

    def forward(self, x: Tensor) -> Tensor:
        """Vectors of the words before each position, (B, T, D), whose last one is the nearest -> (B, T, H)."""
        x = dropout(x, self.dropout, self.training, False)
        context, hidden_size, _ = self.matrices.shape
        products = functional.linear(x, self.matrices.flatten(0, 1))  # shape: (B, T, C·H)
        time = x.size(1)
        hidden = products[..., :hidden_size]
        for k, farther in enumerate(products.split(hidden_size, -1)[1:context], start=1):
            hidden = hidden + functional.pad(farther, (0, 0, k, 0))[:, :time]
        return dropout(hidden, self.dropout, self.training, False)
