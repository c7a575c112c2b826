"""The fused loss: its gradient is that of the slow formula."""

import pytest
import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.sparse_mass import Corrections
from fairseq_llrnn.output.fused_loss import class_log_prob


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
    found = class_log_prob(hidden, rows, bias, target, scores)
    torch.testing.assert_close(found, slow(hidden, rows, bias, scores))
    assert torch.autograd.gradcheck(lambda *tensors: class_log_prob(*tensors[:3], target, *tensors[3:]), leaves)


def test_gradcheck_with_corrections() -> None:
    torch.manual_seed(2)
    hidden, rows = (torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    bias = torch.randn(4, dtype=torch.float64, requires_grad=True)
    scores = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    corrections = Corrections(
        shared=bias.detach().unsqueeze(0),
        rows=torch.tensor([0, 0, 1, 1, 3]),
        classes=torch.tensor([1, 1, 2, 3, 0]),
        added=torch.randn(5, dtype=torch.float64),
        only=torch.tensor([False, True, False, True]),
        constant=torch.randn(4, dtype=torch.float64),
    )
    target = torch.tensor([1, 2, 5, 0])
    for slots in ([], [scores]):
        classes = target if slots else target.clamp_max(3)
        assert torch.autograd.gradcheck(
            lambda h, r, b, *s, t=classes: class_log_prob(h, r, b, t, *(s or [None]), corrections=corrections),
            (hidden, rows, bias, *slots),
        )
