"""Maxout: unit by unit, the largest of its linear functions."""

import pytest
import torch

from fairseq_llrnn.systems.translators.plugin.llrnn_encoder_decoder import Maxout


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_equals_the_loop_in_value_and_gradient(pieces: int) -> None:
    torch.manual_seed(0)
    layer = Maxout(5, 4, pieces).double()
    x = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    found = layer(x)
    weight, bias = layer.linear.weight, layer.linear.bias
    units = [
        torch.stack([x @ weight[m * pieces + p] + bias[m * pieces + p] for p in range(pieces)]).max(0).values
        for m in range(4)
    ]
    expected = torch.stack(units, dim=-1)
    torch.testing.assert_close(found, expected)
    cotangent = torch.randn_like(found)
    inputs = (x, weight, bias)
    for ours, slow in zip(
        torch.autograd.grad((found * cotangent).sum(), inputs),
        torch.autograd.grad((expected * cotangent).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(ours, slow)
