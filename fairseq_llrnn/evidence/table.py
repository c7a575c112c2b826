"""What every source token offers as evidence, for vocabularies that are open on both sides.

Sizes: U source words, V target words, F features. Ids below U (V) are those of the dictionaries. A string outside gets
the next free id when it is first met, the same in the whole process; what stands at it is one of three things:

    source id ≥ U   an unknown word that is evidence (any other unknown word is <unk>), or the *unknown alias* of a
                    known one: the same string, read as <unk> (plugin/data/evidence_data.py trains with aliases)
    target id ≥ V   a string that some slot offers, or a word of a reference text that the dictionary lacks
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.defaults import MAX_SLOTS as MAX_SLOTS
from fairseq_llrnn.evidence.features import unknown_word_features
from fairseq_llrnn.evidence.groups import GroupTable
from fairseq_llrnn.evidence.overflow import LeftOut
from fairseq_llrnn.evidence.rules import FEATURES, KINDS, NEXT, UNKNOWN, Evidence, EvidenceRules
from fairseq_llrnn.evidence.word_spans import WordSpans
from fairseq_llrnn.features.dictionary import OpenWords
from fairseq_llrnn.features.feature_table import Signatures


@dataclass(frozen=True)
class Offer:
    """One slot that one source token offers."""

    rank: int  # of its kind among all: the lower, the rather it is kept
    word: int  # target id
    row: int  # of EvidenceTable.rows
    unknown: bool  # the model reads its source word as <unk>, and after it has written the slot, the slot too


class EvidenceTable:
    """Offers by source id. It grows as unknown strings are met: one table serves a prior's dictionaries and models."""

    def __init__(
        self,
        rules: EvidenceRules,
        source: OpenWords,
        target: OpenWords,
        output: Signatures,
        shapes: bool,
        max_slots: int = MAX_SLOTS,
        once: bool = False,
    ) -> None:
        """
        Args:
            output: φ of the target's dictionary. shapes: whether φ has surface shapes.
            max_slots: of a sentence. once: whether each is said as often as its source has it (counted_slots.py).
        """
        self.rules, self.source, self.target, self.max_slots, self.once = rules, source, target, max_slots, once
        self.source_words, self.target_words = WordSpans(source, None), WordSpans(target, None)
        self.rows: list[tuple[tuple[int, ...], tuple[float, ...]]] = []  # features and their values
        self.output, self._shapes = output, shapes
        self._feature = {name: i for i, name in enumerate(output.features.names)}
        self._row_index: dict[tuple[tuple[int, ...], tuple[float, ...]], int] = {}
        self._offers: dict[int, tuple[Offer, ...]] = {}
        self._seen = np.zeros(0, dtype=np.uint8)  # by source id; 0: not asked yet, 1: offers nothing, 2: something
        self.left_out = LeftOut()
        self.groups = GroupTable()  # of strings that systems require of sentences

    def __deepcopy__(self, memo: object) -> EvidenceTable:
        return self  # a copy of a model belongs to the same dictionaries

    def source_index(self, word: str) -> int | None:
        """The id of a source word; None for an unknown word that is no evidence, even if another part has opened it."""
        index = self.source.word_index.get(word)
        if index is None and self.rules.find(word, self.source.word_index) is not None:
            index = self.source.open(word)
        return index

    def alias_of(self, index: int) -> int | None:
        """The id of the unknown alias of a known source word, if it would be evidence for a known target word."""
        word = self.source.symbols[index]
        evidence = self.rules.find(word, _Without(self.source.word_index, word))
        if evidence is None or evidence.words[0] not in self.target.word_index:
            return None
        if evidence.kind == "copies" and len(word) == 1:  # the article `a` and the French verb: alike by accident
            return None
        return self.source.open(word)

    def offers(self, index: int) -> tuple[Offer, ...]:
        """What a source id offers; () for most."""
        offers = self._offers.get(index)
        if offers is None:
            offers = self._offers[index] = self._find(index)
        return offers

    def some(self, source: np.ndarray) -> np.ndarray:
        """Which of the source ids (any shape) offer something: bool, the same shape."""
        if len(self._seen) < len(self.source.symbols):
            grown = np.zeros(len(self.source.symbols), dtype=np.uint8)
            grown[: len(self._seen)] = self._seen
            self._seen = grown
        for index in np.unique(source[self._seen[source] == 0]).tolist():
            self._seen[index] = 2 if self.offers(index) else 1
        return self._seen[source] == 2

    def offered(self, sources: np.ndarray) -> Iterator[tuple[int, list[int], tuple[Offer, ...]]]:
        """What the sentences (B, L) offer: the number of the sentence, the places of a word in it, its offers."""
        for sentence, place in zip(*self.some(sources).nonzero(), strict=True):
            yield int(sentence), [int(place)], self.offers(int(sources[sentence, place]))

    def strings(self, source: np.ndarray) -> int:
        """How many different strings the source ids of a sentence (L,) offer, whether or not they find room."""
        return len({offer.word for _, _, offers in self.offered(source[None]) for offer in offers})

    def _find(self, index: int) -> tuple[Offer, ...]:
        word, unknown = self.source.symbols[index], index >= self.source.num_words
        vocabulary: Container[str] = _Without(self.source.word_index, word) if unknown else self.source.word_index
        evidence = self.rules.find(word, vocabulary)
        if evidence is None:
            return ()
        rank = KINDS.index(evidence.kind)
        return tuple(
            Offer(rank, self.target.index(string), self._row(string, evidence, unknown, first=i == 0), unknown)
            for i, string in enumerate(evidence.words)
        )

    def _row(self, string: str, evidence: Evidence, unknown: bool, first: bool) -> int:
        """The number of the slot's feature row, a new one if no slot had it before."""
        target = self.target.word_index.get(self.written(string))
        features = self.unknown_features(string) if target is None or unknown else self.output.features_of(target)
        features[FEATURES[evidence.kind]] = 1.0
        if unknown:
            features[UNKNOWN] = 1.0
        if not first:
            features[NEXT] = 1.0
        return self.row_with(features)

    def row_with(self, features: Mapping[str, float]) -> int:
        """The number of the row with these features, those of them that the prior has."""
        entries = sorted((self._feature[name], value) for name, value in features.items() if name in self._feature)
        row = (tuple(i for i, _ in entries), tuple(value for _, value in entries))
        if row not in self._row_index:
            self._row_index[row] = len(self.rows)
            self.rows.append(row)
        return self._row_index[row]

    def written(self, string: str) -> str:
        """How a target word, or a phrase, is written as one token."""
        return string

    def unknown_features(self, string: str) -> dict[str, float]:
        """What is known of a target word that has no token of its own, or whose source word is unknown."""
        return unknown_word_features(string, self._feature, self._shapes, self.rules.user_patterns)


class _Without:
    """A container, but for one of its elements."""

    def __init__(self, container: Container[str], left_out: str) -> None:
        self.container, self.left_out = container, left_out

    def __contains__(self, element: object) -> bool:
        return element != self.left_out and element in self.container
