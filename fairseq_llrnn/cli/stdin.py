"""Text from stdin or from a file, whatever the terminal's own encoding is."""

import sys
from collections.abc import Iterator

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import iter_lines

STDIN = "-"


def text_lines(path: str) -> Iterator[str]:
    """The lines of a file, or of stdin where it is called `-`. Raises DataError."""
    return stdin_lines() if path == STDIN else (f"{line}\n" for _, line in iter_lines(path))


def stdin_lines() -> Iterator[str]:
    """The lines of stdin as UTF-8. Raises DataError for what is none, with line and byte."""
    for number, raw in enumerate(sys.stdin.buffer, 1):
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"stdin, line {number}, byte {error.start + 1}: expected UTF-8, found the byte "
                f"0x{raw[error.start]:02x}; convert the text to UTF-8"
            ) from None
        yield line
