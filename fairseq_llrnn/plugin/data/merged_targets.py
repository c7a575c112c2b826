"""Targets in which slots stand for the pieces that spell them (evidence/merged_targets.py), in every data set.

What a source offers depends on the source alone, so that training, validation and forced beginnings read a target as a
search writes it.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import BaseWrapperDataset, FairseqDataset
from torch import Tensor

from fairseq_llrnn.evidence.merged_targets import merged
from fairseq_llrnn.evidence.slots import kept_offers
from fairseq_llrnn.evidence.table import EvidenceTable


def merged_target(table: EvidenceTable, source: Tensor, target: Tensor) -> Tensor:
    """The target (T,) with the slots of its source (L,): (T',), T' ≤ T."""
    [slots] = kept_offers(table, source.cpu().numpy()[None])
    if not slots:
        return target
    return torch.from_numpy(merged(target.cpu().numpy(), [offer.word for offer, _ in slots], table.target_words))


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
