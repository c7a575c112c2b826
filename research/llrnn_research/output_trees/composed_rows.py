"""Rows of distinct signatures with their biases, whose gradients need no sorting by feature.

Sizes: S signatures, F features, H width, K distinct signatures.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairseq_llrnn.output.feature_weights import SparseRows, sparse_product, sums_by_feature


def compose_once(
    rows: SparseRows, weight: Tensor, bias: Tensor, subset: Tensor, sparse: bool = False
) -> tuple[Tensor, Tensor]:
    """Return rows (K, H) and biases (K,) of distinct rows `subset` (K,). −1 gives a row of zeros.

    Args:
        weight: (F, H). bias: (F,). sparse: whether the gradient of `weight` is a sparse tensor, as of an embedding.
    """
    composed: tuple[Tensor, Tensor] = _ComposeOnce.apply(weight, bias, rows, subset, sparse)
    return composed


class _ComposeOnce(torch.autograd.Function):
    """Distinct rows, with gradients that need no sorting by feature."""

    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, bias: Tensor, table: SparseRows, subset: Tensor, sparse: bool
    ) -> tuple[Tensor, Tensor]:
        entries, offsets, owner = table.entries(subset)
        features, values = table.indices[entries], table.values[entries]
        ctx.save_for_backward(features, values, owner, subset)
        ctx.table, ctx.dtypes, ctx.sparse = table, (weight.dtype, bias.dtype), sparse
        rows = sparse_product(features, weight, offsets, values)
        of_bias = bias[features] * values.to(bias.dtype)
        return rows, bias.new_zeros(len(subset)).index_add_(0, owner, of_bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_rows: Tensor, grad_bias: Tensor) -> tuple[Tensor | None, ...]:
        features, values, owner, subset = ctx.saved_tensors
        table, (dtype, of_bias) = ctx.table, ctx.dtypes
        grads: list[Tensor | None] = [None, None]
        if ctx.needs_input_grad[0] and ctx.sparse:
            grads_of_entries = grad_rows.index_select(0, owner).mul_(values.to(dtype).unsqueeze(1))
            shape = table.num_features, grads_of_entries.size(1)
            grads[0] = torch.sparse_coo_tensor(features.unsqueeze(0), grads_of_entries, shape, check_invariants=False)
        elif ctx.needs_input_grad[0] and 2 * len(subset) >= table.num_rows:
            # other rows have a gradient of zeros
            full_grad = grad_rows.new_zeros(table.num_rows + 1, grad_rows.size(1))
            full_grad.index_copy_(0, subset.masked_fill(subset < 0, table.num_rows), grad_rows)
            grads[0] = table.transposed(full_grad[:-1])
        elif ctx.needs_input_grad[0]:
            grads[0] = sums_by_feature(grad_rows, owner, features, values, table.num_features)
        if ctx.needs_input_grad[1]:
            grads_of_entries = grad_bias[owner] * values.to(of_bias)
            grads[1] = grad_bias.new_zeros(table.num_features).index_add_(0, features, grads_of_entries)
        return grads[0], grads[1], None, None, None
