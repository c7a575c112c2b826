"""Training the same in another way gives the same model: accumulated, in two processes, stopped and resumed, killed."""

import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from shell import Shell, run_script, script
from tiny_world import World, read_checkpoint

# Sizes that differ from batch to batch, an odd number of batches, and everything that draws random numbers.
LIVELY = ["--dropout", "0.2", "--variational-dropout", "--max-tokens", "70", "--decoder-layers", "2"]


def assert_same(found: Any, expected: Any, where: str = "", exact: bool = True) -> None:
    """Equal structures; tensors equal bit for bit, or up to float error."""
    if isinstance(expected, torch.Tensor):
        assert found.dtype == expected.dtype, where
        if exact:
            assert torch.equal(found, expected), where
        else:
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5, msg=lambda m: f"{where}: {m}")
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key in expected:
            assert_same(found[key], expected[key], f"{where}/{key}", exact)
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same(one, other, f"{where}/{i}", exact)
    else:
        assert found == expected, where


def assert_same_training(one: Path, other: Path, exact: bool = True) -> None:
    """Weights, optimizer, learning-rate schedule and place in the data agree."""
    found, expected = read_checkpoint(one), read_checkpoint(other)
    assert_same(found["model"], expected["model"], "model", exact)
    assert_same(found["last_optimizer_state"], expected["last_optimizer_state"], "optimizer", exact)
    assert found["optimizer_history"][-1]["num_updates"] == expected["optimizer_history"][-1]["num_updates"]
    if exact:
        assert_same(found["optimizer_history"][-1], expected["optimizer_history"][-1], "history")
        assert found["extra_state"]["train_iterator"] == expected["extra_state"]["train_iterator"]


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


def torchrun(*args: object) -> None:
    """Two processes on the CPU, where fairseq does not take their number and rank from torchrun: we say both.

    Otherwise each of the two trains alone, and overwrites the other's checkpoints.
    """
    command = ["exec", script("fairseq-train"), *args, "--distributed-init-method", "env://", "--distributed-no-spawn"]
    command += ["--distributed-world-size", "2", "--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]
    line = " ".join(map(str, command)) + ' --distributed-rank "$RANK"'
    run_script(script("torchrun"), "--nproc_per_node", 2, "--standalone", "--no-python", "sh", "-c", line)


def test_two_processes_equal_one_that_accumulates(shell: Shell, world: World, tmp_path: Path) -> None:
    """Up to float error, and going on from a checkpoint, which the first process reads and shares."""
    alone, both = tmp_path / "alone", tmp_path / "both"
    accumulating = [*world.train_args(save_dir=alone), "--max-tokens", 70, "--update-freq", 2]
    shell.run("fairseq-train", *accumulating, "--max-epoch", 1)
    both.mkdir()
    shutil.copy(alone / "checkpoint_last.pt", both)
    shell.run("fairseq-train", *accumulating, "--max-epoch", 2)
    torchrun(*world.train_args(save_dir=both), "--max-tokens", 70, "--max-epoch", 2)
    assert_same_training(both / "checkpoint_last.pt", alone / "checkpoint_last.pt", exact=False)


# ---- stopped, killed -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def uninterrupted(shell: Shell, world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("uninterrupted")
    shell.run("fairseq-train", *world.train_args(save_dir=place), *LIVELY, "--max-epoch", 2)
    return place / "checkpoint_last.pt"


@pytest.mark.parametrize(("stop", "epoch"), [(5, 1), (16, 2)])
def test_stopped_in_mid_epoch_and_resumed(
    stop: int, epoch: int, shell: Shell, world: World, uninterrupted: Path, tmp_path: Path
) -> None:
    arguments = ["fairseq-train", *world.train_args(save_dir=tmp_path), *LIVELY, "--max-epoch", 2]
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
    run_script(sys.executable, "-c", KILLED, *arguments, code=-signal.SIGKILL)
    assert updates(checkpoint) < updates(uninterrupted)
    shell.run("fairseq-train", *arguments)
    assert_same_training(checkpoint, uninterrupted)


def updates(checkpoint: Path) -> int:
    return read_checkpoint(checkpoint)["optimizer_history"][-1]["num_updates"]
