"""The loss in chunks of positions: the definition in value and gradient, and the memory that it keeps."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from example_modules import SCRIPTS, load
from hypothesis import given
from hypothesis import strategies as st
from sparse_masses import sparse_masses
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch.nn.functional import cross_entropy, linear_cross_entropy

from fairseq_llrnn import functional
from fairseq_llrnn.backgrounds.class_weights import ClassWeights
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.functional import log_linear_nll

H = 3
cells = st.sampled_from([1, 10, 40, 1 << 20])


@pytest.fixture(autouse=True)
def chunk_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tests set it; it is what it was after each."""
    monkeypatch.setattr(functional, "CPU_CELLS", functional.CPU_CELLS)


@dataclass
class Case:
    """Leaves in float64, the class weights that they make, and targets; some of them slots, some forbidden."""

    hidden: Tensor
    rows: Tensor
    bias: Tensor
    log_mass: Tensor  # (G, S)
    added: Tensor | None  # (E,)
    slots: Tensor | None
    targets: Tensor
    weights_of: Callable[[Tensor, Tensor | None], ClassWeights]  # of log_mass and added

    @property
    def leaves(self) -> list[Tensor]:
        each = self.hidden, self.rows, self.bias, self.log_mass, self.added, self.slots
        return [leaf for leaf in each if leaf is not None]

    def loss(self, is_counted: Tensor | None = None) -> Tensor:
        weights = self.weights_of(self.log_mass, self.added)
        arguments = self.hidden, self.targets, self.rows, weights, None, self.bias, self.slots, is_counted
        return log_linear_nll(*arguments)

    def definition(self) -> Tensor:
        scores = self.hidden @ self.rows.T + self.bias + self.weights_of(self.log_mass, self.added).dense()
        scores = scores if self.slots is None else torch.cat([scores, self.slots], dim=1)
        nothing = scores.isneginf().all(1, keepdim=True)
        log_probs = scores.masked_fill(nothing, 0.0).log_softmax(1).masked_fill(nothing, -torch.inf)
        return -log_probs.gather(1, self.targets.unsqueeze(1)).squeeze(1)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    positions, num_classes, groups = draw(st.integers(1, 9)), draw(st.integers(1, 7)), 1
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))

    def leaf(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()

    def numbers(below: int, many: int) -> Tensor:
        return torch.randint(below, (many,), generator=generator)

    kind = draw(st.sampled_from(["shared", "groups", "entries", "grammar"]))
    if kind == "groups":
        groups = draw(st.sampled_from([n for n in range(1, positions + 1) if positions % n == 0]))
    slots = leaf(positions, 2) if draw(st.booleans()) else None
    added = None
    if kind in ("entries", "grammar"):
        many = draw(st.integers(0, 12))  # in any order, some at one place
        added, at, classes = leaf(many), numbers(positions, many), numbers(num_classes, many)
        only = None if kind == "entries" else torch.rand(positions, generator=generator) < 0.5
        constant = torch.randn(positions, generator=generator, dtype=torch.float64)

    def weights_of(log_mass: Tensor, added: Tensor | None) -> ClassWeights:
        if added is None:
            return ClassWeights(log_mass, positions)
        return sparse_masses(log_mass, at, classes, added, only, constant)

    targets = numbers(num_classes + (0 if slots is None else 2), positions)
    parts = leaf(positions, H), leaf(num_classes, H), leaf(num_classes), leaf(groups, num_classes)
    return Case(*parts, added, slots, targets, weights_of)


def gradients(loss: Tensor, weight: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    total = (loss.masked_fill(loss.isinf(), 0.0) * weight).sum()
    found = torch.autograd.grad(total, leaves, allow_unused=True)
    return [torch.zeros_like(leaf) if one is None else one for one, leaf in zip(found, leaves, strict=True)]


def check(case: Case, weight: Tensor, is_counted: Tensor | None = None) -> None:
    found, expected = case.loss(is_counted), case.definition()
    torch.testing.assert_close(found, expected)
    of_found, of_expected = (gradients(loss, weight, case.leaves) for loss in (found, expected))
    for one, other in zip(of_found, of_expected, strict=True):
        torch.testing.assert_close(one, other)


@given(cases(), cells, st.integers(0, 1000))
def test_losses_of_any_weights(case: Case, cells: int, seed: int) -> None:
    functional.CPU_CELLS = cells
    check(case, torch.randn(len(case.targets), generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


@given(cases(), cells, st.integers(0, 1000))
def test_losses_that_count_alike(case: Case, cells: int, seed: int) -> None:
    functional.CPU_CELLS = cells
    is_counted = torch.rand(len(case.targets), generator=torch.Generator().manual_seed(seed)) < 0.7
    check(case, 0.37 * is_counted, is_counted)


@pytest.mark.parametrize("weight", [[0.5, 0.5, 0.0], [0.5, 0.25, 0.0], [0.5, 0.5, 0.5]], ids=["alike", "other", "out"])
def test_other_weights_than_promised_have_no_gradient_that_looks_like_one(weight: list[float]) -> None:
    hidden, rows = torch.randn(3, H), torch.randn(4, H, requires_grad=True)
    is_counted = torch.tensor([True, True, False])
    loss = log_linear_nll(hidden, torch.arange(3), rows, torch.zeros(4), is_counted=is_counted)
    (loss * torch.tensor(weight)).sum().backward()
    assert rows.grad is not None and bool(rows.grad.isnan().all()) == (weight != [0.5, 0.5, 0.0])


def test_a_second_derivative_is_refused() -> None:
    hidden = torch.randn(3, H, requires_grad=True)
    loss = log_linear_nll(hidden, torch.arange(3), torch.randn(4, H), torch.zeros(4)).sum()
    with pytest.raises(OptionError, match="no second derivative: leave create_graph=True out"):
        torch.autograd.grad(loss, hidden, create_graph=True)


@pytest.mark.parametrize("dtype, close", [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 1e-2)])
def test_torch_has_the_same_loss(dtype: torch.dtype, close: float) -> None:
    """That of a linear layer without a background; torch's, too, makes chunks."""
    functional.CPU_CELLS = 100
    torch.manual_seed(1)
    hidden, rows = (torch.randn(n, 16).to(dtype).requires_grad_() for n in (40, 12))
    targets, weight = torch.randint(12, (40,)), torch.ones(40, dtype=torch.bool)
    found = log_linear_nll(hidden, targets, rows, torch.zeros(12), is_counted=weight).mean()
    options = torch.nn.LinearCrossEntropyOptions()
    expected = linear_cross_entropy(hidden, rows, targets, options=options)
    torch.testing.assert_close(found, expected.to(found.dtype), rtol=close, atol=close)
    for one, other in zip(*(torch.autograd.grad(loss, [hidden, rows]) for loss in (found, expected)), strict=True):
        assert float((one - other).double().norm()) <= close * float(other.double().norm())


def test_float16_sums_over_many_positions() -> None:
    """Of 30,000 positions that all have one target, which is improbable: their sum is no number of float16."""
    functional.CPU_CELLS = 1 << 30
    hidden, rows = torch.full((30_000, 2), 4.0), torch.zeros(3, 2).requires_grad_()
    arguments = hidden.half(), torch.zeros(30_000, dtype=torch.int64), rows.half(), torch.tensor([-20.0, 0.0, 0.0])
    log_linear_nll(*arguments, is_counted=torch.ones(30_000, dtype=torch.bool)).mean().backward()
    torch.testing.assert_close(rows.grad, torch.tensor([[-4.0, -4.0], [2.0, 2.0], [2.0, 2.0]]), rtol=2e-3, atol=0.0)


@pytest.mark.parametrize("is_counted", [False, True])
def test_no_tensor_of_all_positions_and_classes(is_counted: bool) -> None:
    """Eagerly, in both passes; ten chunks have a tenth of it."""
    (module,) = load(SCRIPTS, "alive_tensors")
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
