"""stdout: in UTF-8, and what happens where it cannot take what is written: a full disk, or a reader that went away.

On stderr: the notes of readers of files.
"""

import io
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def open_output() -> None:
    """Make stdout take UTF-8, whatever the terminal's own encoding is; nothing where it is closed, as by `>&-`.

    Names of files that are no UTF-8 keep their bytes.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")


def output_error() -> OSError | None:
    """The error with which stdout refuses its buffer; None where it takes it."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return error
    return None


def drop_output() -> None:
    """Drop the buffer of stdout, so that Python does not try to write it again as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def has_place(error: OSError) -> bool:
    """Whether an error is about a file that has a name, and so not about stdout."""
    return error.filename is not None


class _Kept(logging.Handler):
    """Remarks in their order, each once: a file may be read twice."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.messages[record.getMessage()] = None


@contextmanager
def notes_of_readers() -> Iterator[None]:
    """Say at the end on stderr what was read and left out (files/text_lines.py); where something fails, only that."""
    logger, handler = logging.getLogger("fairseq_llrnn.files"), _Kept()
    before = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
        for text in handler.messages:
            print(f"note: {text}", file=sys.stderr)
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
