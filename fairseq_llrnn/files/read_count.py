"""How many entries of a file a reader read, and how many it left out, for which reasons.

Each reader fills one count for each file, in three places that are independent of each other: `entries` where they come
in, `read` where they are used, and `left_out` where they are not. So `entries == read + left_out` holds only where
nothing gets lost; tests/files/test_read_counts.py asks it of every reader. A count that is done is
logged: `llrnn` prints it as a note, fairseq's commands in their log. Those of texts, all of whose lines are read, are
on level DEBUG.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fairseq_llrnn.files.text_lines import in_form, iter_lines

logger = logging.getLogger(__name__)


def _is_filled(line: str) -> bool:
    return bool(line.strip(" \t"))  # other blanks may be a word that shows nothing


@dataclass
class ReadCount:
    """Of one file, or of what else lists entries."""

    file: Path | str
    what: str = "rows"
    form: str | None = None  # the Unicode form that its lines are read in; None: as they are
    entries: int = 0
    read: int = 0
    later: bool = False  # whether it is done only when its reader says so, and not behind the last line
    left_out: Counter[str] = field(default_factory=Counter)  # reason -> entries

    def lines(self, is_entry: Callable[[str], bool] = _is_filled, rest: bool = False) -> Iterator[tuple[int, str]]:
        """Numbers and lines of the entries.

        Args:
            rest: give the other lines, too; then the reader says when it is done.

        Raises:
            DataError: as `iter_lines`.
        """
        for number, raw in iter_lines(self.file):
            line = in_form(raw, self.form)
            counts = is_entry(line)
            self.entries += counts
            if counts or rest:
                yield number, line
        if not (rest or self.later):
            self.done()

    def done(self, level: int = logging.INFO) -> None:
        """Say it, unless there was nothing, which readers refuse."""
        if self.entries:
            logger.log(level, "%s", self)

    def __str__(self) -> str:
        """`words.tsv: 1,204 of 1,210 rows read; left out: 4 without a lemma, 2 repeated`."""
        text = f"{self.file}: {self.read:,} of {self.entries:,} {self.what} read"
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.left_out.items()) if count)
        return f"{text}; left out: {reasons}" if reasons else text


def iter_sentences(path: Path | str) -> Iterator[tuple[int, str]]:
    """What `iter_lines` gives, of a text or dictionary all of whose lines are read: nothing that is worth a note."""
    count = ReadCount(path, "lines", later=True)
    for number, line in count.lines(lambda _: True):
        yield number, line
        count.read += 1
    count.done(logging.DEBUG)
