"""Two processes that write to the same place at the same time: one of them wins, or waits, and nothing is mixed up."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from shell import environment, script
from translation_world import TranslationWorld

from fairseq_llrnn.errors import LLRNNError
from fairseq_llrnn.prior.prior import Prior


def race(translation: TranslationWorld, place: Path) -> str:
    """Two `llrnn prior` with different options at once, to one place: what was wrong, "" where all was well."""
    place.mkdir()
    rng = random.Random(place.name)
    commands = []
    for number in (1, 2):
        world = translation.world
        dictionary = ["--dict", world.data / "dict.txt", "--count-text", world.place / "train.txt"]
        options = ["--top-words", 10 * number, "--background", f"ngram:{number + 1}"]
        commands.append(["prior", *dictionary, *options, "--out", place / "prior"])
    return _together(commands, rng) or _is_one_of_them(place)


def _together(commands: Sequence[Sequence[object]], rng: random.Random) -> str:
    """Start them one shortly after the other, and wait for all."""
    started = []
    for command in commands:
        started.append(
            subprocess.Popen(
                [script("llrnn"), *map(str, command)], env=environment(), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        )
        time.sleep(rng.uniform(0, 0.3))
    said = [process.communicate()[1] for process in started]
    if any("Traceback" in text for text in said):
        return f"a stack trace: {' '.join(' '.join(said).split())[-500:]}"
    return "" if any(process.returncode == 0 for process in started) else f"neither has written: {said}"


def _is_one_of_them(place: Path) -> str:
    left = sorted(path.name for path in place.iterdir())
    if left != ["prior"]:
        return f"left behind: {left}"
    try:
        settings = Prior.load(place / "prior").settings
    except LLRNNError as error:
        return str(error)
    pair = settings["top_words"], settings["background"]
    return "" if pair in ((10, "ngram:2"), (20, "ngram:3")) else f"neither of the two priors: {pair}"
