"""Training with unknown words: sources some of whose words are read as <unk> and have to be copied.

Where all words of the training text are in the dictionaries, a model would never see what it has to do with unknown
ones. So a share of the known source words that are copied (their string, or what it is mapped to, is in the target)
become their *unknown aliases* (evidence/table.py): read as <unk>, offered as slots of unknown words. All places of a
word go together. Which ones depends on the seed, the epoch and the sentence's number alone, so that a resumed run sees
what an unbroken one does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, FairseqDataset

from fairseq_llrnn.evidence.table import EvidenceTable


class ChangedPairs(BaseWrapperDataset):
    """fairseq's pairs of sentences, a share of which training changes, in every epoch others."""

    def __init__(self, dataset: FairseqDataset, share: float, seed: int) -> None:
        super().__init__(dataset)
        self.share, self.seed, self.epoch = share, seed, 1

    def set_epoch(self, epoch: int) -> None:
        super().set_epoch(epoch)
        self.epoch = epoch


class UnknownAliases(ChangedPairs):
    """Pairs with unknown aliases in the source."""

    def __init__(self, dataset: FairseqDataset, table: EvidenceTable, share: float, seed: int) -> None:
        super().__init__(dataset, share, seed)
        # by source id: the unknown alias, and the target word that it is evidence for; −1 where there is none
        self.alias = np.full(table.source.known, -1)
        self.target = np.full(table.source.known, -1)
        for word in range(table.source.known):
            alias = table.alias_of(word)
            if alias is not None:
                self.alias[word], self.target[word] = alias, table.offers(alias)[0].word

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        source = pair["source"].numpy()
        known = np.where(source < len(self.alias), source, 0)  # an open id has no alias, and neither has <s>
        copied = np.unique(source[np.isin(self.target[known], pair["target"].numpy()) & (self.target[known] >= 0)])
        if len(copied) == 0:
            return pair
        draws = np.random.default_rng((self.seed, self.epoch, int(index))).random(len(copied))
        chosen = copied[draws < self.share]
        if len(chosen) == 0:
            return pair
        return pair | {"source": torch.from_numpy(np.where(np.isin(source, chosen), self.alias[known], source))}
