"""Large texts in blocks of whole lines, processed by several processes. Results come in the order of the text.

The function is at the top level of a module (`counts_of_block` of features/dictionary.py), which a worker imports by
its name. For small texts or one process, the same function runs in this process, with the same results. Memory is a few
blocks, for texts of any length.
"""

from __future__ import annotations

import io
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.processes import ordered
from fairseq_llrnn.files.text_lines import (
    BYTE_ORDER_MARK,
    MAX_LINE_BYTES,
    ReadCount,
    decoded,
    opened,
    place,
    shown,
    text_only,
)

BLOCK_BYTES = 1 << 22  # of unpacked text: about 700,000 words
INNER_RETURN = re.compile(rb"\r(?!\n|\Z)")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Block:
    """Consecutive lines of a text."""

    path: str
    first: int  # the number of its first line, from 1
    raw: bytes  # whole lines
    read: int  # bytes read from the file, which may be packed

    @property
    def num_lines(self) -> int:
        """The number of lines. The last line of a file may have no end."""
        return self.raw.count(b"\n") + (not self.raw.endswith(b"\n"))

    def text(self) -> str:
        r"""Return the lines with their ends, \n.

        Raises:
            DataError: a treebank, or a line that is not UTF-8 or too long, or has a carriage return inside.
                fairseq-preprocess would make two sentences of such a line, so that a text and its translation would no
                longer match.
        """
        try:
            text = self.raw.decode("utf-8")
        except UnicodeDecodeError:
            self._complain()
            raise
        if self.has_long_line or INNER_RETURN.search(self.raw):
            self._complain()
        if self.first > 1:
            return text
        text = text.removeprefix(BYTE_ORDER_MARK)
        for _, line in text_only(enumerate(io.StringIO(text), 1), self.path):
            if not line.startswith("#"):
                break
        return text

    def lines(self) -> list[tuple[int, str]]:
        """Return numbers and lines without their ends. Raises DataError, as `text`."""
        lines = self.text().split("\n")
        if not lines[-1]:
            lines.pop()
        return [(number, line.rstrip("\r")) for number, line in enumerate(lines, self.first)]

    @property
    def has_long_line(self) -> bool:
        begin = 0
        while begin + MAX_LINE_BYTES < len(self.raw):
            end = self.raw.rfind(b"\n", begin, begin + MAX_LINE_BYTES)
            if end < 0:
                return True
            begin = end + 1
        return False

    def _complain(self) -> None:
        """Raise DataError for the first bad line."""
        for number, line in enumerate(io.BytesIO(self.raw), self.first):
            text = decoded(line, self.path, number)
            if INNER_RETURN.search(line):
                raise DataError(
                    f"{place(self.path, number)}: expected a sentence, found a carriage return in {shown(text)}, which "
                    "fairseq-preprocess reads as its end; write a blank instead (`tr '\\r' ' '`), and preprocess again"
                )


def iter_blocks(path: Path | str) -> Iterator[Block]:
    """Yield the blocks of a UTF-8 file, plain or packed, or of a pipe.

    Raises:
        DataError: the file cannot be read or unpacked.
    """
    with opened(path) as (source, on_disk):
        number, start = 1, 0
        while raw := source.read(BLOCK_BYTES):
            if not raw.endswith(b"\n"):
                raw += source.readline(MAX_LINE_BYTES + 1)
            position = start + len(raw)
            with suppress(OSError):  # a pipe has no position
                position = on_disk.tell()
            block = Block(str(path), number, raw, position - start)
            yield block
            number, start = number + block.num_lines, position


def map_blocks(
    function: Callable[[Block], Result], paths: Sequence[Path | str], doing: str, workers: int | None = None
) -> Iterator[Result]:
    """Yield the results of all blocks of some files, in order, with a progress bar on a terminal.

    Args:
        function: of a module's top level, so that another process can import it.
        doing: the bar's label, e.g. "counting words".
        workers: processes (None: `default_workers()`).

    Raises:
        DataError: the first one in the order of the text.
    """
    sizes = [os.path.getsize(path) for path in paths if os.path.isfile(path)]
    total = sum(sizes) if len(sizes) == len(paths) else None  # unknown for a pipe
    counts = {str(path): ReadCount(path, "lines") for path in paths}

    def blocks() -> Iterator[Block]:
        for path in paths:
            for block in iter_blocks(path):
                counts[block.path].entries += block.num_lines
                yield block

    with tqdm(total=total, desc=doing, unit="B", unit_scale=True, leave=False, disable=None) as bar:
        for block, result in ordered(function, blocks(), workers):
            bar.update(block.read)
            yield result
            counts[block.path].read += block.num_lines
    for count in counts.values():
        count.done(logging.DEBUG)
