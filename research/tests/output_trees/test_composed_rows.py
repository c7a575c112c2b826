"""Distinct rows and their biases, with dense and sparse gradients, next to the product with a dense Φ."""

from __future__ import annotations

import pytest
import torch
from sparse_rows import WIDTH, normal, seeded_rows

from fairseq_llrnn.output.feature_weights import SparseRows
from llrnn_research.output_trees.composed_rows import compose_once


@pytest.fixture
def rows() -> SparseRows:
    return seeded_rows()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("subset", [[4], [2, -1], [6, 0, 4, 2], [-1, 5, 4, 3, 2, 1], []])
def test_distinct_rows_and_their_biases(rows: SparseRows, subset: list[int], sparse: bool) -> None:
    """With gradients by entries, if there are few rows, or by features."""
    dense, weight, bias = rows.dense().double(), normal(4, WIDTH).requires_grad_(), normal(4).requires_grad_()
    of_padding = torch.cat([dense, torch.zeros(1, 4, dtype=torch.float64)])[torch.tensor(subset, dtype=torch.long)]
    found = compose_once(rows, weight, bias, torch.tensor(subset, dtype=torch.long), sparse)
    expected = of_padding @ weight, of_padding @ bias
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
    directions = normal(len(subset), WIDTH), normal(len(subset))
    ours, theirs = (
        torch.autograd.grad([(value * way).sum() for value, way in zip(pair, directions, strict=True)], [weight, bias])
        for pair in (found, expected)
    )
    assert ours[0].is_sparse == sparse and not ours[1].is_sparse
    torch.testing.assert_close(ours[0].to_dense(), theirs[0])
    torch.testing.assert_close(ours[1], theirs[1])


@pytest.mark.parametrize("learned", [0, 1])
def test_only_the_needed_gradient(rows: SparseRows, learned: int) -> None:
    leaves, subset = [normal(4, WIDTH), normal(4)], torch.tensor([2, 4])
    leaves[learned].requires_grad_()
    found = compose_once(rows, leaves[0], leaves[1], subset)[learned]
    expected = rows.dense().double()[subset] @ leaves[learned]
    (ours,), (theirs,) = (torch.autograd.grad(value.square().sum(), leaves[learned]) for value in (found, expected))
    torch.testing.assert_close(ours, theirs)
