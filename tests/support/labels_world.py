"""A tiny world for classification: short texts about six things, some about two; each thing has words of its own."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from shell import Shell
from tiny_world import EVERY_SENTENCE, USER_DIR

WORDS = {
    "food": "salt soup bread oven cook spoon",
    "travel": "train ticket map hotel road luggage",
    "music": "song drum choir piano tune singer",
    "money": "bank loan coin price tax salary",
    "garden": "seed rose spade lawn tree fence",
    "weather": "rain cloud storm snow wind frost",
}
COMMON = "the a of my is for and this".split()
SPLITS = {"train": 240, "valid": 40, "test": 30}
SIZES = {
    "llrnn_bag": ["--encoder-embed-dim", "12"],
    "llrnn_classifier": ["--encoder-embed-dim", "12", "--encoder-hidden-size", "8"],
}
TRAINING = [
    "--criterion", "log_linear", "--batch-size", "16", "--optimizer", "adam", "--lr", "0.02", "--seed", "1",
    "--num-workers", "0", "--log-format", "json", "--log-interval", "5", *EVERY_SENTENCE,
]  # fmt: skip


def examples(how_many: int, seed: int) -> list[tuple[str, str]]:
    """Texts, and their labels with blanks between them."""
    rng = random.Random(seed)
    found = []
    for _ in range(how_many):
        labels = rng.sample(sorted(WORDS), 2 if rng.random() < 0.3 else 1)
        words = [rng.choice(WORDS[label].split()) for label in labels for _ in range(2)]
        words += rng.choices(COMMON, k=rng.randint(0, 4))
        rng.shuffle(words)
        found.append((" ".join(words), " ".join(labels)))
    return found


@dataclass(frozen=True)
class LabelsWorld:
    """Where everything lies."""

    place: Path

    @property
    def data(self) -> Path:
        """The data-bin; `prior` in it is that of the labels."""
        return self.place / "data-bin"

    def task_args(self, prior: str = "prior") -> list[str]:
        return [
            str(self.data), "--user-dir", str(USER_DIR), "--task", "llrnn_classification", "--prior",
            str(self.data / prior), "--cpu",
        ]  # fmt: skip

    def train_args(self, arch: str = "llrnn_bag", save_dir: Path | None = None, prior: str = "prior") -> list[str]:
        """A small model; a later option of the same name wins."""
        saving = ["--no-save"] if save_dir is None else ["--save-dir", str(save_dir), "--no-epoch-checkpoints"]
        return [*self.task_args(prior), "--arch", arch, *SIZES[arch], *TRAINING, *saving]

    def lines(self, split: str, side: str) -> list[str]:
        return (self.place / f"{split}.{side}").read_text(encoding="utf-8").splitlines()


def make_labels_world(place: Path, shell: Shell) -> LabelsWorld:
    """Write the texts; fairseq-preprocess and `llrnn prior`. The valid data has labels that training lacks."""
    for seed, (split, how_many) in enumerate(SPLITS.items()):
        pairs = examples(how_many, seed)
        if split == "valid":
            pairs += [("the hammer of the storm", "tools"), ("rain and a spade", "weather tools"), ("", "food")]
        for side, lines in zip(("text", "labels"), zip(*pairs, strict=True), strict=True):
            (place / f"{split}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    world = LabelsWorld(place)
    preprocess(shell, place, world.data, "train", "valid", "test")
    labels = ("--labels", "--dict", world.data / "dict.labels.txt")
    shell.run("llrnn", "prior", *labels, "--suffixes", 2, "--out", world.data / "prior")
    shell.run("llrnn", "prior", *labels, "--softmax", "--out", world.data / "softmax")
    return world


def preprocess(shell: Shell, place: Path, data: Path, *splits: str, dictionaries: Path | None = None) -> None:
    """Run fairseq-preprocess on the texts and labels of `place`, with the dictionaries of another data-bin, if any."""
    prefs = [part for split in splits for part in (f"--{split}pref", place / split)]
    given = []
    if dictionaries is not None:
        given = ["--srcdict", dictionaries / "dict.text.txt", "--tgtdict", dictionaries / "dict.labels.txt"]
    shell.run(
        "fairseq-preprocess", "--source-lang", "text", "--target-lang", "labels", *prefs, "--destdir", data, *given
    )
