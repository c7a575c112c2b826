"""Pairs of sentences whose sources carry terms: those that training invents, and those of a run.

The terms of a run are read when a sentence first needs them; at the end, a file that matched nothing is worth a
warning.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from fairseq.data import BaseWrapperDataset, FairseqDataset

from fairseq_llrnn.plugin.data.evidence_data import ChangedPairs
from fairseq_llrnn.systems.terms.invented_terms import InventedTerms
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

    def __reduce__(self) -> tuple[Any, ...]:
        """For a worker that is spawned, as on macOS: it gets sentences that have their marks."""
        return RunTerms, (_elsewhere, self._use.file, self._use.rows)

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


def _elsewhere() -> Terms:
    raise RuntimeError("expected lines in the process that has the terms, found them in a copy of it; mark them there")


def _say_what_matched(use: Use) -> None:
    if use.rows and use.sentences and not use.matched:
        logger.warning(
            f"--terms {use.file}: expected phrases that sentences have, found 0 of {use.rows:,} rows in "
            f"{use.sentences:,} sentences; write them as the sources are: in tokens, lower-cased or not "
            "(--source-lexicon lets them match by lemmas)"
        )


class InventedMarks(ChangedPairs):
    """Pairs a share of which has terms, in every epoch others."""

    def __init__(self, dataset: FairseqDataset, invented: InventedTerms) -> None:
        super().__init__(dataset, invented.share, invented.seed)
        self.invented = invented

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        source, target = pair["source"].numpy(), pair["target"].numpy()
        changed = self.invented.of(source, target, self.epoch, int(index))
        return pair if changed is source else pair | {"source": torch.from_numpy(changed)}


class TermMarks(BaseWrapperDataset):
    """Pairs whose sources carry the terms of a run, found once and for all."""

    def __init__(self, dataset: FairseqDataset, terms: RunTerms) -> None:
        super().__init__(dataset)
        self.changed: dict[int, torch.Tensor] = {}
        for index in range(len(dataset)):
            source = dataset[index]["source"].tolist()
            marked = terms.marked(source)
            if marked != source:
                self.changed[index] = torch.tensor(marked)

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        return pair | {"source": self.changed[index]} if index in self.changed else pair
