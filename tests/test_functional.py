"""The loss on one page: the definition over words in value and gradient, and the fused gradient by itself."""

from dataclasses import replace

import pytest
import torch
from oracles import plain_log_probs
from sparse_masses import sparse_masses
from torch import Tensor

from fairseq_llrnn.functional import log_linear_nll
from fairseq_llrnn.output.normalisers import class_log_probs


@pytest.mark.parametrize("groups", [None, 1, 2, 4])
@pytest.mark.parametrize("slots", [False, True])
def test_gradcheck_of_the_fused_function(groups: int | None, slots: bool) -> None:
    """The bias is one row, or a row for every group of positions; some targets are slots."""
    torch.manual_seed(1)
    hidden = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    rows = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    bias = torch.randn((6,) if groups is None else (groups, 6), dtype=torch.float64, requires_grad=True)
    scores = torch.randn(4, 2, dtype=torch.float64, requires_grad=True) if slots else None
    target = torch.tensor([5, 0, 7, 5]) if slots else torch.tensor([5, 0, 1, 5])

    def slow(h: Tensor, r: Tensor, b: Tensor, s: Tensor | None) -> Tensor:
        all_scores = h @ r.T + (b if b.dim() == 1 else b.repeat_interleave(4 // len(b), 0))
        all_scores = all_scores if s is None else torch.cat([all_scores, s], dim=1)
        return all_scores.log_softmax(1).gather(1, target.unsqueeze(1)).squeeze(1)

    leaves = (hidden, rows, bias, *([] if scores is None else [scores]))
    found = log_linear_nll(hidden, target, rows, bias, slot_scores=scores)
    torch.testing.assert_close(-found, slow(hidden, rows, bias, scores))
    assert torch.autograd.gradcheck(
        lambda h, r, b, *s: log_linear_nll(h, target, r, b, None, None, *(s or [None])), leaves
    )


def test_gradcheck_with_corrections() -> None:
    torch.manual_seed(2)
    hidden, rows = (torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    bias = torch.randn(4, dtype=torch.float64, requires_grad=True)
    scores = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    corrections = sparse_masses(
        shared=bias.detach().unsqueeze(0), rows=torch.tensor([0, 0, 1, 1, 3]), classes=torch.tensor([1, 1, 2, 3, 0]),
        added=torch.randn(5, dtype=torch.float64), only=torch.tensor([False, True, False, True]),
        constant=torch.randn(4, dtype=torch.float64),
    )  # fmt: skip
    target = torch.tensor([1, 2, 5, 0])
    for slots in ([], [scores]):
        classes = target if slots else target.clamp_max(3)
        assert torch.autograd.gradcheck(
            lambda h, r, b, *s, t=classes: log_linear_nll(
                h, t, r, replace(corrections, of_groups=b.unsqueeze(0)), None, None, *(s or [None])
            ),
            (hidden, rows, bias, *slots),
        )


@pytest.mark.parametrize("groups", [None, 1, 3])
@pytest.mark.parametrize("slots", [False, True])
def test_where_nothing_is_possible_the_loss_is_infinite_and_has_no_gradient(groups: int | None, slots: bool) -> None:
    """But of a slot, which then has all there is."""
    hidden, rows = torch.randn(3, 4, requires_grad=True), torch.randn(6, 4, requires_grad=True)
    log_mass = torch.full((6,) if groups is None else (groups, 6), -torch.inf)
    target = torch.tensor([5, 0, 6]) if slots else torch.tensor([5, 0, 1])
    scores = torch.randn(3, 1, requires_grad=True) if slots else None
    loss = log_linear_nll(hidden, target, rows, log_mass, slot_scores=scores)
    assert loss.tolist() == [torch.inf, torch.inf, 0.0 if slots else torch.inf]
    loss.masked_fill(loss.isinf(), 0.0).sum().backward()
    assert not hidden.grad.any() and not rows.grad.any()  # type: ignore[union-attr]  # nor NaN, which is something
    assert class_log_probs(hidden @ rows.T, log_mass).isneginf().all()


def test_the_loss_is_the_definition_over_words() -> None:
    """Words of equal features, one that is forbidden, masses by sentence; value and gradient in float64."""
    torch.manual_seed(3)
    class_of = torch.tensor([0, 1, 1, 2, 1, 3])
    features = torch.randn(4, 5, dtype=torch.float64)
    weight, hidden = (torch.randn(n, 3, dtype=torch.float64, requires_grad=True) for n in (5, 4))
    bias = torch.randn(5, dtype=torch.float64, requires_grad=True)
    log_b = torch.randn(2, 6, dtype=torch.float64)
    log_b[1, 3] = float("-inf")
    each, words = log_b.repeat_interleave(2, 0), torch.tensor([2, 4, 1, 3])

    mass = torch.stack([log_b[:, class_of == c].logsumexp(1) for c in range(4)], dim=1)
    share = (each - mass.repeat_interleave(2, 0)[:, class_of]).gather(1, words.unsqueeze(1)).squeeze(1).nan_to_num()
    fast = log_linear_nll(hidden, class_of[words], features @ weight, mass, share, features @ bias)
    slow = -plain_log_probs(hidden, weight, bias, features[class_of], each).gather(1, words.unsqueeze(1)).squeeze(1)
    assert torch.isposinf(fast[3]) and torch.isposinf(slow[3])
    torch.testing.assert_close(fast, slow)
    for one, other in zip(
        torch.autograd.grad(fast[:3].sum(), [hidden, weight, bias]),
        torch.autograd.grad(slow[:3].sum(), [hidden, weight, bias]), strict=True,
    ):  # fmt: skip
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_cross_entropy_is_a_special_case(dtype: torch.dtype) -> None:
    torch.manual_seed(4)
    hidden, rows, words = torch.randn(7, 4).to(dtype), torch.randn(9, 4).to(dtype), torch.arange(7)
    found = log_linear_nll(hidden, words, rows, torch.zeros(9))
    assert found.dtype == torch.promote_types(dtype, torch.float32)
    expected = torch.nn.functional.cross_entropy((hidden @ rows.T).to(found.dtype), words, reduction="none")
    torch.testing.assert_close(found, expected)
