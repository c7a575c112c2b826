"""Text from stdin, whatever the terminal's own encoding is."""

import sys
from collections.abc import Iterator

from fairseq_llrnn.errors import DataError


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
