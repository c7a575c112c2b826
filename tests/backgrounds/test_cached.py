"""Values that are computed once (backgrounds/cached.py)."""

import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.cached import cached_property


class Counting(nn.Module):
    calls = 0

    @cached_property
    def inner(self) -> nn.Module:
        self.calls += 1
        return nn.Linear(1, 1)

    @cached_property
    def value(self) -> Tensor:
        self.calls += 1
        return torch.ones(2)


class More(Counting):
    @cached_property
    def value(self) -> Tensor:
        return super().value + 1


def test_a_value_is_computed_once_and_a_module_is_not_registered() -> None:
    one = Counting()
    assert one.inner is one.inner and one.value is one.value and one.calls == 2
    assert list(one.modules()) == [one] and not list(one.parameters())
    del one.__dict__["value"]  # as a move to another device does
    assert one.value is one.value and one.calls == 3


def test_a_subclass_reads_the_value_of_its_base() -> None:
    assert More().value.tolist() == [2.0, 2.0]
    torch._dynamo.reset()

    @torch.compile(backend="eager", fullgraph=True)
    def double(x: Tensor) -> Tensor:
        return x * Counting().value

    assert double(torch.ones(2)).tolist() == [1.0, 1.0]
