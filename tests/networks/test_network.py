"""The recurrent network: steps equal sequences, states reorder, dropouts do what they say."""

import pytest
import torch

from fairseq_llrnn.networks.recurrent import RecurrentNetwork, all_cells, dropout, find_cell

BATCH, TIME, WIDTH, HIDDEN = 4, 7, 5, 6


@pytest.mark.parametrize("cell", all_cells())
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_step_by_step_equals_the_whole_sequence(cell: str, layers: int, layer_norm: bool) -> None:
    torch.manual_seed(0)
    network = RecurrentNetwork(WIDTH, HIDDEN, layers, cell, layer_norm=layer_norm).double().eval()
    x = torch.randn(BATCH, TIME, WIDTH, dtype=torch.float64)
    whole, last = network(x)
    state, steps = None, []
    for t in range(TIME):
        hidden, state = network(x[:, t : t + 1], state)
        steps.append(hidden)
    torch.testing.assert_close(torch.cat(steps, 1), whole)
    torch.testing.assert_close(state, last)
    assert whole.shape == (BATCH, TIME, HIDDEN) and last.shape == (BATCH, find_cell(cell).states, layers, HIDDEN)


@pytest.mark.parametrize("cell", all_cells())
def test_reordering_states_reorders_what_follows(cell: str) -> None:
    network = RecurrentNetwork(WIDTH, HIDDEN, 2, cell).double().eval()
    x = torch.randn(BATCH, TIME, WIDTH, dtype=torch.float64)
    order = torch.tensor([2, 2, 0, 3])
    _, state = network(x[:, :4])
    after, _ = network(x[order, 4:], state.index_select(0, order))
    whole, _ = network(x[order])
    torch.testing.assert_close(after, whole[:, 4:])


def test_one_layer_is_torchs_lstm() -> None:
    network = RecurrentNetwork(WIDTH, HIDDEN, 1)
    x = torch.randn(BATCH, TIME, WIDTH)
    assert torch.equal(network(x)[0], network.layers[0](x)[0])


def test_no_position_sees_the_future() -> None:
    network = RecurrentNetwork(WIDTH, HIDDEN, 2).double()
    x = torch.randn(1, TIME, WIDTH, dtype=torch.float64, requires_grad=True)
    network(x)[0][0, 3].sum().backward()
    assert (x.grad[0, 4:] == 0).all() and (x.grad[0, :4] != 0).any()


def test_variational_dropout_keeps_one_mask_per_sequence() -> None:
    torch.manual_seed(0)
    ones = torch.ones(64, TIME, WIDTH)
    dropped = dropout(ones, 0.4, training=True, variational=True)
    assert (dropped == dropped[:, :1]).all()
    assert dropped.unique().tolist() == pytest.approx([0.0, 1 / 0.6])
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.15)
    ordinary = dropout(ones, 0.4, training=True, variational=False)
    assert (ordinary != ordinary[:, :1]).any()


@pytest.mark.parametrize("variational", [False, True])
@pytest.mark.parametrize("where", ["dropout_in", "dropout_between", "dropout_out"])
def test_dropout_acts_in_training_only(where: str, variational: bool) -> None:
    x = torch.randn(BATCH, TIME, WIDTH)
    torch.manual_seed(1)
    plain = RecurrentNetwork(WIDTH, HIDDEN, 2).eval()
    network = RecurrentNetwork(
        WIDTH, HIDDEN, 2, dropout_in=0.5 * (where == "dropout_in"), dropout_between=0.5 * (where == "dropout_between"),
        dropout_out=0.5 * (where == "dropout_out"), variational=variational,
    )  # fmt: skip
    network.load_state_dict(plain.state_dict())
    assert not torch.allclose(network.train()(x)[0], plain(x)[0])
    assert torch.equal(network.eval()(x)[0], plain(x)[0])


def test_unknown_cell() -> None:
    with pytest.raises(ValueError, match="cell: expected one of gru, lstm, .*rnn.*, found 'elman'$"):
        RecurrentNetwork(WIDTH, HIDDEN, 1, "elman")


@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
def test_multiplications_are_the_weights_of_the_matrices(cell: str) -> None:
    """Every weight of a matrix is multiplied once a step; biases are added."""
    layer = find_cell(cell).build(WIDTH, HIDDEN)
    weights = sum(p.numel() for p in layer.parameters() if p.dim() == 2)
    assert find_cell(cell).multiplications(WIDTH, HIDDEN) == weights
