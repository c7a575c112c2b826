"""Training with unknown words: rare words of the dictionary that are read, and have to be written, as unknown ones.

A share of a rare word's tokens (prior/open_vocabulary.py) become its alias: an id beyond the dictionary, which
the network reads as <unk> and scores by the open classes. Which ones depends on the seed, the epoch and the sample's
number alone, so that a resumed run sees what an unbroken one does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, Dictionary, FairseqDataset

from fairseq_llrnn.open_vocabulary.table import OpenTable
from fairseq_llrnn.plugin.compat.dictionaries import with_unk
from fairseq_llrnn.plugin.data.evidence_data import ChangedPairs
from fairseq_llrnn.prior.prior import Prior

STREAM = 2  # its random numbers are others than those of the evidence's data


class WithUnk(BaseWrapperDataset):
    """fairseq's samples with <unk> for strings beyond the dictionary."""

    def __init__(self, dataset: FairseqDataset, dictionary: Dictionary) -> None:
        super().__init__(dataset)
        self.dictionary = dictionary

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        return pair | {side: with_unk(pair[side], self.dictionary) for side in ("source", "target")}


class RareWordAliases(ChangedPairs):
    """fairseq's samples with rare words as unknown ones in the target; in a language model's source as well."""

    def __init__(self, dataset: FairseqDataset, prior: Prior, table: OpenTable, seed: int, translates: bool) -> None:
        """
        Args:
            table: of the prior.
            translates: whether the source is of another language, and not the words before the target.
        """
        super().__init__(dataset, 1.0, seed)
        self.evidence = prior.offers() if translates else None
        self.translates = translates
        shares = table.vocabulary.word_shares
        self.shares = np.append(shares, 0.0)  # the last one is of strings beyond the dictionary
        rare = np.flatnonzero(shares > 0)
        self.alias = np.zeros(len(shares), dtype=np.int64)
        self.alias[rare] = table.aliases(rare)
        table.log_probs(self.alias[rare])  # computed at once

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        target = pair["target"].numpy()
        random = np.random.default_rng((self.seed, self.epoch, int(index), STREAM))
        chosen = random.random(len(target)) < self.shares[np.minimum(target, len(self.shares) - 1)]
        if self.evidence is not None:
            chosen &= ~np.isin(target, self._offered(pair["source"].numpy()))
        if not chosen.any():
            return pair
        changed = target.copy()
        changed[chosen] = self.alias[target[chosen]]
        pair = pair | {"target": torch.from_numpy(changed)}
        if not self.translates:
            source = pair["source"].numpy().copy()
            read = np.flatnonzero(chosen[:-1])
            source[read + 1] = changed[read]
            pair["source"] = torch.from_numpy(source)
        return pair

    def _offered(self, source: np.ndarray) -> list[int]:
        """The target words that a source (L,) offers as evidence: these are to be copied."""
        assert self.evidence is not None
        some = source[self.evidence.some(source)].tolist()
        return [offer.word for token in some for offer in self.evidence.offers(token)]
