"""Print tables, numbers and notes of commands, and handle errors of stdout.

Tables are plain UTF-8 for a terminal of 100 columns. Words come from texts of other people: characters that a terminal
does not show, or obeys (escape sequences), are printed as escapes. Wide and combining characters are counted by their
columns.

stdout is in UTF-8, too. Writing to it can fail: the disk is full, or the reader is closed. Notes on files go to stderr.
"""

import io
import logging
import math
import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from logging.handlers import BufferingHandler

from fairseq_llrnn.errors import as_one_line
from fairseq_llrnn.lexicon.language_check import is_warning

WIDTH = 100


def printable(word: str) -> str:
    """Escape control characters, unusual spaces and broken bytes of a word."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in word)


def columns(text: str) -> int:
    """Count the terminal columns of a text."""
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def cut(text: str, width: int) -> str:
    """Cut a text to at most `width` columns. `…` marks a cut."""
    if columns(text) <= width:
        return text
    kept = ""
    for c in text:
        if columns(kept + c) > width - 1:
            break
        kept += c
    return kept + "…"


def fit_left(text: str, width: int) -> str:
    """Cut or pad a text to exactly `width` columns, aligned left."""
    text = cut(text, width)
    return text + " " * (width - columns(text))


def labelled(label: str, items: Iterable[str], indent: int = 2, label_width: int = 13, gap: str = "   ") -> str:
    """Return `label  item   item …`, with line breaks between items at the width of the terminal."""
    start = " " * indent + fit_left(label, label_width) + " "
    lines, room = [start], WIDTH - columns(start)
    fresh = True
    for item in items:
        item = cut(item, room)
        if not fresh and columns(lines[-1]) + len(gap) + columns(item) > WIDTH:
            lines.append(" " * columns(start))
            fresh = True
        lines[-1] += ("" if fresh else gap) + item
        fresh = False
    return "\n".join(line.rstrip() for line in lines)


def probability(p: float) -> str:
    """Format a probability with three significant digits, in at most eight columns."""
    if p == 0.0:
        return "0"
    return f"{p:.3f}" if p >= 0.1 else f"{p:.4f}" if p >= 0.01 else f"{p:.5f}" if p >= 0.001 else f"{p:.2e}"


def percent(ratio: float) -> str:
    """Format a ratio in percent with two significant digits. `0%` and `100%` are exact."""
    if ratio in (0.0, 1.0):
        return f"{ratio:.0%}"
    value = 100 * ratio
    if value >= 99.5:
        return ">99%"
    if value < 0.01:
        return "<0.01%"
    return f"{value:.{max(0, 1 - math.floor(math.log10(value)))}f}%"


def plural(number: int, singular: str, several: str | None = None) -> str:
    """Return `1 word`, `2,500 words`."""
    return f"{number:,} {singular if number == 1 else several or singular + 's'}"


def feature_items(row: Sequence[tuple[str, float]]) -> list[str]:
    """Return feature names, with each value other than 1."""
    return [printable(name) if value == 1.0 else f"{printable(name)}={value:.4g}" for name, value in row]


def say_notes(notes: Mapping[str, int]) -> None:
    """Print remarks and their counts, warnings first. A count of 0 is printed only for a warning, where it is the worst
    case.
    """
    for remark, count in sorted(notes.items(), key=lambda entry: (not is_warning(entry[0]), entry[0])):
        if count or is_warning(remark):
            print(f"{'warning' if is_warning(remark) else 'note'}: {count:,} {as_one_line(remark)}", file=sys.stderr)


def note(text: str) -> None:
    """Print a remark to stderr, so that a pipe gets results only."""
    print(f"note: {as_one_line(text)}", file=sys.stderr)


def warn(text: str) -> None:
    """Print a warning to stderr: the result may be wrong."""
    print(f"warning: {as_one_line(text)}", file=sys.stderr)


def open_streams() -> None:
    """Let stdout take UTF-8 in any locale, and give closed streams (`>&-`) a file.

    Otherwise the next file that is opened would get the closed stream's number, and messages would be written into it.
    Results for a closed stdout raise an error when they are written. Messages for a closed stderr are dropped. File
    names that are not UTF-8 keep their bytes.
    """
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)  # open returns the lowest free number: this one
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    elif sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


def output_error() -> OSError | None:
    """Return the error of writing stdout's buffer, or None."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return error
    return None


def drop_output() -> None:
    """Drop the buffer of stdout, so that Python does not write it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Warnings(logging.Handler):
    """Print warnings in the form of fairseq's commands (plugin/command_lines.py)."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.printed = set[str]()  # a text may be read twice

    def emit(self, record: logging.LogRecord) -> None:
        line = f"{record.levelname.lower()}: {' '.join(record.getMessage().split())}"
        if line not in self.printed:
            self.printed.add(line)
            print(line, file=sys.stderr)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print logged warnings in one line without the module's name, unless another handler prints them."""
    handler = _Warnings()
    if not logging.root.handlers:
        logging.root.addHandler(handler)
    try:
        yield
    finally:
        logging.root.removeHandler(handler)


@contextmanager
def notes_of_readers() -> Iterator[None]:
    """Print to stderr, at the end, what files/text_lines.py read and left out. After an error, print only the error."""
    logger, handler = logging.getLogger("fairseq_llrnn.files"), BufferingHandler(sys.maxsize)
    before = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
        for text in dict.fromkeys(record.getMessage() for record in handler.buffer):  # a file may be read twice
            print(f"note: {text}", file=sys.stderr)
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
