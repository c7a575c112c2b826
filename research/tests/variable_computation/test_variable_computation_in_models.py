"""--cell vcgru and vcrnn in models: searches, the penalty in the loss, what the log says, resuming, refusals."""

import json
import math
import re
from functools import partial
from pathlib import Path

import pytest
import torch
from dynamic_prior import LINES
from omegaconf import OmegaConf
from same_training import resumed_as_whole
from shell import Shell
from tiny_world import Setting, World, batch, build, evaluated, read_checkpoint
from translation_world import TranslationWorld, assert_steps_agree, pairs

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evaluation.texts import sum_of
from fairseq_llrnn.networks.recurrent import RecurrentEncoder
from fairseq_llrnn.plugin.scoring.explainer import load_explainer
from fairseq_llrnn.plugin.scoring.text_bits import load_text_scorer
from llrnn_research.variable_computation.explain import (
    LINE,
    ReadSentence,
    draw_computation,
    lines_of,
)

VARIABLE = ["--cell", "vcgru", "--vc-sharpness", "5", "--vc-sharpen-updates", "0"]


def made(args: list[object]) -> Setting:
    return evaluated(args, scale=0.3)


@pytest.mark.parametrize(("cell", "attention"), [("vcgru", "general"), ("vcrnn", "none")])
def test_steps_of_a_search_equal_the_whole_sequence(translation: TranslationWorld, cell: str, attention: str) -> None:
    options = ["--cell", cell, "--vc-sharpness", "5", "--vc-sharpen-updates", "0", "--attention", attention]
    setting = made([*translation.train_args("llrnn_lstm"), *options])
    with torch.no_grad():
        assert_steps_agree(setting, pairs(setting.task, LINES))


def test_the_encoder_computes_everything(translation: TranslationWorld) -> None:
    encoder = build([*translation.train_args("llrnn_lstm"), *VARIABLE]).model.encoder.network
    assert isinstance(encoder, RecurrentEncoder)
    assert all(isinstance(layer, torch.nn.GRU) for directions in encoder.layers for layer in directions)


def test_the_loss_holds_the_penalty_and_the_log_what_was_computed(world: World) -> None:
    options = [*VARIABLE, "--vc-target", "0.2", "--vc-penalty", "3", "--vc-guide", "le la"]
    setting = made([*world.train_args(), *options])
    plain = made([*world.train_args(), *VARIABLE, "--vc-penalty", "0"])
    sample = batch(setting.task.dictionary, LINES)
    loss, size, log = setting.criterion(setting.model.train(), sample)
    without, _, _ = plain.criterion(plain.model.train(), sample)

    previous, target = sample["net_input"]["src_tokens"], sample["target"]
    decoder = setting.model.decoder
    run = decoder.network.run(decoder.head.embed(previous))
    mask = target.ne(setting.task.dictionary.pad())
    boundary = torch.isin(previous, torch.tensor([setting.task.dictionary.index(w) for w in ("le", "la")]))
    assert boundary.any() and not boundary[mask].all()
    distance = (run.shares - torch.where(boundary, 1.0, 0.2).unsqueeze(-1)).abs().mean(-1)
    torch.testing.assert_close(loss - without, 3 * distance[mask].sum())
    assert log["nll_loss"] == pytest.approx(without.item())
    assert log["mean_of_computation"] == pytest.approx(run.shares[mask].mean(-1).sum().item(), rel=1e-5)
    assert log["mean_of_computation_penalty"] == pytest.approx(3 * distance[mask].sum().item(), rel=1e-5)
    # two layers of width 16; an Elman network of two layers with d² = multiplications / 4 computes as much
    assert log["root_of_rnn_dimension"] == pytest.approx(run.multiplications[mask].sum().item() / 4)
    loss.backward()
    for layer in decoder.network.layers:
        assert layer.from_state.grad.abs().sum() > 0


