"""One row of weights per feature, composed into one row per signature: E = Φ W.

Sizes: S signatures, F features, H width. Φ is sparse and fixed; W is learned. This one small sparse product turns the
log-linear layer into a linear layer with S rows (output), and ψ into an embedding table (input).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.features.feature_table import FeatureTable


def row_scores(hidden: Tensor, rows: Tensor, bias: Tensor) -> Tensor:
    """aᵀφ of every row: hidden (…, H), rows (R, H), bias (R,) -> (…, R), in the dtype of the bias."""
    # flat: of (N, 1, H), as the states of a search step are, torch makes N products of one row each
    scores = hidden.reshape(-1, hidden.size(-1)) @ rows.to(hidden.dtype).T
    return scores.to(bias.dtype).view(*hidden.shape[:-1], -1) + bias


def at_least_float32(bias: Tensor) -> Tensor:
    """Biases are summed, and masses added to them, in float32 where the products are in half precision."""
    return bias.to(torch.promote_types(bias.dtype, torch.float32))


class SparseRows(nn.Module):
    """The sparse matrix Φ (S, F) of a FeatureTable as buffers that follow the module to its device."""

    offsets: Tensor  # (S + 1,)
    indices: Tensor  # (entries,)
    values: Tensor  # (entries,)

    def __init__(self, table: FeatureTable) -> None:
        super().__init__()
        self.num_rows = table.num_rows
        self.num_features = table.num_features
        self.register_buffer("offsets", torch.from_numpy(table.offsets.copy()), persistent=False)
        self.register_buffer("indices", torch.from_numpy(table.indices.copy()), persistent=False)
        self.register_buffer("values", torch.from_numpy(table.values.copy()), persistent=False)

    def compose(self, weight: Tensor) -> Tensor:
        """Φ W: (F, H) -> (S, H), in the dtype of `weight`, with gradients to it."""
        return functional.embedding_bag(
            self.indices,
            weight,
            self.offsets,
            mode="sum",
            per_sample_weights=self.values.to(weight.dtype),
            include_last_offset=True,
        )

    def compose_subset(self, weight: Tensor, subset: Tensor) -> Tensor:
        """As `compose`, of the rows `subset` (K,) alone: (F, H) -> (K, H); where it says −1, a row of zeros."""
        starts = self.offsets[subset]
        sizes = (self.offsets[subset + 1] - starts).masked_fill(subset < 0, 0)
        offsets = functional.pad(sizes.cumsum(0), (1, 0))
        # the entries of row k stand at starts[k], starts[k] + 1, …
        step = torch.arange(int(offsets[-1]), device=subset.device)
        entries = step + (starts - offsets[:-1]).repeat_interleave(sizes)
        return functional.embedding_bag(
            self.indices[entries],
            weight,
            offsets,
            mode="sum",
            per_sample_weights=self.values[entries].to(weight.dtype),
            include_last_offset=True,
        )

    def dense(self) -> Tensor:
        """Φ as a dense (S, F) matrix: for oracles and small tables only."""
        row = torch.repeat_interleave(torch.arange(self.num_rows, device=self.offsets.device), self.offsets.diff())
        out = self.values.new_zeros((self.num_rows, self.num_features))
        return out.index_put((row, self.indices), self.values)


class FeatureEmbedding(nn.Module):
    """Embeds tokens by their input features: e(x) = Σ_f ψ_f(x) U_f.

    Words with equal ψ share one row, so the table has one row per input signature, whatever the vocabulary's size.
    """

    class_of: Tensor  # (V,)

    def __init__(self, table: FeatureTable, class_of: Tensor, dim: int, weight: nn.Parameter | None = None) -> None:
        """`weight` (F, dim) ties the feature weights to another layer's; its F must be the table's."""
        super().__init__()
        self.rows = SparseRows(table)
        self.register_buffer("class_of", class_of, persistent=False)
        self.weight = nn.Parameter(torch.empty(table.num_features, dim)) if weight is None else weight
        if weight is None:
            nn.init.uniform_(self.weight, -0.1, 0.1)

    def table(self) -> Tensor:
        """The composed embeddings of all input signatures: (S, dim)."""
        return self.rows.compose(self.weight)

    def forward(self, tokens: Tensor, table: Tensor | None = None) -> Tensor:
        """tokens (…,) -> embeddings (…, dim). `table` is a composed table to use again."""
        return functional.embedding(self.class_of[tokens], self.table() if table is None else table)
