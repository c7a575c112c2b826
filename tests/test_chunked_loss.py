"""The loss in chunks of positions keeps no tensor of all positions and classes, eager and compiled."""

from typing import Any

import pytest
import torch
from example_modules import BENCH, load
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch.nn.functional import cross_entropy

from fairseq_llrnn import functional
from fairseq_llrnn.functional import log_linear_nll

H = 3


@pytest.fixture(autouse=True)
def chunk_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tests set it; it is what it was after each."""
    monkeypatch.setattr(functional, "CPU_CELLS", functional.CPU_CELLS)


@pytest.mark.parametrize("is_counted", [False, True])
def test_no_tensor_of_all_positions_and_classes(is_counted: bool) -> None:
    """Eagerly, in both passes; ten chunks have a tenth of it."""
    (module,) = load(BENCH, "alive_tensors")
    positions, classes = 320, 500
    functional.CPU_CELLS = positions * classes // 16
    hidden, rows = (torch.randn(n, H, requires_grad=True) for n in (positions, classes))
    mask = torch.ones(positions, dtype=torch.bool) if is_counted else None
    with module.Alive() as alive:
        log_linear_nll(hidden, torch.arange(positions), rows, torch.zeros(classes), is_counted=mask).sum().backward()
    assert alive.largest == positions * classes // 16
    assert alive.peak < 4 * positions * classes // 4  # bytes: a quarter of one such tensor


@pytest.mark.parametrize("width", [16, 1024])
@pytest.mark.parametrize("short", [None, torch.bfloat16])
def test_a_compiled_loss_keeps_gradients_and_no_chunk(short: torch.dtype | None, width: int) -> None:
    """The scores of a chunk depend on the gradients of earlier ones, so that a compiler cannot postpone these."""
    functional.CPU_CELLS, saved = 500, list[Any]()
    scores, gradients = list[torch.fx.Node](), list[torch.fx.Node]()

    def see(graph: torch.fx.GraphModule, _: Any) -> Any:
        (output,) = (node for node in graph.graph.nodes if node.op == "output")
        for node in graph.graph.nodes:
            if node.target in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
                shape = tuple(node.meta["val"].shape)
                (scores if shape[1:] == (classes,) else gradients if shape == (classes, width) else []).append(node)
        saved.extend(node.meta["val"].numel() for node in output.args[0] if node is not None)

        def run(arguments: list[Any]) -> Any:
            return graph(*arguments)

        run._boxed_call = True  # type: ignore[attr-defined]  # takes a list, as torch wants it
        return run

    positions, classes = 32, 60
    hidden, rows = (torch.randn(n, width, requires_grad=True) for n in (positions, classes))
    targets, mask = torch.arange(positions), torch.arange(positions) < 30

    def loss(hidden: Tensor, rows: Tensor) -> Tensor:
        nll = log_linear_nll(hidden, targets, rows, torch.zeros(classes), is_counted=mask)
        return nll.masked_fill(~mask, 0.0).sum()

    backend = aot_autograd(fw_compiler=see, bw_compiler=see)
    compiled = torch.compile(loss, backend=backend, fullgraph=True, dynamic=False)
    with torch.autocast("cpu", short or torch.bfloat16, enabled=short is not None):
        found, expected = compiled(hidden, rows), loss(hidden, rows)
    if short is None:
        torch.testing.assert_close(expected, cross_entropy((hidden @ rows.T)[:30], targets[:30], reduction="sum"))
    torch.testing.assert_close(found, expected)
    for one, other in zip(*(torch.autograd.grad(each, [hidden, rows]) for each in (found, expected)), strict=True):
        torch.testing.assert_close(one, other)
    assert max(saved) == classes * width
    assert len(scores) == len(gradients) == 4
    for number, node in enumerate(scores):
        assert {*gradients[:number]} <= inputs_of(node)


def inputs_of(node: torch.fx.Node) -> set[torch.fx.Node]:
    """Return all nodes that a node depends on."""
    found, waiting = set[torch.fx.Node](), [node]
    while waiting:
        new = {*waiting.pop().all_input_nodes} - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("short", [None, torch.bfloat16, torch.float16])
def test_chunks_compile_in_one_graph(short: torch.dtype | None) -> None:
    """Without autocast also with one graph for several numbers of positions."""
    functional.CPU_CELLS = 500  # four chunks, eager and compiled
    torch.manual_seed(2)
    hidden, rows, bias = (torch.randn(*shape, requires_grad=True) for shape in ((32, H), (60, H), (60,)))
    targets = torch.randint(60, (32,))

    def loss(hidden: Tensor) -> Tensor:
        counted = torch.ones(len(hidden), dtype=torch.bool)
        given = targets[: len(hidden)], rows, torch.zeros(60), None, bias, None, counted
        return log_linear_nll(hidden, *given).mean()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True, dynamic=short is None)
    for many in (32, 31) if short is None else (32,):
        leaves, losses = (hidden[:many].detach().requires_grad_(), rows, bias), []
        for each in (loss, compiled):
            with torch.autocast("cpu", short or torch.bfloat16, enabled=short is not None):
                losses.append(each(leaves[0]))
        torch.testing.assert_close(*losses)
        for one, other in zip(*(torch.autograd.grad(value, leaves) for value in losses), strict=True):
            torch.testing.assert_close(one, other)