def test_training_resumes_with_the_same_sharpness_and_scores_with_it(
    shell: Shell, world: World, tmp_path: Path
) -> None:
    """Straight or stopped and resumed: the same weights, λ of the updates done; then score, generate, explain."""
    options = ["--cell", "vcgru", "--vc-sharpness", "4", "--vc-sharpen-updates", "1000", "--vc-target", "0.3"]
    done = resumed_as_whole(shell, partial(world.train_args, "prior"), tmp_path, *options)
    said, checkpoint = done.json_lines("valid")[-1], tmp_path / "whole" / "checkpoint_last.pt"
    updates = read_checkpoint(checkpoint)["model"]["decoder.network.layers.0.updates"].item()
    assert 0 < updates < 1000  # the checkpoint is used with the λ of here, not with the last one

    assert 0 < said["valid_computation"] < 1
    # 16 dimensions, two layers: between nothing and all of a GRU's six matrices and the scheduler
    assert 0 < said["valid_rnn_dimension"] < math.sqrt((6 * 16**2 + 32) / 2) + 0.1

    scored = sum_of(load_text_scorer(str(checkpoint), 4000).lines(world.text("valid")))
    bits = (scored.known_bits + scored.end_bits) / (scored.words + scored.sentences)
    assert bits == pytest.approx(said["valid_nll_loss"], abs=2e-3)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--vc-target", "1.5"], r"--vc-target 1\.5: expected a share from 0 to 1"),
        (["--vc-target", "nan"], r"--vc-target nan: expected a share from 0 to 1"),
        (["--vc-penalty", "-1"], r"--vc-penalty -1\.0: expected a number from 0 to 1,000,000"),
        (["--vc-penalty", "inf"], r"--vc-penalty inf: expected a number from 0 to 1,000,000"),
        (["--vc-sharpness", "0"], r"--vc-sharpness 0\.0: expected a finite number above 0"),
        (["--vc-sharpen-updates", "-5"], r"--vc-sharpen-updates -5: expected 0 or a number of updates"),
        (["--vc-guide", "le zzz"], r"--vc-guide: 'zzz' is not in the dictionary"),
        (["--context-window", "4"], r"--context-window 4: not supported with --cell vcgru"),
        (["--cell", "lstm", "--vc-target", "0.3"], r"--vc-target 0\.3: it needs --cell vcgru or vcrnn, found lstm"),
        (["--cell", "gru", "--vc-guide", "le"], r"--vc-guide le: it needs --cell vcgru or vcrnn, found gru"),
    ],
)
def test_what_is_refused(world: World, options: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build([*world.train_args(), "--cell", "vcgru", *options])


def test_a_target_needs_our_criterion(world: World) -> None:
    built = build([*world.train_args(), "--cell", "vcgru"])
    cfg = OmegaConf.create({"_name": "cross_entropy", "sentence_avg": False})
    with pytest.raises(OptionError, match="the network adds terms to the loss"):
        built.task.build_criterion(cfg)


def test_translation_models_refuse_them_too(translation: TranslationWorld) -> None:
    with pytest.raises(OptionError, match="--vc-sharpness 2.0: it needs --cell vcgru or vcrnn, found lstm"):
        build([*translation.train_args("llrnn_lstm"), "--vc-sharpness", "2"])


# `llrnn explain` of a model with variable computation: numbers, a picture, one line for what is wrong
SENTENCE = "le chat vert voit la mer"
PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="module")
def variable(shell: Shell, world: World) -> Path:
    place = world.place / "cli-variable"
    options = ("--cell", "vcgru", "--vc-sharpen-updates", 5, "--max-epoch", 1)
    shell.run("fairseq-train", *world.train_args(save_dir=place), *options)
    return place / "checkpoint_best.pt"


def test_the_share_is_that_of_reading_the_word(shell: Shell, variable: Path, tmp_path: Path) -> None:
    picture = tmp_path / "m.png"
    done = shell.run("llrnn", "explain", "--path", variable, "--computation", picture, "--json", SENTENCE)
    assert picture.read_bytes().startswith(PNG)
    assert "matplotlib" not in done.err
    words = json.loads(done.out)["words"]
    assert "computation" not in words[-1]  # the end is not read
    shares = [word["computation"] for word in words[:-1]]
    explainer = load_explainer(str(variable))
    decoder, dictionary = explainer.model.decoder, explainer.task.dictionary
    tokens = torch.tensor([[dictionary.eos(), *map(dictionary.index, SENTENCE.split())]])
    with torch.no_grad():
        run = decoder.network.run(decoder.head.embed(tokens))
    assert shares == pytest.approx(run.shares[0, 1:].mean(-1).tolist())

    table = shell.run("llrnn", "explain", "--path", variable, SENTENCE).out
    shown = [float(value) for value in re.findall(r"computes +([\d.]+) of its dimensions", table)]
    assert shown == pytest.approx(shares, abs=0.005)


def test_what_explain_refuses(shell: Shell, variable: Path, checkpoint: Path, tmp_path: Path) -> None:
    def refused(path: Path, picture: object) -> str:
        done = shell.run("llrnn", "explain", "--path", path, "--computation", picture, SENTENCE, code=2)
        assert "Traceback" not in done.err
        return done.err.strip().splitlines()[-1]

    assert "--computation m.pdf: expected a file name that ends in .png" in refused(variable, "m.pdf")
    assert "expected a model of --cell vcgru or vcrnn" in refused(checkpoint, tmp_path / "m.png")
    assert "m.png: expected a place in a folder, but there is no such" in refused(variable, tmp_path / "none" / "m.png")
    assert not (tmp_path / "m.png").exists()


def test_a_picture_that_cannot_be_written(shell: Shell, variable: Path, tmp_path: Path) -> None:
    picture = tmp_path / "m.png"
    command = ("llrnn", "explain", "--path", variable, "--computation", picture, "--top", 1, SENTENCE)
    done = shell.run(*command, code=2, disk=4000)
    assert "computes" in done.out and done.err.splitlines()[-1] == (
        f"llrnn: error: --computation {picture}: the result cannot be written (File too large); check the rights "
        "and the free space there"
    )
    assert "Traceback" not in done.err and not list(tmp_path.iterdir())


def test_without_matplotlib(shell: Shell, variable: Path, tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ModuleNotFoundError('no matplotlib')\n", encoding="utf-8")
    hidden = {"PYTHONPATH": str(tmp_path)}
    command = ("llrnn", "explain", "--path", variable, SENTENCE)
    done = shell.run(*command, "--computation", tmp_path / "m.png", code=2, variables=hidden)
    assert "expected the library matplotlib, found none; in a checkout of fairseq_llrnn: pip install " in done.err
    assert "Traceback" not in done.err
    assert "computes" in shell.run(*command, variables=hidden).out


def test_long_sentences_take_several_lines_of_the_picture(tmp_path: Path) -> None:
    tokens = ["$", "▁", "\\"] * LINE
    sentence = ReadSentence(tokens, [0.5] * len(tokens))
    lines = lines_of([sentence, ReadSentence([], [])])
    assert [len(line.tokens) for line in lines] == [LINE, LINE, LINE]
    draw_computation([sentence], tmp_path / "m.png")
    assert (tmp_path / "m.png").read_bytes().startswith(PNG)
