"""Commands that are killed, or meet a full disk, at a random moment, and are started again: nothing may be lost.

A *subject* prepares a place, runs its command there, and says what the command left. A trial stops the command once,
starts it again without more ado, and compares what is left with that of a run that nobody stopped.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from evidence_world import EvidenceWorld
from shell import Result, Shell
from tiny_world import World, read_checkpoint
from translation_world import TranslationWorld

# A checkpoint after every update, so that there are many moments to be killed at.
# (--max-update would not do: fairseq, started again after the last update, makes one more.)
OFTEN = ("--save-interval-updates", "1", "--keep-interval-updates", "2", "--max-epoch", "2", "--validate-interval", "9")


@dataclass(frozen=True)
class Subject:
    """A command that can be killed."""

    name: str
    command: str
    arguments: Callable[[Path], Sequence[object]]  # at a place
    prepare: Callable[[Path], object]  # before the first start
    result: Callable[[Path], Any]  # what it left; equal for equal ends


@dataclass(frozen=True)
class Trial:
    """One stop."""

    subject: str
    at: float  # seconds after the start, or bytes of a file
    stopped: bool  # or it had ended before
    said: str  # the last line of what the stopped run (full disk) or the second one (kill) wrote to stderr
    fault: str  # "" where all was well


def weights_of(save_dir: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = read_checkpoint(save_dir / "checkpoint_last.pt")["model"]
    return found


def trainings(shell: Shell, world: World, translation: TranslationWorld, evidence: EvidenceWorld) -> list[Subject]:
    """A training of every kind."""
    counted = ("--dict", world.data / "dict.txt", "--count-text", world.place / "train.txt", "--top-words", 20)
    lexicon = ("--lexicon", world.place / "lexicon.tsv")
    words = world.place / "loop.regex"
    words.write_text(".*\n", encoding="utf-8")
    for name, options in {
        "trigram": ("--background", "ngram:3"),
        "grammar": ("--background", f"automaton:{words}"),
        "cached": ("--background", "0.7 ngram:2 plus 0.3 cache:10 with weights per position"),
        "opened": ("--open-vocabulary", "characters"),
    }.items():
        if not world.prior(name).exists():
            shell.run("llrnn", "prior", *counted, *lexicon, *options, "--out", world.prior(name))

    def training(name: str, arguments: Callable[[Path], list[str]], *more: str) -> Subject:
        def with_options(place: Path) -> list[object]:
            return [*arguments(place), *OFTEN, *more]

        return Subject(f"train: {name}", "fairseq-train", with_options, lambda place: None, weights_of)

    def ours(prior: str) -> Callable[[Path], list[str]]:
        return lambda place: world.train_args(prior, place)

    return [
        training("static", ours("prior")),
        training("softmax", ours("softmax")),
        training("n-grams", ours("trigram")),
        training("grammar", ours("grammar")),
        training("mixture with a cache", ours("cached")),
        training("open vocabulary", ours("opened")),
        training("sampled classes", ours("prior"), "--sampled-classes", "5"),
        training("dropout, annealed", ours("prior"), "--dropout", "0.3", "--lr-scheduler", "reduce_lr_on_plateau"),
        training("translation", lambda place: translation.train_args(prior="lexical", save_dir=place)),
        training(
            "Transformer", lambda place: translation.train_args("llrnn_transformer", prior="prior", save_dir=place)
        ),
        training("evidence", lambda place: evidence.train_args(prior="lexical", save_dir=place)),
    ]


def priors(world: World) -> list[Subject]:
    """`llrnn prior`, where an earlier prior is in its place."""

    def arguments(place: Path) -> list[object]:
        return [
            "prior", "--dict", world.data / "dict.txt", "--count-text", world.place / "train.txt", "--top-words", 20,
            "--suffixes", 2, "--background", "ngram:3", "--out", place / "prior",
        ]  # fmt: skip

    def prepare(place: Path) -> None:
        place.mkdir(parents=True)
        shutil.copytree(world.prior("prior"), place / "prior")

    def result(place: Path) -> dict[str, bytes]:
        left = [path.name for path in place.iterdir() if path.name != "prior"]
        assert not left, f"left behind: {left}"
        return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}

    return [Subject("llrnn prior", "llrnn", arguments, prepare, result)]


def rescorings(shell: Shell, translation: TranslationWorld, folder: Path) -> list[Subject]:
    """`llrnn rescore` with a translation model."""
    checkpoint = folder / "rescoring-model"
    if not checkpoint.exists():
        shell.run("fairseq-train", *translation.train_args(save_dir=checkpoint), "--max-update", 4)
    nbest, source = folder / "nbest", folder / "source"
    splits = ("train", "valid", "test")
    lines = [line for split in splits for line in translation.world.text(split)]
    source.write_text("".join(f"{line}\n" for split in splits for line in translation.source(split)), encoding="utf-8")
    rows = (f"{i} ||| {line} ||| lm= -1 ||| -1\n{i} ||| {line} le ||| lm= -2 ||| -2\n" for i, line in enumerate(lines))
    nbest.write_text("".join(rows), encoding="utf-8")

    def arguments(place: Path) -> list[object]:
        return [
            "rescore", "--nbest", nbest, "--source", source, "--path", checkpoint / "checkpoint_last.pt",
            "--out", place / "best", "--max-tokens", 64,
        ]  # fmt: skip

    def result(place: Path) -> str:
        left = sorted(path.name for path in place.iterdir())
        assert left == ["best"], f"left behind: {left}"
        return (place / "best").read_text(encoding="utf-8")

    return [Subject("llrnn rescore", "llrnn", arguments, lambda place: place.mkdir(parents=True), result)]


class Stopper:
    """Stops a subject at random moments; what it leaves when nobody stops it is found first."""

    def __init__(self, shell: Shell, subject: Subject, folder: Path) -> None:
        self.shell, self.subject, self.folder = shell, subject, folder
        whole = self._place("whole")
        start = time.monotonic()
        self._run(whole)
        self.seconds = time.monotonic() - start
        self.expected = subject.result(whole)
        self.largest = max(path.stat().st_size for path in whole.rglob("*") if path.is_file())

    def _place(self, name: str) -> Path:
        place = self.folder / self.subject.name.replace(" ", "-").replace(":", "") / name
        place.parent.mkdir(parents=True, exist_ok=True)
        self.subject.prepare(place)
        return place

    def _run(
        self, place: Path, kill_after: float | None = None, disk: int | None = None, code: int | None = 0
    ) -> Result:
        arguments = self.subject.arguments(place)
        return self.shell.run(self.subject.command, *arguments, kill_after=kill_after, disk=disk, code=code)

    def kill(self, number: int, seed: int) -> Trial:
        """Kill it once, after a time that the seed says, and start it again."""
        seconds = random.Random(f"{seed}/{self.subject.name}/{number}").uniform(0.0, self.seconds)
        place = self._place(f"killed-{number}")
        first = self._run(place, kill_after=seconds, code=None)
        stopped = first.code == -9
        again = self._run(place, code=None) if stopped else first
        return Trial(self.subject.name, seconds, stopped, _last_line(again), self._compared(place, again))

    def fill(self, number: int, seed: int) -> Trial:
        """Let it meet a full disk once, at a size that the seed says, and start it again with room."""
        size = random.Random(f"{seed}/{self.subject.name}/{number}").randrange(self.largest)
        place = self._place(f"full-{number}")
        first = self._run(place, disk=size, code=None)
        stopped = first.code != 0
        fault = "a stack trace" if "Traceback" in first.err else ""
        again = self._run(place, code=None) if stopped else first
        return Trial(self.subject.name, size, stopped, _last_line(first), fault or self._compared(place, again))

    def _compared(self, place: Path, last: Result) -> str:
        """What is wrong with what is left at a place, which is then removed."""
        try:
            if last.code != 0:
                return f"exit status {last.code}: {' '.join(last.err.split())[-500:]}"
            return "" if equal(self.subject.result(place), self.expected) else "another result than without the stop"
        except AssertionError as error:
            return str(error)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _last_line(result: Result) -> str:
    return (result.err.strip().splitlines() or [""])[-1][:300]


def equal(one: Any, other: Any) -> bool:
    """Whether two results are the same, bit by bit."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[name]) for name, value in one.items())
    if isinstance(one, torch.Tensor):
        return bool(torch.equal(one, other))
    return bool(one == other)
