"""The log-bilinear network against its formula; what it sees, and what it does not."""

import pytest
import torch
from torch import Tensor

from fairseq_llrnn.plugin.models.llrnn_lm import LogBilinearNetwork

BATCH, TIME, WIDTH, HIDDEN = 3, 6, 4, 5


def by_definition(x: Tensor, matrices: Tensor) -> Tensor:
    """h_t = Σ_k R_k u_{t−k}: here x[:, t] is the word before position t."""
    rows = []
    for sentence in x:
        for t in range(len(sentence)):
            hidden = torch.zeros(matrices.size(1), dtype=x.dtype)
            for k, matrix in enumerate(matrices):
                if t - k >= 0:
                    hidden = hidden + matrix @ sentence[t - k]
            rows.append(hidden)
    return torch.stack(rows).view(*x.shape[:2], -1)


@pytest.mark.parametrize("context", [1, 2, 4, 9])
def test_values_and_gradients_of_the_formula(context: int) -> None:
    torch.manual_seed(context)
    network = LogBilinearNetwork(WIDTH, HIDDEN, context).double()
    x = torch.randn(BATCH, TIME, WIDTH, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(BATCH, TIME, HIDDEN, dtype=torch.float64)
    found, expected = network(x), by_definition(x, network.matrices)
    torch.testing.assert_close(found, expected)
    inputs = (x, network.matrices)
    of_found, of_expected = (torch.autograd.grad((h * weights).sum(), inputs) for h in (found, expected))
    for mine, right in zip(of_found, of_expected, strict=True):
        torch.testing.assert_close(mine, right)


def test_a_position_sees_the_words_of_its_context_and_no_other() -> None:
    network = LogBilinearNetwork(WIDTH, HIDDEN, 2).double()
    x = torch.randn(1, TIME, WIDTH, dtype=torch.float64, requires_grad=True)
    network(x)[0, 3].sum().backward()
    assert [bool(row.any()) for row in x.grad[0]] == [False, False, True, True, False, False]
    nearest = network(x[:, 2:4].detach())
    torch.testing.assert_close(nearest[:, -1], network(x)[:, 3])


def test_dropout_acts_in_training_only() -> None:
    torch.manual_seed(1)
    network = LogBilinearNetwork(WIDTH, HIDDEN, 3, dropout=0.5)
    x = torch.randn(BATCH, TIME, WIDTH)
    assert (network(x) == 0).any() and not (network.eval()(x) == 0).any()


def test_states_vary_as_much_as_the_words_do() -> None:
    torch.manual_seed(2)
    x = torch.randn(20, 30, 200)
    assert LogBilinearNetwork(200, 200, 4)(x)[:, 3:].std().item() == pytest.approx(1.0, abs=0.05)
