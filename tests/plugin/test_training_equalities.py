"""Training the same in another way gives the same model: accumulated, in two processes, stopped and resumed, killed."""

import shutil
import signal
from pathlib import Path

import pytest
import torch
from same_training import JOINED, assert_same_training
from shell import Result, Shell, assert_says
from tiny_world import MODEL, World, read_checkpoint
from translation_world import TranslationWorld

from fairseq_llrnn.plugin.compat import resuming

# Sizes that differ from batch to batch, an odd number of batches, and everything that draws random numbers.
LIVELY = ["--dropout", "0.2", "--variational-dropout", "--max-tokens", "70", "--decoder-layers", "2"]


# ---- accumulated -----------------------------------------------------------------------------------------------------


def test_two_halves_accumulated_equal_the_whole_batch(shell: Shell, world: World, tmp_path: Path) -> None:
    """test1 has eight sentences of unequal lengths: the mean must be over words, not over batches."""
    for name, options in {"halves": ["--batch-size", 4, "--update-freq", 2], "whole": ["--batch-size", 8]}.items():
        shell.run(
            "fairseq-train", *world.train_args(save_dir=tmp_path / name), "--train-subset", "test1", *options,
            "--max-epoch", 4, "--disable-validation", "--adaptor-penalty", 0.01,
        )  # fmt: skip
    assert_same_training(tmp_path / "halves/checkpoint_last.pt", tmp_path / "whole/checkpoint_last.pt", exact=False)


# ---- two processes ---------------------------------------------------------------------------------------------------


def test_two_processes_equal_one_that_accumulates(shell: Shell, world: World, tmp_path: Path) -> None:
    """Up to float error, and going on from a checkpoint, which the first process reads and shares."""
    alone, both = tmp_path / "alone", tmp_path / "both"
    accumulating = [*world.train_args(save_dir=alone), "--max-tokens", 70, "--update-freq", 2]
    shell.run("fairseq-train", *accumulating, "--max-epoch", 1)
    both.mkdir()
    shutil.copy(alone / "checkpoint_last.pt", both)
    shell.run("fairseq-train", *accumulating, "--max-epoch", 2)
    joined = [*world.train_args(save_dir=both), "--max-tokens", 70, "--max-epoch", 2, *JOINED]
    shell.run("fairseq-train", *joined, processes=2)
    assert_same_training(both / "checkpoint_last.pt", alone / "checkpoint_last.pt", exact=False)


@pytest.mark.parametrize("kind", ["language model", "translation"])
def test_processes_that_do_not_know_of_each_other(
    shell: Shell, world: World, translation: TranslationWorld, kind: str, tmp_path: Path
) -> None:
    """torchrun alone: on machines without GPUs, or with one each, fairseq would train a model in each process."""
    arguments = (world if kind == "language model" else translation).train_args(save_dir=tmp_path)
    found = shell.run("fairseq-train", *arguments, variables={"WORLD_SIZE": "2", "RANK": "1"}, code=1)
    assert_says(found, "WORLD_SIZE=2: expected 2 processes that train one model", "examples/cluster/worker.sh")
    assert not list(tmp_path.iterdir())


# ---- stopped, killed -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def uninterrupted(shell: Shell, world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("uninterrupted")
    shell.run("fairseq-train", *world.train_args(save_dir=place), *LIVELY, "--max-epoch", 2)
    return place / "checkpoint_last.pt"


def test_stopped_in_mid_epoch_and_resumed(
    shell: Shell, world: World, uninterrupted: Path, tmp_path: Path
) -> None:
    """In the first epoch, and again in the second one."""
    arguments = ["fairseq-train", *world.train_args(save_dir=tmp_path), *LIVELY, "--max-epoch", 2]
    for stop, epoch in ((5, 1), (16, 2)):
        shell.run(*arguments, "--max-update", stop)
        stopped = read_checkpoint(tmp_path / "checkpoint_last.pt")
        assert stopped["extra_state"]["train_iterator"]["epoch"] == epoch
        assert stopped["extra_state"]["train_iterator"]["iterations_in_epoch"] > 1
    shell.run(*arguments)
    assert_same_training(tmp_path / "checkpoint_last.pt", uninterrupted)


