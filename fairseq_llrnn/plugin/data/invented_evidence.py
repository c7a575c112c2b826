"""Training with invented unknown words, and the slots of a translation task.

Sizes: U source words, V target words.

A model learns to treat unknown words from examples. Rare names and numbers are few, and occur in few places of a
sentence. So training puts invented strings into both sides of a pair, in place of a word and its translation that occur
once each. (Luong et al. 2015 mark the unknown words of a text on both sides for the same reason.) Over pieces, they
replace words that are a single piece on both sides. Sentences, places and strings depend only on the seed, the epoch
and the sentence's number, so that a resumed run equals an uninterrupted one.

A task has `OfferedStrings` (plugin/tasks/translation.py) if the evidence of its prior has strings of the source.
Training then sees unknown words, and targets have slots as tokens.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset
from torch import Tensor

from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.evidence.evidence_table import WordSpans
from fairseq_llrnn.evidence.piece_table import PieceTable
from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.evidence.slots import merged_target
from fairseq_llrnn.features.dictionary import plain
from fairseq_llrnn.features.subwords import Convention
from fairseq_llrnn.plugin.data.evidence_data import (
    ChangedPairs,
    MergedTargets,
    UnknownAliases,
    WithSlots,
    WithTextTargets,
    warn_of_lost_evidence,
)
from fairseq_llrnn.plugin.data.zero_mass import is_cross_fitted
from fairseq_llrnn.prior.parts.evidence_part import evidence_table
from fairseq_llrnn.prior.prior import Prior

POOL = 500  # invented strings of each kind
LEAST_PROBABILITY = 0.3  # t(x | s) of a word and its translation
MOST_FREQUENT = 0.02  # b₀(x): more frequent words, such as articles, are not replaced by a name
ONSETS = "b c d f g h j k l m n p r s t v w z br ch cl dr fr gr kr pl sh st tr".split()
VOWELS = "a e i o u ai au ee ou".split()
ENDINGS = ("", "n", "r", "s", "t", "ck", "ng")


def invented_words(rules: EvidenceRules, vocabulary: Container[str], seed: int) -> list[str]:
    """Return strings outside the dictionaries, for each kind that can be invented: numbers, names and copies.

    Args:
        vocabulary: the words of both dictionaries.
    """
    random = np.random.default_rng(seed)
    invented: list[str] = []
    for kind, draw in (("numbers", _number), ("names", _name), ("copies", _word)):
        if kind not in rules.kinds:
            continue
        new: dict[str, None] = {}  # an ordered set
        while len(new) < POOL:
            word = draw(random)
            evidence = rules.find(word, vocabulary)
            if word not in vocabulary and evidence is not None and evidence.words == (word,):
                new[word] = None
        invented += new
    return invented


def _number(random: np.random.Generator) -> str:
    digits = int(random.integers(1, 6))
    value = int(random.integers(10 ** (digits - 1), 10**digits))
    decimals = random.random() < 0.1
    return f"{value}.{int(random.integers(1, 100))}" if decimals else str(value)


def _word(random: np.random.Generator) -> str:
    syllables = int(random.integers(2, 5))
    return "".join(f"{random.choice(ONSETS)}{random.choice(VOWELS)}" for _ in range(syllables)) + str(
        random.choice(ENDINGS)
    )


def _name(random: np.random.Generator) -> str:
    return _word(random).capitalize()


def in_pieces(word: str, convention: Convention, pieces: Container[str]) -> list[str] | None:
    """Split a word into pieces, each the longest possible, or None if the pieces lack one of its characters.

    It needs no segmenter. The segmenter's own pieces are often the same.
    """
    text = convention.whole(word)
    split: list[str] = []
    begin = 0
    while begin < len(text):
        for end in range(len(text), begin, -1):
            goes_on = not convention.mark_begins and end < len(text)
            piece = convention.mark(text[begin:end]) if goes_on else text[begin:end]
            if piece in pieces:
                break
        else:
            return None
        split.append(piece)
        begin = end
    return split


def certain_translations(
    table: LexicalTable, source: Sequence[str], symbols: Sequence[str], log_weights: np.ndarray
) -> np.ndarray:
    """Return the translation of every source word with a probable one, neither of them too frequent: (U,), −1 for none.

    Args:
        source, symbols: U and V words.
        log_weights: log b₀, (V,).
    """
    best = np.full(len(source), -1)
    translated = np.flatnonzero(np.diff(table.offsets) > 0)
    first = table.offsets[translated]  # the most probable translation is the first one
    likely = table.probabilities[first] >= LEAST_PROBABILITY
    best[translated[likely]] = table.targets[first[likely]]
    for word in np.flatnonzero(best >= 0).tolist():
        translation = int(best[word])
        letters = all(any(map(str.isalpha, w)) for w in (source[word], symbols[translation]))
        if not letters or np.exp(log_weights[translation]) > MOST_FREQUENT:
            best[word] = -1
    return best


MOST = 2  # invented words in a sentence: two, so that the model learns to distinguish them
STREAM = 1  # separates its random numbers from those of plugin/data/evidence_data.py


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
        # a lemma stands for its forms, each of which may be replaced
        self.unit_of = np.arange(len(prior.symbols)) if lexical.forms is None else lexical.forms.head_of  # shape: (V,)
        self.table = table
        # ids of the invented strings on both sides; over pieces, several in the source
        self.sources: list[list[int]] = []
        self.targets: list[int] = []
        for word in self._words(prior, seed):
            pieces = self._in_pieces(word)
            if pieces is not None:
                self.sources.append(pieces)
                self.targets.append(table.target.open(table.token_string(word)))

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        random = np.random.default_rng((self.seed, self.epoch, int(index), STREAM))
        if not self.sources or random.random() >= self.share:
            return pair
        source, target = pair["source"].numpy(), pair["target"].numpy()
        places = self._aligned(source, target)
        if len(places) == 0:
            return pair
        replaced = random.permutation(places)[: random.integers(1, MOST + 1)]
        strings = random.choice(len(self.sources), len(replaced), replace=False)
        source_ids, target = [[word] for word in source.tolist()], target.copy()
        for (i, j), string in zip(replaced, strings, strict=True):
            source_ids[i], target[j] = self.sources[string], self.targets[string]
        source = np.array([word for words in source_ids for word in words], dtype=source.dtype)
        return pair | {"source": torch.from_numpy(source), "target": torch.from_numpy(target)}

    def _words(self, prior: Prior, seed: int) -> list[str]:
        """Return invented strings that are in the vocabulary of neither side."""
        vocabulary: Container[str] = {*prior.symbols, *prior.source_symbols}
        if isinstance(self.table, PieceTable):
            pieces = self.table.convention
            vocabulary = self.table.source_vocabulary | {pieces.bare(symbol) for symbol in prior.symbols}
        return invented_words(self.table.rules, vocabulary, seed)

    def _in_pieces(self, word: str) -> list[int] | None:
        """Return the source ids of an invented word, or None if the pieces cannot spell it."""
        source = self.table.source
        if not isinstance(self.table, PieceTable):
            return [source.open(word)]
        pieces = in_pieces(word, self.table.convention, source.word_index)
        return None if pieces is None else [source.word_index[piece] for piece in pieces]

    def _aligned(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the places (P, 2) of source words and their translations that occur once in their sentences."""
        in_table = (source < len(self.translation)) & self._are_words(source, self.table.source_words)
        translations = np.where(in_table, self.translation[np.where(in_table, source, 0)], -1)  # shape: (L,)
        words, counts = np.unique(translations[translations >= 0], return_counts=True)
        unique_words = words[counts == 1]
        in_dictionary = target < len(self.unit_of)
        units = np.where(in_dictionary, self.unit_of[np.where(in_dictionary, target, 0)], target)  # shape: (T,)
        unique_units, first, counts = np.unique(units, return_index=True, return_counts=True)
        single = (counts == 1) & self._are_words(target, self.table.target_words)[first]
        place_of = dict(zip(unique_units[single].tolist(), first[single].tolist(), strict=True))
        pairs = [(i, place_of[x]) for i, x in enumerate(translations.tolist()) if x in place_of and x in unique_words]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    @staticmethod
    def _are_words(sentence: np.ndarray, words: WordSpans) -> np.ndarray:
        """Return which tokens of a sentence (L,) are whole words: bool (L,)."""
        if words.convention is None:
            return np.ones(len(sentence), dtype=bool)
        are_whole = np.zeros(len(sentence), dtype=bool)
        are_whole[[begin for begin, end in words.spans(plain(sentence)) if end == begin + 1]] = True
        return are_whole


