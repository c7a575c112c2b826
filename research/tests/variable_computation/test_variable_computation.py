"""VCRNN and VCGRU: the equations number by number, in value and gradient; what is left out changes nothing."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thinned_grids import one_in
from torch import Tensor

from fairseq_llrnn.networks.recurrent import RecurrentNetwork, find_cell
from llrnn_research.variable_computation.plugin.computation_terms import ComputationTarget
from llrnn_research.variable_computation.variable_cells import (
    THRESHOLD,
    Sharpness,
    VariableCell,
    equivalent_rnn,
    sharpen,
    soft_mask,
)

VARIABLE = ["vcgru", "vcrnn"]


def sigmoid(a: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-a))


def made(cell: str, inputs: int, hidden: int, sharpness: float, seed: int = 0) -> VariableCell:
    torch.manual_seed(seed)
    layer = find_cell(cell).build(inputs, hidden)
    assert isinstance(layer, VariableCell)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    layer.sharpness = Sharpness(sharpness)
    return layer.double()


def slowly(layer: VariableCell, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor, list[list[int]]]:
    """Equations 2.8 to 2.14 for one number at a time: states (B, T, H), m (B, T) and how many masks are not zero."""
    size, lam = layer.hidden_size, layer.sharpness.after(int(layer.updates))
    dimensions = range(size)
    outputs, shares, widths = [], [], []
    for row in range(len(inputs)):
        h = [state[row, i] for i in dimensions]
        states_of_row, shares_of_row, widths_of_row = [], [], []
        for given_x in inputs[row]:
            x = list(given_x) if layer.project is None else list(layer.project.weight @ given_x)
            total = layer.from_start[0]
            for i in dimensions:
                total = total + layer.from_state[i] * h[i] + layer.from_input[i] * x[i]
            m = sigmoid(total)
            e = []
            for i in dimensions:
                value = sigmoid(lam * (m * size - (i + 1)))
                if value < THRESHOLD:
                    value = torch.zeros_like(value)
                elif value > 1 - THRESHOLD:
                    value = torch.ones_like(value)
                e.append(value)
            x_bar = [e[i] * x[i] for i in dimensions]
            h_bar = [e[i] * h[i] for i in dimensions]

            def product(k: int, i: int, x: list[Tensor], h: list[Tensor]) -> Tensor:
                total = layer.bias[k, i]
                for j in dimensions:
                    total = total + layer.weight_hh[k, i, j] * h[j] + layer.weight_ih[k, i, j] * x[j]
                return total

            if layer.gates == 1:
                h = [e[i] * torch.tanh(product(0, i, x_bar, h_bar)) + (1 - e[i]) * h[i] for i in dimensions]
            else:
                r = [sigmoid(product(0, i, x_bar, h_bar)) for i in dimensions]
                z = [e[i] * sigmoid(product(1, i, x_bar, h_bar)) for i in dimensions]
                reset = [r[i] * h_bar[i] for i in dimensions]
                new = [torch.tanh(product(2, i, x_bar, reset)) for i in dimensions]
                h = [z[i] * new[i] + (1 - z[i]) * h[i] for i in dimensions]
            states_of_row.append(torch.stack(h))
            shares_of_row.append(m)
            widths_of_row.append(sum(value.item() > 0 for value in e))
        outputs.append(torch.stack(states_of_row))
        shares.append(torch.stack(shares_of_row))
        widths.append(widths_of_row)
    return torch.stack(outputs), torch.stack(shares), widths


@pytest.mark.parametrize(("cell", "inputs", "sharpness"), one_in(5, VARIABLE, [5, 3], [0.3, 2.0, 20.0]))
def test_values_and_gradients_are_the_equations(cell: str, inputs: int, sharpness: float) -> None:
    layer = made(cell, inputs, 5, sharpness)
    x = torch.randn(2, 4, inputs, dtype=torch.float64, requires_grad=True)
    state = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    outputs, last, computation = layer.run(x, state.unsqueeze(0))
    expected, shares, widths = slowly(layer, x, state)
    torch.testing.assert_close(outputs, expected)
    torch.testing.assert_close(last[0], expected[:, -1])
    torch.testing.assert_close(computation.share, shares)
    assert computation.width.tolist() == widths

    weights = torch.randn_like(expected)
    wanted = [*layer.parameters(), x, state]
    ours = torch.autograd.grad((outputs * weights).sum() + computation.share.square().sum(), wanted)
    theirs = torch.autograd.grad((expected * weights).sum() + shares.square().sum(), wanted)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


@settings(max_examples=30, deadline=None)
@given(
    cell=st.sampled_from(VARIABLE), batch=st.integers(1, 4), hidden=st.integers(1, 9), inputs=st.integers(1, 9),
    sharpness=st.sampled_from([0.05, 1.0, 5.0, 50.0]), seed=st.integers(0, 99),
)  # fmt: skip
def test_what_is_left_out_changes_nothing(
    cell: str, batch: int, hidden: int, inputs: int, sharpness: float, seed: int
) -> None:
    """Without gradients only the first dimensions are computed: the numbers are those of masks over all of them."""
    layer = made(cell, inputs, hidden, sharpness, seed)
    x, state = torch.randn(batch, 6, inputs).double(), torch.randn(1, batch, hidden).double()
    masked = layer.run(x, state)
    with torch.no_grad():
        short = layer.run(x, state)
    torch.testing.assert_close(short[0], masked[0])
    torch.testing.assert_close(short[1], masked[1])
    torch.testing.assert_close(short[2].share, masked[2].share)
    assert torch.equal(short[2].width, masked[2].width)


@pytest.mark.parametrize("cell", VARIABLE)
def test_a_step_without_computation_keeps_the_state(cell: str) -> None:
    layer = made(cell, 4, 4, 50.0)
    torch.nn.init.constant_(layer.from_start, -100.0)
    state = torch.randn(1, 2, 4).double()
    with torch.no_grad():
        outputs, last, computation = layer.run(torch.randn(2, 3, 4).double(), state)
    assert torch.equal(last, state) and torch.equal(outputs, state[0].unsqueeze(1).expand(-1, 3, -1))
    assert (computation.width == 0).all()
    assert (computation.multiplications == 2 * 4).all()  # the scheduler's


def test_full_computation_is_the_ordinary_cell() -> None:
    """With m = 1 and a sharp mask, torch's RNN; of the GRU, whose reset torch applies elsewhere, the cost."""
    layer = made("vcrnn", 4, 4, 100.0)
    torch.nn.init.constant_(layer.from_start, 100.0)
    for weight in (layer.weight_ih, layer.weight_hh):
        weight.data[:, :, 3] = 0.0  # the last dimension has the mask σ(λ (H − H)) = 1/2, by equation 2.9
    ordinary = torch.nn.RNN(4, 4, batch_first=True).double()
    state = {"weight_ih_l0": layer.weight_ih[0], "weight_hh_l0": layer.weight_hh[0], "bias_ih_l0": layer.bias[0]}
    ordinary.load_state_dict({**state, "bias_hh_l0": torch.zeros(4)})
    x = torch.randn(2, 5, 4).double()
    assert soft_mask(torch.tensor([[4.0]]), torch.arange(1, 5), 100.0).tolist() == [[1.0, 1.0, 1.0, 0.5]]
    torch.testing.assert_close(layer.run(x)[0][:, :, :3], ordinary(x)[0][:, :, :3])
    for cell in VARIABLE:
        layer = made(cell, 4, 4, 100.0)
        torch.nn.init.constant_(layer.from_start, 100.0)
        cost = layer.run(x)[2].multiplications
        assert (cost == find_cell(cell).multiplications(4, 4) + 8).all()


