"""Training with invented unknown words, in the place of words and their translations (evidence/synthetic_words.py).

Over pieces, they take the place of words that are a single piece on either side.
Which sentences, places and strings depends on the seed, the epoch and the sentence's number alone, so that a resumed
run sees what an unbroken one does.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset

from fairseq_llrnn.evidence.piece_table import PieceTable
from fairseq_llrnn.evidence.synthetic_words import certain_translations, in_pieces, invented_words
from fairseq_llrnn.evidence.word_spans import WordSpans
from fairseq_llrnn.features.dictionary import plain
from fairseq_llrnn.plugin.data.evidence_data import ChangedPairs
from fairseq_llrnn.prior.parts.evidence import evidence_table
from fairseq_llrnn.prior.prior import Prior

MOST = 2  # invented words of a sentence: two, so that the model learns to tell them apart
STREAM = 1  # its random numbers are others than those of plugin/data/evidence_data.py


class InventedEvidence(ChangedPairs):
    """Pairs with invented words on both sides."""

    def __init__(self, dataset: FairseqDataset, prior: Prior, share: float, seed: int) -> None:
        """Raises ValueError for a prior without evidence or lexical translations."""
        super().__init__(dataset, share, seed)
        lexical, table = prior.translations, evidence_table(prior)
        if lexical is None:
            raise ValueError("the prior has no lexical translations")
        units = lexical.unit_table
        # shape: (U,)
        self.translation = certain_translations(units, prior.source_symbols, prior.symbols, prior.log_weights)
        # a lemma stands for its forms: any of them gives way
        self.unit_of = np.arange(len(prior.symbols)) if lexical.forms is None else lexical.forms.head_of  # shape: (V,)
        self.table = table
        # the ids of the invented strings on either side: over words one, over pieces several in the source
        self.sources: list[list[int]] = []
        self.targets: list[int] = []
        for word in self._words(prior, seed):
            pieces = self._in_pieces(word)
            if pieces is not None:
                self.sources.append(pieces)
                self.targets.append(table.target.open(table.written(word)))

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        random = np.random.default_rng((self.seed, self.epoch, int(index), STREAM))
        if not self.sources or random.random() >= self.share:
            return pair
        source, target = pair["source"].numpy(), pair["target"].numpy()
        places = self._aligned(source, target)
        if len(places) == 0:
            return pair
        chosen = random.permutation(places)[: random.integers(1, MOST + 1)]
        strings = random.choice(len(self.sources), len(chosen), replace=False)
        written, target = [[word] for word in source.tolist()], target.copy()
        for (i, j), string in zip(chosen, strings, strict=True):
            written[i], target[j] = self.sources[string], self.targets[string]
        source = np.array([word for words in written for word in words], dtype=source.dtype)
        return pair | {"source": torch.from_numpy(source), "target": torch.from_numpy(target)}

    def _words(self, prior: Prior, seed: int) -> list[str]:
        """Invented strings that are in the vocabulary of neither side."""
        vocabulary: Container[str] = {*prior.symbols, *prior.source_symbols}
        if isinstance(self.table, PieceTable):
            pieces = self.table.convention
            vocabulary = self.table.source_vocabulary | {pieces.bare(symbol) for symbol in prior.symbols}
        return invented_words(self.table.rules, vocabulary, seed)

    def _in_pieces(self, word: str) -> list[int] | None:
        """The source ids of an invented word; None where the pieces cannot spell it."""
        source = self.table.source
        if not isinstance(self.table, PieceTable):
            return [source.open(word)]
        pieces = in_pieces(word, self.table.convention, source.word_index)
        return None if pieces is None else [source.word_index[piece] for piece in pieces]

    def _aligned(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The places (P, 2) of source words and their translations, each the only one of its kind in its sentence."""
        in_table = (source < len(self.translation)) & self._are_words(source, self.table.source_words)
        becomes = np.where(in_table, self.translation[np.where(in_table, source, 0)], -1)  # shape: (L,)
        words, counts = np.unique(becomes[becomes >= 0], return_counts=True)
        once = words[counts == 1]
        in_dictionary = target < len(self.unit_of)
        units = np.where(in_dictionary, self.unit_of[np.where(in_dictionary, target, 0)], target)  # shape: (T,)
        there, first, counts = np.unique(units, return_index=True, return_counts=True)
        single = (counts == 1) & self._are_words(target, self.table.target_words)[first]
        place_of = dict(zip(there[single].tolist(), first[single].tolist(), strict=True))
        pairs = [(i, place_of[x]) for i, x in enumerate(becomes.tolist()) if x in place_of and x in once]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    @staticmethod
    def _are_words(sentence: np.ndarray, words: WordSpans) -> np.ndarray:
        """Which tokens of a sentence (L,) are whole words: bool (L,)."""
        if words.convention is None:
            return np.ones(len(sentence), dtype=bool)
        whole = np.zeros(len(sentence), dtype=bool)
        whole[[begin for begin, end in words.spans(plain(sentence)) if end == begin + 1]] = True
        return whole
