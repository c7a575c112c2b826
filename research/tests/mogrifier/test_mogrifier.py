"""--cell mogrifier: the equations, by numbers of one step after the other, and models that have it."""

import math

import torch
from dynamic_prior import LINES
from tiny_world import evaluated
from translation_world import TranslationWorld, assert_steps_agree, pairs

from fairseq_llrnn.networks.recurrent import RecurrentNetwork
from llrnn_research.mogrifier.mogrifier import ROUNDS, MogrifierLSTM

D, H = 3, 4


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def product(matrix: torch.Tensor, vector: list[float]) -> list[float]:
    return [sum(float(weight) * value for weight, value in zip(row, vector, strict=True)) for row in matrix]


def by_numbers(layer: MogrifierLSTM, words: list[list[float]]) -> list[list[float]]:
    """States of one sequence."""
    h, c, states = [0.0] * H, [0.0] * H, []
    for x in words:
        for i in range(1, ROUNDS + 1):
            if i % 2:
                x = [2 * sigmoid(q) * value for q, value in zip(product(layer.of_input[i // 2], h), x, strict=True)]
            else:
                h = [2 * sigmoid(r) * value for r, value in zip(product(layer.of_state[i // 2 - 1], x), h, strict=True)]
        read, kept = product(layer.step.weight_ih, x), product(layer.step.weight_hh, h)
        biases = [float(a) + float(b) for a, b in zip(layer.step.bias_ih, layer.step.bias_hh, strict=True)]
        gates = [a + b + d for a, b, d in zip(read, kept, biases, strict=True)]  # of input, forget, cell, output
        enter, forget, new, out = (gates[k * H : (k + 1) * H] for k in range(4))
        c = [sigmoid(f) * old + sigmoid(i) * math.tanh(g) for f, old, i, g in zip(forget, c, enter, new, strict=True)]
        h = [sigmoid(o) * math.tanh(value) for o, value in zip(out, c, strict=True)]
        states.append(h)
    return states


def test_the_layer_is_its_equations() -> None:
    torch.manual_seed(1)
    layer = MogrifierLSTM(D, H).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter.requires_grad_(False))
    x = torch.randn(2, 5, D, dtype=torch.float64)
    found, _ = layer(x)
    torch.testing.assert_close(found, torch.tensor([by_numbers(layer, one.tolist()) for one in x]).double())


def test_its_gradients() -> None:
    layer = RecurrentNetwork(2, 2, 1, "mogrifier").layers[0].double()
    x = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x, *weights: layer(x)[0], (x, *layer.parameters()))


def test_without_matrices_it_is_an_lstm() -> None:
    layer, lstm = MogrifierLSTM(D, H).double(), torch.nn.LSTM(D, H, batch_first=True).double()
    for matrix in (*layer.of_input, *layer.of_state):
        torch.nn.init.zeros_(matrix)
    lstm.load_state_dict({f"{name}_l0": weight for name, weight in layer.step.state_dict().items()})
    x = torch.randn(2, 5, D, dtype=torch.float64)
    (found, after), (expected, last) = layer(x), lstm(x)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(after, last)


def test_its_forget_gates_are_open_at_the_start() -> None:
    step = RecurrentNetwork(D, H, 1, "mogrifier").layers[0].step
    assert step.bias_hh[H : 2 * H].eq(1).all() and step.bias_hh[:H].abs().lt(0.11).all()


def test_steps_of_a_search_equal_the_whole_sequence(translation: TranslationWorld) -> None:
    setting = evaluated([*translation.train_args("llrnn_lstm"), "--cell", "mogrifier"], scale=0.3)
    with torch.no_grad():
        assert_steps_agree(setting, pairs(setting.task, LINES))