def test_a_sharp_mask_is_a_hard_choice() -> None:
    reach, index = torch.tensor([[0.0], [3.0], [5.2]], dtype=torch.float64), torch.arange(1, 11)
    mask = soft_mask(reach, index, 1000.0)
    assert mask.sum(1).tolist() == pytest.approx([0.0, 2.5, 5.0])  # dimension 3 is exactly on the edge of the second
    soft = soft_mask(reach, index, 0.1)
    assert ((soft > 0) & (soft < 1)).all()


def test_sharpness_rises_with_the_updates_and_is_kept_with_the_weights() -> None:
    layer = made("vcgru", 3, 3, 1.0)
    layer.sharpness = Sharpness(2.0, 10)
    seen = []
    for update in (0, 5, 10, 20):
        layer.set_num_updates(update)
        seen.append(layer.sharpness.after(int(layer.updates)))
    assert seen == pytest.approx([0.2, 1.1, 2.0, 2.0])
    layer.set_num_updates(5)
    other = made("vcgru", 3, 3, 1.0, seed=1)
    other.sharpness = layer.sharpness
    other.load_state_dict(layer.state_dict())
    x = torch.randn(1, 4, 3).double()
    assert torch.equal(other(x)[0], layer(x)[0])


def test_the_width_of_an_elman_network_with_as_many_multiplications() -> None:
    assert equivalent_rnn(find_cell("rnn").multiplications(8, 8)) == 8
    assert equivalent_rnn(2 * find_cell("lstm").multiplications(8, 8), num_layers=2) == 16


