"""τ(K, σ): masses to a power, against the definition, in value and gradient."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_masses import sparse_masses
from torch import Tensor

from fairseq_llrnn.backgrounds.class_weights import ClassWeights
from fairseq_llrnn.functional import log_linear_nll
from fairseq_llrnn.output.learned_temperature import LearnedTemperature

ROWS, CLASSES, WIDTH = 4, 5, 3


def corrections(seed: int, entries: int, only: bool) -> ClassWeights:
    """Some of four rows; the last class is forbidden to all of them, and to the second row what has no entry."""
    generator = torch.Generator().manual_seed(seed)
    shared = torch.randn(1, CLASSES, dtype=torch.float64, generator=generator)
    shared[0, -1] = -math.inf
    return sparse_masses(
        shared=shared,
        rows=torch.randint(0, ROWS, (entries,), generator=generator),
        classes=torch.randint(0, CLASSES - 1, (entries,), generator=generator),
        added=torch.randn(entries, dtype=torch.float64, generator=generator),
        only=torch.arange(ROWS) == 1 if only else None,
        constant=torch.randn(ROWS, dtype=torch.float64, generator=generator),
    )


def made(seed: int) -> LearnedTemperature:
    layer = LearnedTemperature(WIDTH, CLASSES).double()
    torch.manual_seed(seed)
    with torch.no_grad():
        layer.weight.normal_()
        layer.bias.normal_()
        layer.of_class.normal_()
    return layer


def by_definition(class_weights: ClassWeights, power: Tensor) -> Tensor:
    """log B₀ + τ r + constant, −inf where the mass is 0; power: τ, (N, S)."""
    dense = class_weights.dense()
    forbidden = dense.isneginf()
    shared = class_weights.shared.masked_fill(class_weights.shared.isneginf(), 0.0)
    said = dense.masked_fill(forbidden, 0.0) - shared - class_weights.entries.constant.unsqueeze(1)
    mixed = shared + power * said + class_weights.entries.constant.unsqueeze(1)
    return mixed.masked_fill(forbidden, -math.inf)


@given(st.integers(0, 2**31), st.integers(0, 8), st.booleans())
@settings(max_examples=60)
def test_masses_to_a_power(seed: int, entries: int, only: bool) -> None:
    class_weights, layer = corrections(seed, entries, only), made(seed)
    hidden = torch.randn(ROWS, WIDTH, dtype=torch.float64)
    power = torch.stack([1 + layer.weight @ h + layer.bias + layer.of_class for h in hidden])
    torch.testing.assert_close(layer.applied(class_weights, hidden).dense(), by_definition(class_weights, power))


def test_it_begins_as_the_background() -> None:
    layer, class_weights = LearnedTemperature(WIDTH, CLASSES).double(), corrections(1, 6, True)
    hidden = torch.randn(ROWS, WIDTH, dtype=torch.float64)
    assert torch.equal(layer.applied(class_weights, hidden).dense(), class_weights.dense())
    assert layer.float().applied(class_weights, hidden.bfloat16()).entries.added.dtype == torch.float64


def test_changes_are_bounded() -> None:
    """A factor of e^100,000 is as good as any larger one, and float32 keeps it apart from infinity."""
    layer, class_weights = made(1), corrections(1, 6, False)
    torch.nn.init.constant_(layer.bias, 1e9)
    added = layer.applied(class_weights, torch.zeros(ROWS, WIDTH, dtype=torch.float64)).entries.added
    assert added.abs().tolist() == [1e5] * 6 and torch.equal(added.sign(), class_weights.entries.added.sign())


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize("only", [False, True])
def test_gradients(slots: bool, only: bool) -> None:
    """Against finite differences, and against the definition's own; a row has several entries, some of its target."""
    torch.manual_seed(3)
    class_weights = corrections(4, 9, only)
    hidden, rows = (torch.randn(n, WIDTH, dtype=torch.float64, requires_grad=True) for n in (ROWS, CLASSES))
    power = torch.randn(ROWS, CLASSES, dtype=torch.float64, requires_grad=True)
    scores = [torch.randn(ROWS, 2, dtype=torch.float64, requires_grad=True)] if slots else []
    target = torch.tensor(
        [int(class_weights.entries.classes[class_weights.entries.rows == row][0]) for row in range(ROWS)]
    )
    if slots:
        target[2] = CLASSES + 1

    def fast(h: Tensor, r: Tensor, p: Tensor, *s: Tensor) -> Tensor:
        own = class_weights.entries
        powered = replace(class_weights, entries=replace(own, added=own.added * p[own.rows, own.classes]))
        return -log_linear_nll(h, target, r, powered, None, None, *(s or [None]))

    def slow(h: Tensor, r: Tensor, p: Tensor, *s: Tensor) -> Tensor:
        every = torch.cat([h @ r.T + by_definition(class_weights, p), *s], dim=1)
        return every.log_softmax(1).gather(1, target.unsqueeze(1)).squeeze(1)

    leaves = (hidden, rows, power, *scores)
    torch.testing.assert_close(fast(*leaves), slow(*leaves))
    ours, theirs = (torch.autograd.grad(f(*leaves).sum(), leaves) for f in (fast, slow))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)
    assert torch.autograd.gradcheck(fast, leaves)
