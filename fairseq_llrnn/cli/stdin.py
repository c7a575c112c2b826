"""Text from stdin or from a file, read alike: as UTF-8, whatever the terminal's own encoding is."""

import sys
from collections.abc import Iterator
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.reading import reading
from fairseq_llrnn.files.text_lines import iter_lines, numbered, opened

STDIN = "-"


def text_lines(path: str) -> Iterator[str]:
    """The lines of a file, or of stdin where it is called `-`, each with a newline. Raises DataError."""
    lines = _of_stdin() if path == STDIN else iter_lines(path)
    return (f"{line}\n" for _, line in lines)


def _of_stdin() -> Iterator[tuple[int, str]]:
    _check_stdin()
    with reading("stdin"):
        yield from numbered(sys.stdin.buffer, "stdin")


def _check_stdin() -> None:
    if sys.stdin is None:  # closed, as by `<&-`
        raise DataError("stdin: expected a text, found it closed; give a file, or a text by `|` or `<`")


def stdin_lines() -> Iterator[str]:
    """The lines of stdin."""
    return text_lines(STDIN)


def check_text(path: str) -> None:
    """Raise DataError where a text cannot be read: now, and not when a model was loaded. A pipe begins but once."""
    if path == STDIN:
        _check_stdin()
        return
    with reading(path):
        is_pipe = Path(path).is_fifo()
    if not is_pipe:
        with opened(path):
            pass
