"""A tiny text in which the order of sentences can be learned; for the extra `discourse`."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tiny_world import USER_DIR

PHRASES = {"However": "gloomy dull", "Therefore": "clear plain", "Then": "late early", "Moreover": "again more"}
Llrnn = Callable[..., tuple[int, str, str]]  # runs `llrnn arguments…`: its status, stdout and stderr


def tiny_text(paragraphs: int, seed: int) -> str:
    """Paragraphs of nine sentences: the i-th speaks of step i, and a conjunction goes with words of its own."""
    rng = random.Random(seed)
    lines = []
    for _ in range(paragraphs):
        for i in range(9):
            sentence = [f"Step{i}", rng.choice("cat dog bird".split()), rng.choice("runs sits sings".split())]
            if i and rng.random() < 0.4:
                phrase = rng.choice(sorted(PHRASES))
                sentence = [phrase, ",", *sentence, rng.choice(PHRASES[phrase].split())]
            lines.append(" ".join([*sentence, f"name{rng.randrange(40)}", "."]))
        lines.append("")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Texts:
    """The files of the tiny text."""

    place: Path

    def file(self, split: str) -> Path:
        return self.place / f"{split}.txt"

    @property
    def data(self) -> Path:
        """Of `llrnn discourse` with --lower."""
        return self.place / "data"


def train_args(texts: Texts, save_dir: Path | None, *options: object) -> list[object]:
    """A small model and a few large steps; a later option of the same name wins."""
    saving = ["--no-save"] if save_dir is None else ["--save-dir", save_dir, "--no-epoch-checkpoints"]
    return [
        texts.data, "--user-dir", USER_DIR, "--task", "discourse", "--arch", "discourse_encoder", "--criterion",
        "discourse", "--cpu", "--sentence-dim", 24, "--encoder-embed-dim", 16, "--optimizer", "adagrad", "--lr", 0.1,
        "--batch-size", 16, "--seed", 1, "--num-workers", 0, "--log-format", "json",
        "--best-checkpoint-metric", "accuracy", "--maximize-best-checkpoint-metric", *saving, *options,
    ]  # fmt: skip
