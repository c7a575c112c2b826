"""Sentence pairs whose sources carry terms: invented ones in training, and those of a term file.

The term file's forms are read when a sentence first needs them. A warning at the end reports a file without any match.
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
class MatchCounts:
    """How often the terms of a run were used."""

    file: str
    rows: int  # of the file
    sentences: int = 0
    matched: int = 0


class RunTerms:
    """The terms of a run, read at first use."""

    def __init__(self, read: Callable[[], Terms], file: str, rows: int) -> None:
        """rows: number of terms in the file (0: only single sentences may have terms)."""
        self.read, self._use = cache(read), MatchCounts(file, rows)
        weakref.finalize(self, _warn_without_matches, self._use)  # at the end of a process, too

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a copy for a spawned worker (as on macOS), whose sentences already have their marks."""
        return RunTerms, (_fail_in_copy, self._use.file, self._use.rows)

    def read_for(self, lines: Sequence[str]) -> None:
        """Read the terms now if one of these lines needs them. Raises as the readers."""
        if self._use.rows or any("\t" in line for line in lines):
            self.read()

    def marked(self, tokens: Sequence[int], cells: Sequence[str] = ()) -> list[int]:
        """Return the tokens with the marks of `Terms.marked`, and count the matches."""
        if not self._use.rows and not cells:
            return list(tokens)
        terms = self.read()
        with_marks = terms.marked(tokens, cells)
        self._use.sentences, self._use.matched = self._use.sentences + 1, terms.matched
        return with_marks


def _fail_in_copy() -> Terms:
    raise RuntimeError("terms can be marked only in the process that read them, not in a spawned copy")


def _warn_without_matches(use: MatchCounts) -> None:
    if use.rows and use.sentences and not use.matched:
        logger.warning(
            f"--terms {use.file}: none of the {use.rows:,} phrases occurs in the {use.sentences:,} sentences; write "
            "phrases with the tokens and the case of the sources (--source-lexicon lets them match by lemmas)"
        )


class InventedMarks(ChangedPairs):
    """Pairs of which a share has invented terms, drawn again in every epoch."""

    def __init__(self, dataset: FairseqDataset, invented: InventedTerms) -> None:
        super().__init__(dataset, invented.share, invented.seed)
        self.invented = invented

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        source, target = pair["source"].numpy(), pair["target"].numpy()
        changed = self.invented.of(source, target, self.epoch, int(index))
        return pair if changed is source else pair | {"source": torch.from_numpy(changed)}


class TermMarks(BaseWrapperDataset):
    """Pairs whose sources carry the terms of a file, found once at construction."""

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
