"""Text from stdin or from a file, read alike: as UTF-8, whatever the terminal's own encoding is."""

import sys
from collections.abc import Iterator
from pathlib import Path

from fairseq_llrnn.files.text_lines import iter_lines, numbered, opened

STDIN = "-"


def text_lines(path: str) -> Iterator[str]:
    """The lines of a file, or of stdin where it is called `-`, each with a newline. Raises DataError."""
    lines = numbered(sys.stdin.buffer, "stdin") if path == STDIN else iter_lines(path)
    return (f"{line}\n" for _, line in lines)


def stdin_lines() -> Iterator[str]:
    """The lines of stdin."""
    return text_lines(STDIN)


def check_text(path: str) -> None:
    """Raise DataError where a text cannot be read: now, and not when a model was loaded. A pipe begins but once."""
    if path != STDIN and not Path(path).is_fifo():
        with opened(path):
            pass
