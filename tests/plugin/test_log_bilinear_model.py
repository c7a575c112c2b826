"""llrnn_lbl: searches that step, sentences, resuming, scoring, generating, explaining, and what it refuses."""

import math
from pathlib import Path

import pytest
import torch
from model_checks import assert_every_command_reads_it
from shell import Shell
from tiny_world import TRAINING, World, assert_prefixes_agree, batch, build, randomised

from fairseq_llrnn.errors import OptionError

LINES = ["le chat voit la mer", "une pomme verte tient la tour"]


def arguments(world: World, *options: object, save_dir: Path | None = None, prior: str = "prior") -> list[object]:
    sizes = ["--arch", "llrnn_lbl", "--decoder-embed-dim", "16", "--decoder-hidden-size", "16"]
    saving = ["--no-save"] if save_dir is None else ["--save-dir", save_dir, "--no-epoch-checkpoints"]
    return [*world.task_args(prior), *sizes, *TRAINING, *saving, *options]


@pytest.mark.parametrize("options", [[], ["--context-size", "1"], ["--context-size", "9", "--tie-features"]])
def test_steps_of_a_search_equal_the_whole_sequence(world: World, options: list[str]) -> None:
    """The first one reads a prefix."""
    assert_prefixes_agree(randomised(arguments(world, *options), double=True), LINES, first=2)


def test_it_sees_four_words(world: World) -> None:
    setting = build(arguments(world))
    decoder = setting.model.eval().decoder
    assert decoder.network.context == 4
    (first, second) = batch(setting.task.dictionary, ["le chat vert voit la mer", "le roi vert voit la mer"])[
        "net_input"
    ]["src_tokens"]  # they differ in the third token that is read, </s> being the first
    hidden = decoder(torch.stack([first, second]))[0]
    same = [bool(torch.equal(*pair)) for pair in hidden.unbind(1)]
    assert same == [True, True, False, False, False, False, True]


def test_it_begins_as_the_background(world: World) -> None:
    setting = build(arguments(world, "--start-at-background"))
    assert not setting.model.decoder.head.output.weight.any()


def test_training_scores_generates_and_explains(shell: Shell, world: World, tmp_path: Path) -> None:
    options = ["--dropout", "0.1", "--optimizer", "adagrad", "--lr", "0.1"]
    done = shell.run("fairseq-train", *arguments(world, save_dir=tmp_path), *options, "--max-epoch", 3)
    nats = done.json_lines("valid")[-1]["valid_nats"]
    assert nats < math.log(56)
    assert_every_command_reads_it(shell, world, tmp_path / "checkpoint_last.pt", nats)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--context-size", "0"], r"--context-size 0: expected a number of at least 1"),
        (["--dropout", "1"], r"--dropout 1\.0: expected a probability"),
        (["--decoder-hidden-size", "0"], r"--decoder-hidden-size 0: expected a number of at least 1"),
        (["--tie-features", "--decoder-embed-dim", "8"], r"--tie-features: expected equal --decoder-embed-dim"),
    ],
)
def test_what_is_refused(world: World, options: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build(arguments(world, *options))