logger = logging.getLogger(__name__)


class OfferedStrings:
    """The slots of a task."""

    def __init__(self, task: Any) -> None:
        """
        Args:
            task: a translation task with a prior.
        """
        self.prior, self.cfg = task.prior, task.cfg
        self.table = evidence_table(self.prior, self.cfg.max_slots)
        self.unk, self.dictionary = task.source_dictionary.unk(), task.target_dictionary
        # if a slot may be several tokens of a target, targets are read with slots instead
        self.are_long = isinstance(self.table, PieceTable) or bool(self.table.rules.asked)

    def with_unknown_words(self, pairs: FairseqDataset) -> FairseqDataset:
        """Return a training set with some source words read as unknown, and with invented words in some pairs."""
        if self.cfg.evidence_dropout > 0:
            pairs = UnknownAliases(pairs, self.table, self.cfg.evidence_dropout, self.cfg.seed)
        if self.cfg.invented_evidence > 0 and self.prior.translations is not None:
            pairs = InventedEvidence(pairs, self.prior, self.cfg.invented_evidence, self.cfg.seed)
        return pairs

    def with_slots(self, pairs: FairseqDataset) -> FairseqDataset:
        """Return pairs with their slots, which are single tokens of the targets."""
        return (MergedTargets if self.are_long else WithSlots)(pairs, self.table)

    def with_text(self, pairs: FairseqDataset, text: FairseqDataset) -> FairseqDataset:
        """Add the targets of the text to changed pairs, if the background was estimated from sentences."""
        leaves_out = self.prior.translations is not None or is_cross_fitted(self.prior)
        return WithTextTargets(pairs, text, self.dictionary) if leaves_out else pairs

    def retokenize(self, source: Tensor, target: Tensor) -> Tensor:
        """Return a target (T,) as a search would write it for its source (L,), with slots as single tokens."""
        return merged_target(self.table, source, target) if self.are_long else target

    def warn(self, name: str, sources: Any) -> None:
        """Warn about strings that do not fit into the slots. name: of the data."""
        warn_of_lost_evidence(self.table, name, sources, self.unk, binary=self.cfg.dataset_impl != "raw")
