"""Rows of some signatures, with dense and sparse gradients, beside the product with a dense Φ."""

from __future__ import annotations

import pytest
import torch
from sparse_rows import ROWS, WIDTH, normal, seeded_rows

from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output import feature_weights
from fairseq_llrnn.output.feature_weights import FeatureEmbedding, SparseRows, row_scores, row_scores_with


@pytest.fixture
def rows() -> SparseRows:
    return seeded_rows()


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_may_repeat(rows: SparseRows, sparse: bool) -> None:
    weight, subset = normal(4, WIDTH).requires_grad_(), torch.tensor([4, 1, 2, 4])
    found, expected = rows.compose_subset(weight, subset, sparse), rows.dense().double()[subset] @ weight
    torch.testing.assert_close(found, expected)
    way = normal(4, WIDTH)
    (ours,), (theirs,) = (torch.autograd.grad((value * way).sum(), weight) for value in (found, expected))
    assert ours.is_sparse == sparse
    torch.testing.assert_close(ours.to_dense(), theirs)


@pytest.mark.parametrize("at_once", [1, 2 * WIDTH, 1 << 26])
def test_entries_are_added_in_chunks(rows: SparseRows, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_weights, "AT_ONCE", at_once)
    each, owner = normal(len(ROWS), WIDTH), rows._owner
    found = feature_weights.sums_by_feature(each, owner, rows.indices, rows.values, rows.num_features)
    torch.testing.assert_close(found, rows.dense().double().T @ each)
    torch.testing.assert_close(rows.transposed(each), rows.dense().double().T @ each)
    assert owner.tolist() == [0, 2, 2, 3, 4, 4, 4, 5, 6, 6]


@pytest.mark.parametrize("is_grad_enabled", [False, True])
@pytest.mark.parametrize("shape", [(2,), (2, 4), (2, 1, 4)])
def test_scores_of_rows_and_of_others(shape: tuple[int, ...], is_grad_enabled: bool) -> None:
    torch.manual_seed(3)
    hidden, rows, bias = normal(*shape, WIDTH), normal(5, WIDTH), normal(5)
    expected = torch.stack([(hidden * row).sum(-1) + c for row, c in zip(rows, bias, strict=True)], dim=-1)
    torch.testing.assert_close(row_scores(hidden, rows, bias), expected)
    short = row_scores(hidden.bfloat16(), rows, bias.float())
    assert short.dtype == torch.float32
    torch.testing.assert_close(short.double(), expected, rtol=0.05, atol=0.1)
    if len(shape) == 1:
        others = normal(2, 3)
        with torch.set_grad_enabled(is_grad_enabled):
            for more in (others, others.float()):
                found = row_scores_with(hidden, rows, bias, more)
                torch.testing.assert_close(found, torch.cat([expected, more.double()], dim=1))


def test_biases_are_at_least_float32() -> None:
    for dtype, expected in ((torch.float16, torch.float32), (torch.float32,) * 2, (torch.float64,) * 2):
        assert feature_weights.at_least_float32(torch.zeros(1, dtype=dtype)).dtype == expected


@pytest.mark.parametrize("sparse_gradients", [False, True])
def test_an_embedding_of_few_or_many_tokens(sparse_gradients: bool) -> None:
    torch.manual_seed(4)
    class_of = torch.tensor([2, 0, 4, 4, 1, 6])
    embedding = FeatureEmbedding(FeatureTable.from_rows(ROWS), class_of, WIDTH).double()
    embedding.sparse_gradients = sparse_gradients
    every = embedding.rows.dense().double()[class_of] @ embedding.weight
    for tokens in (torch.tensor([[3, 2], [0, 3]]), torch.arange(6).expand(3, -1)):
        found, way = embedding(tokens), normal(*tokens.shape, WIDTH)
        torch.testing.assert_close(found, every[tokens])
        with torch.no_grad():
            torch.testing.assert_close(embedding(tokens), every[tokens])
            torch.testing.assert_close(embedding(tokens, embedding.rows.compose(embedding.weight)), every[tokens])
        both = (torch.autograd.grad((value * way).sum(), embedding.weight, retain_graph=True)[0]
                for value in (found, every[tokens]))  # fmt: skip
        ours, theirs = both
        assert ours.is_sparse == sparse_gradients
        torch.testing.assert_close(ours.to_dense(), theirs)
    other = FeatureEmbedding(FeatureTable.from_rows(ROWS), class_of, WIDTH, embedding.weight)
    before = embedding.weight.detach().clone()
    other.reset_parameters()
    assert other.is_tied and not embedding.is_tied and torch.equal(embedding.weight, before)
    embedding.reset_parameters()
    assert not torch.equal(embedding.weight, before)


def test_a_moved_table_forgets_its_other_device(rows: SparseRows) -> None:
    each = normal(len(ROWS), WIDTH)
    rows.transposed(each)
    assert "_by_feature" in rows.__dict__ and "_by_feature" not in rows.double().__dict__
    torch.testing.assert_close(rows.transposed(each), rows.dense().T @ each)
