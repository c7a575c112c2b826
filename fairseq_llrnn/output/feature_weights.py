"""One row of weights per feature, composed into one row per signature: E = Φ W.

Sizes: S signatures, F features, H width. Φ is sparse and fixed. W is learned. One small sparse product turns the
log-linear layer into a linear layer with S rows (output), and ψ into an embedding table (input).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from fairseq_llrnn.backgrounds.class_weights import expanded
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.files.numbers import LARGEST_PARAMETER

AT_ONCE = 1 << 26  # elements of a temporary tensor: 256 MB in float32


def row_scores(hidden: Tensor, rows: Tensor, bias: Tensor) -> Tensor:
    """Return aᵀφ of every row: hidden (…, H), rows (R, H), bias (R,) -> (…, R), in the dtype of the bias."""
    # flat: of (N, 1, H), the shape of a search step, torch would make N products of one row each
    scores = hidden.reshape(-1, hidden.size(-1)) @ rows.to(hidden.dtype).T
    return scores.to(bias.dtype).view(*hidden.shape[:-1], -1).add_(bias)


def row_scores_with(hidden: Tensor, rows: Tensor, bias: Tensor, others: Tensor) -> Tensor:
    """Return the scores of R rows, followed by J scores `others`: hidden (N, H), others (N, J) -> (N, R + J)."""
    if torch.is_grad_enabled() or not hidden.dtype == rows.dtype == bias.dtype == others.dtype:
        return torch.cat([row_scores(hidden, rows, bias), others], dim=1)
    scores = others.new_empty(len(hidden), len(rows) + others.size(1))  # allocated once: it is as wide as all classes
    scores[:, len(rows) :] = others
    torch.mm(hidden, rows.T, out=scores[:, : len(rows)]).add_(bias)
    return scores


def at_least_float32(bias: Tensor) -> Tensor:
    """Return a bias in at least float32, for sums with masses when products are in half precision."""
    return bias.to(torch.promote_types(bias.dtype, torch.float32))


@torch.no_grad()
def draw_weights(weight: Tensor, rows: SparseRows, row_rms: float | None, bound: float = 0.1) -> None:
    """Draw feature weights W (F, H) from U(−bound, bound), then scale all of them by one factor.

    Args:
        rows: Φ.
        row_rms: root mean square of the elements of Φ W after scaling, ignoring rows of zeros, or less if weights
            would exceed LARGEST_PARAMETER (tiny values of features). None: no scaling.
    """
    nn.init.uniform_(weight, -bound, bound)
    if row_rms == 0.0:
        weight.zero_()
    elif row_rms is not None and not weight.is_meta:
        parts = weight.double().split(max(1, AT_ONCE // max(1, rows.num_rows)), dim=1)
        squares = torch.stack([rows.compose(part.contiguous()).square().sum(1) for part in parts]).sum(0)
        if count := squares.count_nonzero().item():
            factor = row_rms * (count * weight.size(1) / squares.sum()).sqrt()
            weight.mul_(factor.clamp(max=LARGEST_PARAMETER / bound))


class SparseRows(nn.Module):
    """The sparse matrix Φ (S, F) of a FeatureTable, as buffers."""

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
        """Return Φ W: (F, H) -> (S, H), in the dtype of `weight`, with gradients."""
        composed: Tensor = _Compose.apply(weight, self)
        return composed

    def transposed(self, rows: Tensor) -> Tensor:
        """Return Φᵀ times a value of each row, the gradient of W: (S, H) -> (F, H).

        On a GPU the order of the sums is not deterministic: processing one feature after the other would be slow if one
        is in all rows, and sorting takes longer.
        """
        if rows.is_cuda or torch.compiler.is_compiling():
            return sums_by_feature(rows, self._owner, self.indices, self.values, self.num_features)
        offsets, row, values = self._by_feature
        return sparse_product(row, rows, offsets, values)

    def compose_subset(self, weight: Tensor, subset: Tensor, sparse: bool = False) -> Tensor:
        """As `compose`, for the rows `subset` (K,) alone: (F, H) -> (K, H).

        Args:
            sparse: whether the gradient of `weight` is a sparse tensor, as of an embedding.
        """
        entries, offsets, _ = self.entries(subset)
        return sparse_product(self.indices[entries], weight, offsets, self.values[entries], sparse)

    def entries(self, subset: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the entries of rows (K,), the offset of each row, (K + 1,), and the row of each entry. −1 has none."""
        starts = self.offsets[subset]
        sizes = (self.offsets[subset + 1] - starts).masked_fill(subset < 0, 0)
        owner, entries = expanded(starts, sizes)
        return entries, functional.pad(sizes.cumsum(0), (1, 0)), owner

    @property
    def _owner(self) -> Tensor:
        """The row of each entry: (entries,)."""
        rows = torch.arange(self.num_rows, device=self.offsets.device)
        return rows.repeat_interleave(self.offsets.diff(), output_size=len(self.indices))

    @cached_property
    def _by_feature(self) -> tuple[Tensor, Tensor, Tensor]:
        """The same matrix by columns: offsets (F + 1,), rows and values (entries,)."""
        order = self.indices.argsort(stable=True)
        counts = torch.bincount(self.indices, minlength=self.num_features)
        return functional.pad(counts.cumsum(0), (1, 0)), self._owner[order], self.values[order]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self.__dict__.pop("_by_feature", None)  # its tensors are on the old device
        return super()._apply(fn, recurse)

    def dense(self) -> Tensor:
        """Return Φ as a dense (S, F) matrix, for oracles and small tables."""
        out = self.values.new_zeros((self.num_rows, self.num_features))
        return out.index_put((self._owner, self.indices), self.values)


