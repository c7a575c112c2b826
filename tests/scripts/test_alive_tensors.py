"""scripts/alive_tensors.py: the bytes of tensors that a step makes, and of nothing that was there before."""

import pytest
import torch
from example_modules import SCRIPTS, load
from torch import nn
from torch.nn import functional


@pytest.fixture
def alive() -> type:
    (module,) = load(SCRIPTS, "alive_tensors")
    found: type = module.Alive
    return found


def test_new_tensors_count_once_and_while_they_live(alive: type) -> None:
    with alive() as counted:
        whole = torch.ones(1000)
        part = whole[:500]
        assert counted.bytes == counted.peak == 4000
        del whole
        assert counted.bytes == 4000, "the part keeps it"
        del part
        assert (counted.bytes, counted.peak, counted.largest) == (0, 4000, 1000)


def test_what_was_there_before_does_not_count(alive: type) -> None:
    weight, gradient = torch.ones(50, 20), torch.zeros(50, 20)
    with alive() as counted:
        _ = weight.t()
        gradient.add_(weight.t()[0, 0].expand(50, 20))
    assert counted.peak == 0


def test_a_softmax_has_three_tensors_of_its_logits(alive: type) -> None:
    """Log-probabilities, their gradients and those of the logits; its weights were there before."""
    layer, hidden = nn.Linear(16, 500), torch.randn(64, 16, requires_grad=True)
    targets = torch.randint(500, (64,))
    with alive() as counted:
        functional.cross_entropy(layer(hidden), targets, reduction="sum").backward()
    assert counted.peak == pytest.approx(3 * 64 * 500 * 4, rel=0.001)
