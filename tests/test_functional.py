"""The loss on one page beside its definition, in value and gradient: any masses, slots, weights and chunks."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import plain_log_probs
from sparse_masses import sparse_masses
from torch import Tensor
from torch.nn.functional import linear_cross_entropy

from fairseq_llrnn import functional
from fairseq_llrnn.backgrounds.class_weights import ClassWeights
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.functional import log_linear_nll
from fairseq_llrnn.output.normalisers import class_log_probs

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


def with_compiler(is_compiling: bool) -> AbstractContextManager[object]:
    """Take the branches of compiled code, without a compiler."""
    return mock.patch.object(torch.compiler, "is_compiling", lambda: is_compiling)


@given(cases(), cells, st.integers(0, 1000), st.booleans())
def test_losses_of_any_weights(case: Case, cells: int, seed: int, is_compiling: bool) -> None:
    functional.CPU_CELLS = cells
    weight = torch.randn(len(case.targets), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    with with_compiler(is_compiling):
        check(case, weight)


@given(cases(), cells, st.integers(0, 1000), st.booleans())
def test_losses_that_count_alike(case: Case, cells: int, seed: int, is_compiling: bool) -> None:
    functional.CPU_CELLS = cells
    is_counted = torch.rand(len(case.targets), generator=torch.Generator().manual_seed(seed)) < 0.7
    with with_compiler(is_compiling):
        check(case, 0.37 * is_counted, is_counted)


@pytest.mark.parametrize("is_counted", [None, torch.ones(4, dtype=torch.bool)])
@pytest.mark.parametrize("learned", ["hidden", "rows", "bias", "slots", "added"])
def test_one_tensor_alone_has_a_gradient(learned: str, is_counted: Tensor | None) -> None:
    torch.manual_seed(5)
    shapes = {"hidden": (4, H), "rows": (5, H), "bias": (5,), "slots": (4, 2), "added": (3,)}
    tensors = {name: torch.randn(*shape, dtype=torch.float64) for name, shape in shapes.items()}
    leaf = tensors[learned].requires_grad_()
    mass = sparse_masses(
        torch.randn(1, 5, dtype=torch.float64), torch.tensor([0, 2, 2]), torch.tensor([1, 3, 4]), tensors["added"],
        None, torch.randn(4, dtype=torch.float64),
    )  # fmt: skip
    case = Case(
        tensors["hidden"], tensors["rows"], tensors["bias"], mass.of_groups, tensors["added"], tensors["slots"],
        torch.tensor([1, 6, 3, 5]), lambda log_mass, added: mass,
    )  # fmt: skip
    for cells in (1 << 20, 1):
        functional.CPU_CELLS = cells
        (found,) = torch.autograd.grad(case.loss(is_counted).sum(), leaf)
        (expected,) = torch.autograd.grad(case.definition().sum(), leaf)
        torch.testing.assert_close(found, expected)
    with torch.no_grad():
        torch.testing.assert_close(case.loss(is_counted), case.definition())


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 60), st.booleans(), st.data())
def test_chunks_are_whole_groups(
    num: int, num_classes: int, cells: int, is_compiling: bool, data: st.DataObject
) -> None:
    """Their number is the least power of two, or of four, with which a chunk fits, or the largest one up to G."""
    functional.CPU_CELLS = cells
    groups = data.draw(st.sampled_from([None, *(n for n in range(1, num + 1) if num % n == 0)]))
    bias = torch.zeros(num_classes) if groups is None else torch.zeros(groups, num_classes)
    nothing = ClassWeights(torch.zeros(1, num_classes), num)
    given = torch.arange(num).unsqueeze(1), torch.zeros(num_classes, 1), bias, None, torch.arange(num), nothing
    arguments = functional._Arguments(*given)
    with with_compiler(is_compiling):
        slices = arguments.slices()
    assert [part.stop for part in slices[:-1]] == [part.start for part in slices[1:]]
    assert slices[0].start == 0 and slices[-1].stop == num
    width, powers = num // (groups or num), [(4 if is_compiling else 2) ** n for n in range(7)]
    possible = [power for power in powers if power <= (groups or num)]
    assert len(slices) == next((n for n in possible if n * cells >= num * num_classes), possible[-1])
    sizes = {part.stop - part.start for part in slices}
    assert all(size % width == 0 for size in sizes) and max(sizes) - min(sizes) <= width
    parts = [arguments.at(part) for part in slices]
    assert torch.equal(torch.cat([part.hidden for part in parts]), arguments.hidden)
    assert torch.equal(torch.cat([part.targets for part in parts]), arguments.targets)
    if groups is not None:
        assert all(len(part.bias) * width == len(part.hidden) for part in parts)


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize("shift", [-1e4, 0.0, 1e4])
def test_no_digit_is_lost_if_masses_are_large(shift: float, slots: bool) -> None:
    """In float32, to 1e-5 of the loss and of 1 − p. Some p are near 1, others have an exponential of 0."""
    torch.manual_seed(6)
    hidden, rows = torch.randn(6, H).requires_grad_(), torch.randn(5, H)
    mass = torch.tensor([0.0, 9.0, -40.0, -300.0, 2.0])
    scores = torch.randn(6, 2) + torch.tensor([-20.0, 1.0]) if slots else None
    targets = torch.tensor([0, 1, 2, 3, 6, 5]) if slots else torch.tensor([0, 1, 2, 3, 4, 1])
    bias = torch.full((5,), shift)
    found = log_linear_nll(hidden, targets, rows, mass, None, bias, None if scores is None else scores + shift)
    exact = (hidden.double() @ rows.double().T).float().double() + mass.double()
    exact = exact if scores is None else torch.cat([exact, scores.double()], dim=1)
    expected = torch.nn.functional.cross_entropy(exact, targets, reduction="none")
    tolerance = 2e-3 if shift else 1e-5  # of numbers near 1e4, float32 has steps of 1e-3
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)
    (gradient,) = torch.autograd.grad(found.sum(), hidden, retain_graph=True)
    (wanted,) = torch.autograd.grad(expected.sum(), hidden)
    torch.testing.assert_close(gradient, wanted, rtol=2 * tolerance, atol=2 * tolerance)


def test_autocast_has_its_own_dtype() -> None:
    assert functional.UNIT == 256
    for dtype, expected in ((torch.float32, torch.bfloat16), (torch.float64, torch.float64)):
        hidden = torch.ones(2, dtype=dtype)
        assert functional.to_autocast(hidden) is hidden
        with torch.autocast("cpu", torch.bfloat16):
            assert functional.to_autocast(hidden).dtype == expected
            with functional.outside_autocast(hidden):
                assert functional.to_autocast(hidden) is hidden


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
