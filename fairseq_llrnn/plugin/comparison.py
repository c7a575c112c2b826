"""Train and score the networks of `fairseq_llrnn.compare` (comparison/jobs.py)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import fairseq_cli.train  # noqa: F401  imported before processes are forked, since it takes seconds
import torch
import torch._dynamo

from fairseq_llrnn.evaluation.texts import LineScore
from fairseq_llrnn.plugin.commands import run
from fairseq_llrnn.plugin.scoring.text_bits import load_text_scorer

MAX_TOKENS = 2048
USER_DIR = str(Path(__file__).resolve().parents[1])  # this package


def train(arguments: Sequence[str]) -> int:
    """Run `llrnn train` in this process, and return its exit status."""
    device = [] if torch.cuda.is_available() else ["--cpu"]
    return run("train", [*arguments, *device], USER_DIR)


def scored_lines(checkpoint: str, lines: Sequence[str], is_open: bool) -> list[LineScore]:
    """Return the lines scored by a checkpoint. is_open: spell unknown words."""
    return list(load_text_scorer(checkpoint, MAX_TOKENS).lines(lines, is_open))
