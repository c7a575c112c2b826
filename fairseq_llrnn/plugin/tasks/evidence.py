"""What a translation task does where its prior's evidence offers strings of the source.

It is made where there is some (translation.py): training sees unknown words then, and targets have slots as tokens.
"""

from __future__ import annotations

import logging
from typing import Any

from fairseq.data import FairseqDataset
from torch import Tensor

from fairseq_llrnn.evidence.piece_table import PieceTable
from fairseq_llrnn.evidence.slots import merged_target
from fairseq_llrnn.plugin.data.evidence_data import MergedTargets, UnknownAliases, warn_of_lost_evidence
from fairseq_llrnn.plugin.data.invented_evidence import InventedEvidence
from fairseq_llrnn.prior.parts.evidence import evidence_table

logger = logging.getLogger(__name__)


class OfferedStrings:
    """Slots of a task."""

    def __init__(self, task: Any) -> None:
        """
        Args:
            task: a translation task with its prior.
        """
        self.prior, self.cfg = task.prior, task.cfg
        self.table = evidence_table(self.prior, self.cfg.max_slots, self.cfg.evidence_once)
        self.unk = task.source_dictionary.unk()
        # Where a slot may be several tokens of a target, targets are read with slots for them.
        self.are_long = isinstance(self.table, PieceTable) or bool(self.table.rules.asked)

    def with_unknown_words(self, pairs: FairseqDataset) -> FairseqDataset:
        """A training set, some words of whose sources are read as unknown, and with invented words in some pairs."""
        if self.cfg.evidence_dropout > 0:
            pairs = UnknownAliases(pairs, self.table, self.cfg.evidence_dropout, self.cfg.seed)
        if self.cfg.invented_evidence > 0 and self.prior.translations is not None:
            pairs = InventedEvidence(pairs, self.prior, self.cfg.invented_evidence, self.cfg.seed)
        return pairs

    def merged(self, pairs: FairseqDataset) -> FairseqDataset:
        """Pairs whose targets have slots as single tokens."""
        return MergedTargets(pairs, self.table) if self.are_long else pairs

    def as_written(self, source: Tensor, target: Tensor) -> Tensor:
        """A target (T,) as a search would write it for its source (L,): with slots as single tokens."""
        return merged_target(self.table, source, target) if self.are_long else target

    def warn(self, name: str, sources: Any) -> None:
        """Of evidence that finds no room. name: of the data."""
        warn_of_lost_evidence(self.table, name, sources, self.unk, binary=self.cfg.dataset_impl != "raw")
