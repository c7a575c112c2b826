"""Targets in which slots stand for the pieces, or words, that spell them (evidence/merged_targets.py).

What a source offers depends on the source alone, so that training, validation and forced beginnings read a target as a
search writes it.
"""

from __future__ import annotations

from typing import Any

from fairseq.data import BaseWrapperDataset, FairseqDataset

from fairseq_llrnn.evidence.merged_targets import merged_target
from fairseq_llrnn.evidence.table import EvidenceTable


class MergedTargets(BaseWrapperDataset):
    """Pairs with merged targets. Lengths are those before, which are no shorter."""

    def __init__(self, dataset: FairseqDataset, table: EvidenceTable) -> None:
        super().__init__(dataset)
        self.table = table

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        if pair["target"] is None:
            return pair
        return pair | {"target": merged_target(self.table, pair["source"], pair["target"])}

    @property
    def src(self) -> Any:
        """The sources, for what asks fairseq's data set of pairs for them."""
        return self.dataset.src

    @property
    def tgt(self) -> Any:
        return self.dataset.tgt
