"""Global attention: weights against loops, padding is never seen, gradients are right."""

import pytest
import torch

from fairseq_llrnn.networks.recurrent import ATTENTIONS, GlobalAttention

BATCH, TIME, LENGTH, WIDTH = 3, 4, 5, 6
PADDING = torch.tensor([[False] * 5, [True, True, False, False, False], [False, True, True, True, True]])


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return torch.randn(BATCH, TIME, WIDTH).double(), torch.randn(BATCH, LENGTH, WIDTH).double()


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_weights_and_states_are_those_of_the_definition(kind: str) -> None:
    attention = GlobalAttention(kind, WIDTH, WIDTH).double()
    hidden, source = inputs()
    states, weights = attention(hidden, source, PADDING)
    torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, TIME).double())
    assert (weights[PADDING.unsqueeze(1).expand_as(weights)] == 0).all()
    for b in range(BATCH):
        for t in range(TIME):
            h = hidden[b, t]
            seen = [j for j in range(LENGTH) if not PADDING[b, j]]
            if kind == "additive":
                raw = [attention.energy(torch.tanh(attention.query(h) + attention.key(source[b, j]))) for j in seen]
            else:
                raw = [(attention.query(h) * source[b, j]).sum() for j in seen]
            expected = torch.stack([r.reshape(()) for r in raw]).softmax(0)
            torch.testing.assert_close(weights[b, t, seen], expected)
            context = sum(w * source[b, j] for w, j in zip(expected, seen, strict=True))
            combined = torch.tanh(attention.combine(torch.cat([context, h])))
            torch.testing.assert_close(states[b, t], combined)


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_gradients_reach_every_parameter(kind: str) -> None:
    attention = GlobalAttention(kind, WIDTH, WIDTH).double()
    hidden, source = inputs()
    attention(hidden, source, PADDING)[0].sum().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in attention.parameters())