KILLED = """
import os, signal
from fairseq import checkpoint_utils
from fairseq_cli.train import cli_main
save = checkpoint_utils.save_checkpoint
def save_and_die(*args, **options):
    save(*args, **options)
    os.kill(os.getpid(), signal.SIGKILL)
checkpoint_utils.save_checkpoint = save_and_die
cli_main()
"""


def test_killed_in_mid_epoch_and_resumed(shell: Shell, world: World, uninterrupted: Path, tmp_path: Path) -> None:
    """SIGKILL as soon as a checkpoint of the middle of an epoch is saved; what it left is enough to go on."""
    arguments = [
        *world.train_args(save_dir=tmp_path), *LIVELY, "--max-epoch", 2, "--save-interval-updates", 6,
        "--keep-interval-updates", 1,
    ]  # fmt: skip
    checkpoint = tmp_path / "checkpoint_last.pt"
    shell.run("python", "-c", KILLED, *arguments, code=-signal.SIGKILL)
    assert updates(checkpoint) < updates(uninterrupted)
    shell.run("fairseq-train", *arguments)
    assert_same_training(checkpoint, uninterrupted)


def updates(checkpoint: Path) -> int:
    return read_checkpoint(checkpoint)["optimizer_history"][-1]["num_updates"]


# ---- what depends on earlier validations -----------------------------------------------------------------------------

# No loss is better than the first one by so much: the rate falls as often as it may.
PLATEAU = ["--lr-scheduler", "reduce_lr_on_plateau", "--lr-shrink", 0.5, "--lr-threshold", 0.9, "--batch-size", 64]


def rates(done: Result) -> list[float]:
    return [float(row["train_lr"]) for row in done.json_lines("train")]


def test_a_falling_rate_falls_the_same_after_a_stop(shell: Shell, world: World, tmp_path: Path) -> None:
    """Stopped after every epoch, when it falls and when it is about to."""
    parts = []
    for name, ends in {"whole": [5], "parts": [1, 2, 3, 4, 5]}.items():
        arguments = [*world.train_args(save_dir=tmp_path / name), *PLATEAU, "--lr-patience", 1]
        runs = [rates(shell.run("fairseq-train", *arguments, "--max-epoch", end)) for end in ends]
        parts.append(sum(runs, []))
    assert parts == [[0.01 * share for share in (1, 1, 1, 0.5, 0.5)]] * 2
    assert_same_training(tmp_path / "parts" / "checkpoint_last.pt", tmp_path / "whole" / "checkpoint_last.pt")


@pytest.mark.slow
def test_a_falling_rate_without_its_progress(shell: Shell, world: World, tmp_path: Path) -> None:
    """A checkpoint of before, one without an optimizer, and what a user says of the rate."""
    checkpoint, bare = tmp_path / "checkpoint_last.pt", tmp_path / "bare" / "checkpoint_last.pt"
    for path, options in {checkpoint: [], bare: ["--no-save-optimizer-state"]}.items():
        arguments = [*world.train_args(save_dir=path.parent), *PLATEAU, "--max-epoch", 2, *options]
        shell.run("fairseq-train", *arguments)

    def after(path: Path, *options: str) -> list[float]:
        going_on = [*world.train_args(), *PLATEAU, "--max-epoch", 3, "--restore-file", path, *options]
        return rates(shell.run("fairseq-train", *going_on))

    assert after(checkpoint) == [0.005]
    for option in (["--reset-lr-scheduler"], ["--reset-optimizer"], ["--optimizer-overrides", "{'lr': 0.01}"]):
        assert after(checkpoint, *option) == [0.01]
    assert after(bare) == [0.01]
    state = read_checkpoint(checkpoint)
    del state["extra_state"]["LLRNNLanguageModelingTask"]
    torch.save(state, checkpoint)
    assert after(checkpoint) == [0.01]


