"""The terms of a run: read when a sentence first needs them, and at the end a word on a file that matched nothing."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from fairseq_llrnn.systems.terms.terms import Terms

logger = logging.getLogger(__name__)


@dataclass
class Use:
    """What has been asked of the terms."""

    file: str
    rows: int  # of the file
    sentences: int = 0
    matched: int = 0


class RunTerms:
    """The terms of a run."""

    def __init__(self, read: Callable[[], Terms], file: str, rows: int) -> None:
        """rows: how many terms a file has for all sentences; 0 where only single sentences bring some along."""
        self.read, self._use = cache(read), Use(file, rows)
        weakref.finalize(self, _say_what_matched, self._use)  # at the end of a process, too

    def read_for(self, lines: Sequence[str]) -> None:
        """Read the files now, where one of these lines needs them. Raises as the readers do."""
        if self._use.rows or any("\t" in line for line in lines):
            self.read()

    def marked(self, tokens: Sequence[int], cells: Sequence[str] = ()) -> list[int]:
        """As of `Terms`."""
        if not self._use.rows and not cells:
            return list(tokens)
        terms = self.read()
        with_marks = terms.marked(tokens, cells)
        self._use.sentences, self._use.matched = self._use.sentences + 1, terms.matched
        return with_marks


def _say_what_matched(use: Use) -> None:
    if use.rows and use.sentences and not use.matched:
        logger.warning(
            f"--terms {use.file}: expected phrases that sentences have, found 0 of {use.rows:,} rows in "
            f"{use.sentences:,} sentences; write them as the sources are: in tokens, lower-cased or not "
            "(--source-lexicon lets them match by lemmas)"
        )
