"""--weight-drop, --activation-penalty, --change-penalty: what they compute, in training alone; what is refused."""

from functools import partial
from pathlib import Path

import pytest
import torch
from dynamic_prior import LINES
from shell import Shell
from tiny_world import World, batch, build, evaluated
from torch import nn
from torch.nn import functional
from translation_world import TranslationWorld

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evaluation.texts import sum_of
from fairseq_llrnn.networks.recurrent import RecurrentNetwork
from fairseq_llrnn.plugin.scoring.text_bits import load_text_scorer
from fairseq_llrnn.systems.regularisation.plugin.state_penalties import state_penalties, with_dropped_weights

CELLS = ["lstm", "gru", "rnn", "mogrifier"]
ALL = ["--weight-drop", "0.5", "--activation-penalty", "2", "--change-penalty", "3"]


def hidden_matrix(layer: nn.Module) -> nn.Parameter:
    [weight] = (weight for name, weight in layer.named_parameters() if "weight_hh" in name)
    return weight


@pytest.mark.parametrize("cell", CELLS)
def test_a_layer_with_dropped_weights_is_one_that_has_not_got_them(cell: str) -> None:
    """One mask for all sentences and time steps; the rest grows by 1 / (1 − P), and is alone in the gradient."""
    layer, other = (RecurrentNetwork(3, 4, 1, cell).double().layers[0] for _ in range(2))
    other.load_state_dict(layer.state_dict())
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    torch.manual_seed(3)
    found, _ = with_dropped_weights(0.5, layer, x, None)
    torch.manual_seed(3)
    mask = functional.dropout(torch.ones_like(hidden_matrix(layer)), 0.5)
    assert set(mask.unique().tolist()) == {0.0, 2.0}
    hidden_matrix(other).data *= mask
    expected, _ = other(x)
    torch.testing.assert_close(found, expected)
    found.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(hidden_matrix(layer).grad, mask * hidden_matrix(other).grad)


def test_weights_are_dropped_in_training_alone() -> None:
    network = RecurrentNetwork(3, 4, 2, "lstm")
    x = torch.randn(2, 5, 3)
    plain = network(x)[0]
    names = list(network.state_dict())
    network.call_layer = partial(with_dropped_weights, 0.5)
    assert not torch.equal(network(x)[0], plain)
    assert torch.equal(network.eval()(x)[0], plain)
    assert list(network.state_dict()) == names


def test_a_cell_without_such_weights_is_refused() -> None:
    with pytest.raises(OptionError, match=r"--weight-drop: expected a cell with .* weight_hh…, found none in Linear"):
        with_dropped_weights(0.5, nn.Linear(2, 2), torch.ones(1, 1, 2), None)


def test_penalties_by_numbers_and_in_the_loss(world: World) -> None:
    setting = evaluated([*world.train_args(), *ALL[2:]], scale=0.3)
    plain = evaluated(world.train_args(), scale=0.3)
    sample = batch(setting.task.dictionary, LINES)
    without, _, _ = plain.criterion(plain.model, sample)
    # the validation loss, which chooses the best epoch, has no penalty
    assert setting.criterion(setting.model, sample)[0].item() == pytest.approx(without.item())
    setting.model.train()
    loss, _, log = setting.criterion(setting.model, sample)
    decoder, total = setting.model.decoder, {"activation": 0.0, "change": 0.0}
    states = decoder.network(decoder.head.embed(sample["net_input"]["src_tokens"]))[0].tolist()
    for words, targets in zip(states, sample["target"].tolist(), strict=True):
        for t, state in enumerate(words):
            if targets[t] != setting.task.dictionary.pad():
                before = words[t - 1] if t else state
                total["activation"] += 2 * sum(value**2 for value in state) / len(state)
                change = sum((value - last) ** 2 for value, last in zip(state, before, strict=True))
                total["change"] += 3 * change / len(state)
    assert (loss - without).item() == pytest.approx(sum(total.values()), rel=1e-4)
    for name, value in total.items():
        assert log[f"mean_of_{name}_penalty"] == pytest.approx(value, rel=1e-4)


def test_one_penalty_sees_dropout_and_the_other_does_not() -> None:
    network = RecurrentNetwork(3, 4, 1, dropout_out=0.5)
    x = torch.randn(2, 5, 3)
    run = network.run(x)
    activation, change = state_penalties(1.0, 1.0, run, x)
    torch.testing.assert_close(activation.values, run.hidden.pow(2).mean(-1))
    raw = network.layers[0](x)[0]
    torch.testing.assert_close(change.values[:, 1:], (raw[:, 1:] - raw[:, :-1]).pow(2).mean(-1))
    assert change.values[:, 0].eq(0).all()


def test_without_them_nothing_changes(world: World) -> None:
    network = build([*world.train_args(), "--weight-drop", "0"]).model.decoder.network
    assert network.call_layer is nn.Module.__call__ and network.terms == []


def test_they_stand_beside_variable_computation(world: World) -> None:
    setting = build([*world.train_args(), "--cell", "vcgru", "--change-penalty", "1"])
    _, _, log = setting.criterion(setting.model, batch(setting.task.dictionary, LINES))
    assert {"mean_of_computation_penalty", "mean_of_change_penalty"} <= set(log)


def test_the_log_has_the_penalties(shell: Shell, world: World, tmp_path: Path) -> None:
    options = [*ALL, "--dropout", "0.2", "--cell", "mogrifier"]
    said = shell.run("fairseq-train", *world.train_args(save_dir=tmp_path), *options, "--max-epoch", 1)
    last = said.json_lines("train")[-1]
    assert last["train_loss"] > last["train_nll_loss"] and last["train_activation_penalty"] > 0
    (valid,) = said.json_lines("valid")
    assert valid["valid_loss"] == valid["valid_nll_loss"] and valid["valid_activation_penalty"] > 0


@pytest.mark.parametrize("cell", CELLS)
def test_what_a_gpu_trains_a_cpu_scores_alike(
    gpu: torch.device, shell: Shell, world: World, tmp_path: Path, cell: str
) -> None:
    training = [option for option in world.train_args(save_dir=tmp_path) if option != "--cpu"]
    done = shell.run("fairseq-train", *training, *ALL, "--cell", cell, "--max-epoch", 2)
    scored = sum_of(load_text_scorer(str(tmp_path / "checkpoint_last.pt"), 4000).lines(world.text("valid")))
    bits = (scored.known_bits + scored.end_bits) / (scored.words + scored.sentences)
    assert bits == pytest.approx(done.json_lines("valid")[-1]["valid_nll_loss"], abs=2e-3)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--weight-drop", "1"], r"--weight-drop 1\.0: expected a probability from 0 to below 1"),
        (["--weight-drop", "nan"], r"--weight-drop nan: expected a probability from 0 to below 1"),
        (["--activation-penalty", "-1"], r"--activation-penalty -1\.0: expected a number from 0 to 1,000,000"),
        (["--change-penalty", "nan"], r"--change-penalty nan: expected a number from 0 to 1,000,000"),
        (["--weight-drop", "0.5", "--cell", "vcgru"], r"--weight-drop 0\.5: not supported with --cell vcgru"),
        (
            ["--change-penalty", "1", "--context-window", "4"],
            r"--change-penalty 1\.0: not supported with --context-window 4",
        ),
    ],
)
def test_what_is_refused(world: World, options: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build([*world.train_args(), *options])


def test_translation_models_refuse_them_too(translation: TranslationWorld) -> None:
    with pytest.raises(OptionError, match="--weight-drop 2.0: expected a"):
        build([*translation.train_args("llrnn_lstm"), "--weight-drop", "2"])
