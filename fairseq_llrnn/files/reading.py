"""What is said where the system lets no file be read: no such file, no right to it, a disk that fails; and hashes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fairseq_llrnn.errors import DataError


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Around what opens and reads a file. Raises DataError where that fails."""
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:  # half of a character, from JSON or a checkpoint
        encoded = b"\0"
    if b"\0" in encoded:
        raise DataError(f"{path}: expected the name of a file, found characters that no name has; check the path")
    try:
        yield
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}; check the path and its rights") from error


def file_digest(path: Path) -> str:
    """SHA-256 of a file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


Paths = str | Path | Sequence[str | Path]


def as_paths(given: Paths) -> list[str]:
    """One path or several."""
    return [str(given)] if isinstance(given, (str, Path)) else [str(path) for path in given]
