"""The head and its backgrounds on a GPU: the laws hold there, and it says what it says on a CPU, compiled or not."""

from collections.abc import Callable

import pytest
import torch
from background_atoms import ATOMS, SOURCE
from torch import Tensor

from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.functional import log_linear_nll
from fairseq_llrnn.output.feature_weights import SparseRows
from fairseq_llrnn.testing import check_background

BACKENDS: list[Callable[[Callable[..., Tensor]], Callable[..., Tensor]]] = [lambda loss: loss, torch.compile]


@pytest.mark.parametrize("name", ATOMS)
def test_laws_of_backgrounds(gpu: torch.device, name: str) -> None:
    check_background(ATOMS[name]().to(gpu), source=SOURCE.to(gpu))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_the_gradient_of_a_feature_that_all_rows_have(gpu: torch.device, dtype: torch.dtype) -> None:
    rows = SparseRows(FeatureTable.from_rows([{"Shape:lower": 1.0}] * 20_000)).to(gpu)
    each = torch.rand(20_000, 32, generator=torch.Generator().manual_seed(1)).to(dtype)
    expected = each.double().sum(0, keepdim=True)
    close = max(torch.finfo(dtype).eps, 2e-5)  # the order of 20,000 sums is not fixed: √20,000 roundings of float32
    torch.testing.assert_close(rows.transposed(each.to(gpu)).double().cpu(), expected, rtol=close, atol=0.0)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("classes", [7, 3000])
def test_the_loss_and_its_gradient(gpu: torch.device, dtype: torch.dtype, classes: int, compiled: bool) -> None:
    """Beside the definition in float64 on the CPU; rows of many classes go another way through torch's kernels."""
    generator = torch.Generator().manual_seed(classes)
    hidden, rows = (torch.randn(n, 32, generator=generator) * 0.3 for n in (60, classes))
    bias = torch.randn(classes, generator=generator)
    target = torch.randint(classes, (60,), generator=generator)
    exact = [x.to(dtype).double().requires_grad_() for x in (hidden, rows)] + [bias.double().requires_grad_()]
    expected = torch.nn.functional.cross_entropy(exact[0] @ exact[1].T + exact[2], target, reduction="sum")
    found = [x.detach().to(gpu, x_dtype).requires_grad_() for x, x_dtype in zip(exact, _dtypes(dtype), strict=True)]
    loss = log_linear_nll if not compiled else torch.compile(log_linear_nll, fullgraph=True)
    total = loss(found[0], target.to(gpu), found[1], found[2]).sum()
    close = {torch.float64: 1e-9, torch.float32: 1e-4}.get(dtype, 3e-2)
    torch.testing.assert_close(total.double().cpu(), expected, rtol=close, atol=close)
    for one, other in zip(torch.autograd.grad(total, found), torch.autograd.grad(expected, exact), strict=True):
        assert float((one.double().cpu() - other).norm() / other.norm()) < close


def _dtypes(dtype: torch.dtype) -> tuple[torch.dtype, torch.dtype, torch.dtype]:
    """Of hidden states, rows and the bias, which holds masses."""
    return dtype, dtype, torch.promote_types(dtype, torch.float32)
