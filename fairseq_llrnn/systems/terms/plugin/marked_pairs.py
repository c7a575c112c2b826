"""Pairs of sentences whose sources carry terms: those that training invents, and those of a run."""

from typing import Any

import torch
from fairseq.data import BaseWrapperDataset, FairseqDataset

from fairseq_llrnn.plugin.data.evidence_data import ChangedPairs
from fairseq_llrnn.systems.terms.invented_terms import InventedTerms
from fairseq_llrnn.systems.terms.run import RunTerms


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
