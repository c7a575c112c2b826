"""The files of a prior's directory: their names, lists of words, and how a new directory takes an old one's place."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.prior.manifest import JSON_FILE, REBUILD

WORDS_FILE, ARRAYS_FILE, SOURCE_FILE = "dictionary.txt", "arrays.npz", "source.txt"
MODEL_FOLDER = "model"


def check_symbols(symbols: Sequence[str], own: Sequence[str], problem: str, option: str) -> None:
    """Raise PriorError, with the first difference, unless the symbols of a dictionary are the prior's `own`."""
    if tuple(symbols) == tuple(own):
        return
    difference = next(
        (i for i, (a, b) in enumerate(zip(symbols, own, strict=False)) if a != b), min(len(symbols), len(own))
    )
    found = symbols[difference] if difference < len(symbols) else "nothing"
    expected = own[difference] if difference < len(own) else "nothing"
    raise PriorError(
        f"{problem}: sizes {len(own)} and {len(symbols)}, first difference at index {difference} "
        f"({expected!r} in the prior, {found!r} in the dictionary); {REBUILD} {option}"
    )


def write_words(path: Path, symbols: Sequence[str]) -> None:
    """One word a line."""
    path.write_text("\n".join(symbols) + "\n", encoding="utf-8", newline="\n")


def swap(new: Path, directory: Path) -> None:
    """Put `new` in the place of `directory`; if that fails, what was there is there again."""
    if not directory.exists():
        os.replace(new, directory)
        return
    aside = new.with_name(new.name + ".old")
    os.replace(directory, aside)
    try:
        os.replace(new, directory)
    except BaseException:  # an interruption, too
        os.replace(aside, directory)
        raise
    shutil.rmtree(aside)


def holds_nothing_else(path: Path) -> bool:
    """Whether `path` is a directory with the files of a prior, or none: all that a new prior may replace."""
    names = {JSON_FILE, WORDS_FILE, ARRAYS_FILE, SOURCE_FILE, MODEL_FOLDER}
    return path.is_dir() and {p.name for p in path.iterdir()} <= names


def read_words(path: Path) -> tuple[str, ...]:
    """What `write_words` wrote."""
    text = path.read_bytes().decode("utf-8")  # read_text would take \r for the end of a line
    return tuple(text.removesuffix("\n").split("\n"))
