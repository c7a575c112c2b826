"""How commands print: tables and numbers for a terminal, notes on stderr, and stdout that may fail.

Tables are plain UTF-8 that stays readable on a terminal of 100 columns. Words come from other people's texts. What a
terminal would not show, or would obey (escape sequences), is printed as an escape; wide and combining characters are
counted as the columns they take.

stdout is in UTF-8, too. It may not take what is written: the disk is full, or a reader went away. The notes of
readers of files go to stderr.
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
    """The word with its control characters, odd spaces and broken bytes escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in word)


def columns(text: str) -> int:
    """How many terminal columns the text takes."""
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns, with `…` where something is missing."""
    if columns(text) <= width:
        return text
    kept = ""
    for c in text:
        if columns(kept + c) > width - 1:
            break
        kept += c
    return kept + "…"


def fit_left(text: str, width: int) -> str:
    """Cut or padded to exactly `width` columns, flush left."""
    text = cut(text, width)
    return text + " " * (width - columns(text))


def labelled(label: str, items: Iterable[str], indent: int = 2, label_width: int = 13, gap: str = "   ") -> str:
    """`label  item   item …`, broken between items where the terminal ends."""
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
    """Three digits that count, in at most eight columns."""
    if p == 0.0:
        return "0"
    return f"{p:.3f}" if p >= 0.1 else f"{p:.4f}" if p >= 0.01 else f"{p:.5f}" if p >= 0.001 else f"{p:.2e}"


def percent(share: float) -> str:
    """A share in percent: two digits that count, never `0%` or `100%` for what is neither."""
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    hundred = 100 * share
    if hundred >= 99.5:
        return ">99%"
    if hundred < 0.01:
        return "<0.01%"
    return f"{hundred:.{max(0, 1 - math.floor(math.log10(hundred)))}f}%"


def plural(number: int, one: str, several: str | None = None) -> str:
    """`1 word`, `2,500 words`."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def feature_items(row: Sequence[tuple[str, float]]) -> list[str]:
    """Feature names, with their values where these are not 1."""
    return [printable(name) if value == 1.0 else f"{printable(name)}={value:.4g}" for name, value in row]


def say_notes(notes: Mapping[str, int]) -> None:
    """Remarks of how many things each is true; first those which say that all may be wrong, of which 0 is the worst."""
    for remark, count in sorted(notes.items(), key=lambda entry: (not is_warning(entry[0]), entry[0])):
        if count or is_warning(remark):
            print(f"{'warning' if is_warning(remark) else 'note'}: {count:,} {as_one_line(remark)}", file=sys.stderr)


def note(text: str) -> None:
    """A remark beside the result: on stderr, so that a pipe gets results only."""
    print(f"note: {as_one_line(text)}", file=sys.stderr)


def warn(text: str) -> None:
    """A remark that the result may be wrong."""
    print(f"warning: {as_one_line(text)}", file=sys.stderr)


def open_streams() -> None:
    """Make stdout take UTF-8, whatever the terminal's own encoding is, and give closed streams (`>&-`) a file.

    Otherwise a file that is opened later takes the place of the closed stream, and messages are written into it.
    Results for a closed stdout are an error when they are written; messages for a closed stderr are dropped. Names of
    files that are not UTF-8 keep their bytes.
    """
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)  # open takes the lowest free number, which is this one
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    elif sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


def output_error() -> OSError | None:
    """Return the error with which stdout rejects its buffer, or None."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return error
    return None


def drop_output() -> None:
    """Drop the buffer of stdout, so that Python does not try to write it again as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Warnings(logging.Handler):
    """As fairseq's commands print them (plugin/command_lines.py)."""

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
    """Print what is logged as a warning in one line without the module's name, unless somebody else prints it."""
    handler = _Warnings()
    if not logging.root.handlers:
        logging.root.addHandler(handler)
    try:
        yield
    finally:
        logging.root.removeHandler(handler)


@contextmanager
def notes_of_readers() -> Iterator[None]:
    """Say at the end on stderr what was read and left out (files/text_lines.py); where something fails, only that."""
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
