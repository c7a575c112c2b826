"""Checkpoints of fairseq-train that say the same, and the options with which its processes know of each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from shell import Result, Shell
from tiny_world import read_checkpoint

# for Shell.run(…, processes=2), which puts the number of each process in the place of $RANK
JOINED = [
    "--distributed-init-method", "env://", "--distributed-no-spawn", "--distributed-world-size", "2",
    "--distributed-rank", "$RANK", "--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp",
]  # fmt: skip


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


def resumed_as_whole(
    shell: Shell, args: Callable[[Path], Sequence[object]], place: Path, *options: object, epochs: int = 2,
    stop: int = 1,
) -> Result:  # fmt: skip
    """Train at once, into place/whole, and with a stop, which changes nothing. What it printed.

    Args:
        args: those of fairseq-train that saves in a folder. stop: after how many epochs.
    """
    for name, ends in (("whole", (epochs,)), ("parts", (stop, epochs))):
        for end in ends:
            done = shell.run("fairseq-train", *args(place / name), *options, "--max-epoch", end)
    assert_same_training(place / "whole" / "checkpoint_last.pt", place / "parts" / "checkpoint_last.pt")
    return done