def test_a_network_says_how_much_its_layers_computed() -> None:
    torch.manual_seed(0)
    network = RecurrentNetwork(3, 5, 2, "vcrnn").double()
    sharpen(network, Sharpness(5.0))
    run = network.run(torch.randn(2, 4, 3).double())
    assert run.shares is not None and run.shares.shape == (2, 4, 2)
    assert run.multiplications is not None and run.multiplications.shape == (2, 4)
    first, second = network.layers
    with torch.no_grad():
        x, _, one = first.run(torch.zeros(2, 4, 3).double())
        _, _, two = second.run(x)
        both = network.run(torch.zeros(2, 4, 3).double()).multiplications
    assert torch.equal(both, 2 * one.width**2 + 10 + 15 + 2 * two.width**2 + 10)
    constant = RecurrentNetwork(3, 5, 1, "gru").run(torch.randn(2, 4, 3))
    assert constant.shares is None and constant.multiplications is None
    with pytest.raises(ValueError, match="expected a cell of variable computation, found 'gru'"):
        sharpen(RecurrentNetwork(3, 5, 1, "gru"), Sharpness())


def test_the_penalty_is_the_distance_to_the_target() -> None:
    shares = torch.tensor([[[0.2, 0.4], [0.9, 0.7], [0.5, 0.5]]]).double()
    tokens = torch.tensor([[7, 4, 9]])
    plain = ComputationTarget(0.3, 2.0).penalty(shares, tokens)
    torch.testing.assert_close(plain, torch.tensor([[0.2, 1.0, 0.4]]).double())
    guided = ComputationTarget(0.3, 2.0, boundaries=(4, 5)).penalty(shares, tokens)
    torch.testing.assert_close(guided, torch.tensor([[0.2, 2 * 0.2, 0.4]]).double())


@pytest.mark.parametrize("cell", VARIABLE)
def test_scheduler_is_exact_in_half_precision(cell: str) -> None:
    """m times H has no room in 16 bits: the scheduler computes in float32, whatever the weights are."""
    layer = made(cell, 4, 300, 1.0).bfloat16()
    x = torch.randn(1, 3, 4, dtype=torch.bfloat16)
    outputs, _, computation = layer.run(x)
    assert outputs.dtype == torch.bfloat16 and computation.share.dtype == torch.float32
    assert math.isfinite(outputs.float().sum().item())


@pytest.mark.parametrize("cell", ["vcrnn", "vcgru"])
@pytest.mark.parametrize("input_size", [6, 8])
def test_products_in_half_precision(cell: str, input_size: int) -> None:
    torch.manual_seed(1)
    network = RecurrentNetwork(input_size, 8, 2, cell)
    x = torch.randn(2, 3, input_size)
    with torch.autocast("cpu", torch.bfloat16):
        hidden = network(x)[0]
    torch.testing.assert_close(hidden.float(), network(x)[0], atol=0.05, rtol=0.05)
    hidden.float().sum().backward()