def sparse_product(indices: Tensor, weight: Tensor, offsets: Tensor, values: Tensor, sparse: bool = False) -> Tensor:
    """Return a sparse matrix times `weight`. The entries of row i begin at offsets[i]."""
    return functional.embedding_bag(
        indices, weight, offsets, mode="sum", per_sample_weights=values.to(weight.dtype), include_last_offset=True,
        sparse=sparse,
    )  # fmt: skip


def sums_by_feature(rows: Tensor, owner: Tensor, features: Tensor, values: Tensor, num_features: int) -> Tensor:
    """Return the sum of the rows of each feature, times the feature's value: (F, H), in the dtype of `rows`.

    Sums are in float32 at least, because half precision would lose small terms of a long sum. Entries are processed in
    chunks, because each is as wide as a row.

    Args:
        rows: (K, H). owner, features, values: of each entry, (entries,).
    """
    total = rows.new_zeros(num_features, rows.size(1), dtype=torch.promote_types(rows.dtype, torch.float32))
    chunk = max(1, AT_ONCE // rows.size(1))
    for row, feature, value in zip(owner.split(chunk), features.split(chunk), values.split(chunk), strict=True):
        values_of_rows = rows.index_select(0, row).to(total.dtype).mul_(value.to(total.dtype).unsqueeze(1))
        total.index_add_(0, feature, values_of_rows)
    return total.to(rows.dtype)


class _Compose(torch.autograd.Function):
    """All rows, with gradients that need no sorting by feature, unlike those of an embedding bag."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, table: SparseRows) -> Tensor:
        ctx.table = table
        return sparse_product(table.indices, weight, table.offsets, table.values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_rows: Tensor) -> tuple[Tensor, None]:
        return ctx.table.transposed(grad_rows), None


class FeatureEmbedding(nn.Module):
    """Embed tokens by their input features: e(x) = Σ_f ψ_f(x) U_f.

    Words with equal ψ share one row, so the table has one row per input signature, for any size of the vocabulary.
    With `sparse_gradients`, only the rows of the tokens are composed, and the gradient of U is a sparse tensor.
    """

    sparse_gradients = False

    class_of: Tensor  # (V,)

    def __init__(
        self,
        table: FeatureTable,
        class_of: Tensor,
        dim: int,
        weight: nn.Parameter | None = None,
        row_rms: float | None = None,
    ) -> None:
        """Build the embedding.

        Args:
            weight: (F, dim), of another layer with the same features. None: the embedding has its own.
            row_rms: the initial root mean square of the embeddings' elements. None: weights from U(−0.1, 0.1).
        """
        super().__init__()
        self.rows = SparseRows(table)
        self.register_buffer("class_of", class_of, persistent=False)
        self.weight = nn.Parameter(torch.empty(table.num_features, dim)) if weight is None else weight
        self.is_tied, self.row_rms = weight is not None, row_rms
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights again, unless they are another layer's."""
        if not self.is_tied:
            draw_weights(self.weight, self.rows, self.row_rms)

    def forward(self, tokens: Tensor, table: Tensor | None = None) -> Tensor:
        """tokens (…,) -> embeddings (…, dim). table: composed rows to reuse."""
        classes = self.class_of[tokens]
        is_small = not torch.is_grad_enabled() and classes.numel() < self.rows.num_rows  # as in a search
        if table is None and (self.sparse_gradients or is_small) and not torch.compiler.is_compiling():
            distinct, places = classes.unique(return_inverse=True)
            return functional.embedding(places, self.rows.compose_subset(self.weight, distinct, sparse=True))
        return functional.embedding(classes, self.rows.compose(self.weight) if table is None else table)