# The loss falls, and is said to be the better the higher it is: the first validation stays the best one.
WAITING = ["--maximize-best-checkpoint-metric", "--max-epoch", 6]
AS_INSTALLED = "from fairseq_cli.train import cli_main; cli_main()"


def epochs(done: Result) -> list[int]:
    return [int(row["epoch"]) for row in done.json_lines("train")]


@pytest.mark.parametrize("command", [["fairseq-train"], ["python", "-c", AS_INSTALLED]], ids=["file", "module"])
def test_patience_goes_on_after_a_stop(shell: Shell, world: World, tmp_path: Path, command: list[str]) -> None:
    """Stopped and resumed, it ends as early; the command that has ended trains nothing."""
    folder = tmp_path / "parts"
    whole = [*world.train_args(save_dir=tmp_path / "whole"), *WAITING, "--patience", 3]
    parts = [*world.train_args(save_dir=folder), *WAITING, "--patience", 3]
    assert epochs(shell.run("fairseq-train", *whole)) == [1, 2, 3, 4]
    assert epochs(shell.run(*command, *parts, "--max-epoch", 2)) == [1, 2]
    assert epochs(shell.run(*command, *parts)) == [3, 4]
    assert_same_training(folder / "checkpoint_last.pt", tmp_path / "whole" / "checkpoint_last.pt")
    again = shell.run(*command, *parts)
    assert epochs(again) == []
    assert "early stop since valid performance hasn't improved for last 3 runs" in again.out


@pytest.mark.slow
def test_patience_with_other_options_after_its_end(shell: Shell, world: World, tmp_path: Path) -> None:
    """A larger one, none, what begins it anew, a checkpoint of before; and as `llrnn train` says it."""
    checkpoint = tmp_path / "checkpoint_last.pt"
    shell.run("fairseq-train", *world.train_args(save_dir=tmp_path), *WAITING, "--patience", 2)

    def after(*options: object) -> list[int]:
        going_on = [*world.train_args(), *WAITING, "--restore-file", checkpoint, *options]
        return epochs(shell.run("fairseq-train", *going_on))

    assert after("--patience", 2) == []
    assert after("--patience", 3) == [4]
    assert after() == [4, 5, 6]
    assert after("--patience", 2, "--disable-validation") == [4, 5, 6]
    assert after("--patience", 2, "--reset-meters") == [4, 5, 6]
    assert after("--patience", 2, "--reset-dataloader")[:2] == [1, 2]
    sizes = [*MODEL[2:], "--cpu", "--num-workers", 0, "--lr", 0.01, "--max-tokens", 128, "--tokens-per-sample", 64]
    again = shell.run("llrnn", "train", world.data, *sizes, *WAITING, "--patience", 2, "--save-dir", tmp_path)
    assert "done        the training had already ended; to continue, use a larger --max-epoch or" in again.out
    state = read_checkpoint(checkpoint)
    del state["extra_state"]["LLRNNLanguageModelingTask"]
    torch.save(state, checkpoint)
    assert after("--patience", 2) == [4, 5, 6]


def test_patience_of_two_trainings_in_one_process(shell: Shell, world: World, tmp_path: Path) -> None:
    arguments = [*world.train_args(save_dir=tmp_path), *WAITING, "--patience", 1]
    assert epochs(shell.run("python", "-c", TWICE, tmp_path, *arguments)) == [1, 2, 1, 2]


@pytest.mark.parametrize("progress", [None, [], {}, {"patience": 3}, {"patience": {"best": "x", "num_runs": 1}}])
def test_progress_that_is_none_is_as_of_a_checkpoint_of_before(progress: object) -> None:
    """A checkpoint is a file of anybody."""
    assert resuming._numbers(progress, "patience", resuming.OF_PATIENCE) == {}
    sound = {"best": 2.5, "num_runs": 1}
    assert resuming._numbers({"patience": sound | {"more": "x"}}, "patience", resuming.OF_PATIENCE) == sound


TWICE = """
import sys
from fairseq_cli.train import cli_main
program, folder, *arguments = sys.argv
for name in ("first", "second"):
    sys.argv = [program, *arguments, "--save-dir", f"{folder}/{name}"]
    cli_main()
"""
