"""Training with invented unknown words, in the place of words and their translations (evidence/synthetic_words.py).

Which sentences, places and strings depends on the seed, the epoch and the sentence's number alone, so that a resumed
run sees what an unbroken one does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset

from fairseq_llrnn.evidence.synthetic_words import certain_translations, invented_words
from fairseq_llrnn.plugin.data.evidence_data import ChangedPairs
from fairseq_llrnn.prior.parts.evidence import evidence_table
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior

MOST = 2  # invented words of a sentence: two, so that the model learns to tell them apart
STREAM = 1  # its random numbers are others than those of plugin/data/evidence_data.py


class InventedEvidence(ChangedPairs):
    """Pairs with invented words on both sides."""

    def __init__(self, dataset: FairseqDataset, prior: Prior, share: float, seed: int) -> None:
        """Raises ValueError for a prior without evidence or lexical translations."""
        super().__init__(dataset, share, seed)
        lexical, table = prior.find(LexicalPart), evidence_table(prior)
        if lexical is None:
            raise ValueError("the prior has no lexical translations")
        # shape: (U,)
        self.translation = certain_translations(lexical.table, prior.source_symbols, prior.symbols, prior.log_weights)
        known = set(prior.symbols) | set(prior.source_symbols)
        words = invented_words(table.rules, known, seed)
        # the ids of the invented strings on either side
        self.source_ids = np.array([table.source.open(word) for word in words])
        self.target_ids = np.array([table.target.open(word) for word in words])

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        random = np.random.default_rng((self.seed, self.epoch, int(index), STREAM))
        if len(self.source_ids) == 0 or random.random() >= self.share:
            return pair
        source, target = pair["source"].numpy(), pair["target"].numpy()
        places = self._aligned(source, target)
        if len(places) == 0:
            return pair
        chosen = random.permutation(places)[: random.integers(1, MOST + 1)]
        strings = random.choice(len(self.source_ids), len(chosen), replace=False)
        source, target = source.copy(), target.copy()
        for (i, j), string in zip(chosen, strings, strict=True):
            source[i], target[j] = self.source_ids[string], self.target_ids[string]
        return pair | {"source": torch.from_numpy(source), "target": torch.from_numpy(target)}

    def _aligned(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The places (P, 2) of source words and their translations, each the only one of its kind in its sentence."""
        known = source < len(self.translation)
        becomes = np.where(known, self.translation[np.where(known, source, 0)], -1)  # shape: (L,)
        words, counts = np.unique(becomes[becomes >= 0], return_counts=True)
        once = words[counts == 1]
        there, first, counts = np.unique(target, return_index=True, return_counts=True)
        place_of = dict(zip(there[counts == 1].tolist(), first[counts == 1].tolist(), strict=True))
        pairs = [(i, place_of[x]) for i, x in enumerate(becomes.tolist()) if x in place_of and x in once]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)
