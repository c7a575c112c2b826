"""What every source token offers as evidence, for vocabularies that are open on both sides.

Sizes: U source words, V target words, F features. Ids below U (V) are those of the dictionaries. A string outside gets
the next free id when it is first met, the same in the whole process; what stands at it is one of three things:

    source id ≥ U   an unknown word that is evidence (any other unknown word is <unk>), or the *unknown alias* of a
                    known one: the same string, read as <unk> (plugin/data/evidence_data.py trains with aliases)
    target id ≥ V   a string that some slot offers, or a word of a reference text that the dictionary lacks
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.defaults import MAX_SLOTS as MAX_SLOTS
from fairseq_llrnn.evidence.features import unknown_word_features
from fairseq_llrnn.evidence.groups import TermTable
from fairseq_llrnn.evidence.overflow import LeftOut
from fairseq_llrnn.evidence.rules import FEATURES, KINDS, NEXT, UNKNOWN, Evidence, EvidenceRules
from fairseq_llrnn.evidence.word_spans import WordSpans
from fairseq_llrnn.features.dictionary import UNK, OpenWords
from fairseq_llrnn.features.feature_table import Signatures
from fairseq_llrnn.systems.terms.phrases import has_case_or_gender, head_of

NOUNS = frozenset(("POS:NOUN", "POS:PROPN"))
MODIFIERS = frozenset(("POS:ADJ", "POS:DET", "POS:NUM"))
ADPOSITIONS = frozenset(("POS:ADP",))
LEAST_GUESS = 0.5  # value of a part of speech that is guessed
# words that a sentence needs beside a phrase that has them, too
FUNCTION_WORDS = frozenset(f"POS:{tag}" for tag in ("ADP", "AUX", "CCONJ", "DET", "PART", "PRON", "SCONJ"))


@dataclass(frozen=True)
class Offer:
    """One slot that one source token offers."""

    rank: int  # of its kind in KINDS: the lower, the rather it is kept
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
            max_slots: of a sentence. once: whether each is said as often as its source has it (quotas.py).
        """
        self.rules, self.source, self.target, self.max_slots, self.once = rules, source, target, max_slots, once
        self.source_words, self.target_words = WordSpans(source, None), WordSpans(target, None)
        self.rows: list[tuple[tuple[int, ...], tuple[float, ...]]] = []  # features and their values
        self._output, self._shapes = output, shapes
        self._feature = {name: i for i, name in enumerate(output.features.names)}
        self._row_index: dict[tuple[tuple[int, ...], tuple[float, ...]], int] = {}
        self._offers: dict[int, tuple[Offer, ...]] = {}
        self._seen = np.zeros(0, dtype=np.uint8)  # by source id; 0: not asked yet, 1: offers nothing, 2: something
        self.left_out = LeftOut()
        self.terms = TermTable(self._token, self._term_row, self._read_as, self._beside)

    def __deepcopy__(self, memo: object) -> EvidenceTable:
        return self  # a copy of a model belongs to the same dictionaries

    def source_index(self, word: str) -> int | None:
        """The id of a source word; None for an unknown word that is no evidence."""
        index = self.source.known_index.get(word, self.source.open_index.get(word))
        if index is None and self.rules.find(word, self.source.known_index) is not None:
            index = self.source.open(word)
        return index

    def alias_of(self, index: int) -> int | None:
        """The id of the unknown alias of a known source word, if it would be evidence for a known target word."""
        word = self.source.symbols[index]
        evidence = self.rules.find(word, _Without(self.source.known_index, word))
        if evidence is None or evidence.words[0] not in self.target.known_index:
            return None
        if evidence.kind == "copies" and len(word) == 1:  # the article `a` and the French verb: alike by accident
            return None
        return self.source.open(word)

    def offers(self, index: int) -> tuple[Offer, ...]:
        """What a source id offers; () for most."""
        found = self._offers.get(index)
        if found is None:
            found = self._offers[index] = self._find(index)
        return found

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
        word, unknown = self.source.symbols[index], index >= self.source.known
        known: Container[str] = _Without(self.source.known_index, word) if unknown else self.source.known_index
        evidence = self.rules.find(word, known)
        if evidence is None:
            return ()
        rank = KINDS.index(evidence.kind)
        return tuple(
            Offer(rank, self.target.index(string), self._row(string, evidence, unknown, first=i == 0), unknown)
            for i, string in enumerate(evidence.words)
        )

    def _row(self, string: str, evidence: Evidence, unknown: bool, first: bool) -> int:
        """The number of the slot's feature row, a new one if no slot had it before."""
        target = self.target.known_index.get(self.written(string))
        if target is None or unknown:
            features = dict(self._unknown_features(string))
        else:
            features = self._output.features_of(target)
        features[FEATURES[evidence.kind]] = 1.0
        if unknown:
            features[UNKNOWN] = 1.0
        if not first:
            features[NEXT] = 1.0
        return self._row_with(features)

    def _term_row(self, string: str, more: Mapping[str, float]) -> int:
        """That of a form of a term: its word's, or what its spelling shows and `more`; of several words, the union."""
        features: dict[str, float] = {FEATURES["terms"]: 1.0}
        for word in string.split():
            target = self.target.known_index.get(self.written(word))
            if target is None:
                features |= self._unknown_features(word)
            else:
                features |= self._output.features_of(target)
        return self._row_with({**more, **features})

    def _row_with(self, features: Mapping[str, float]) -> int:
        entries = sorted((self._feature[name], value) for name, value in features.items() if name in self._feature)
        row = (tuple(i for i, _ in entries), tuple(value for _, value in entries))
        if row not in self._row_index:
            self._row_index[row] = len(self.rows)
            self.rows.append(row)
        return self._row_index[row]

    def _token(self, string: str) -> int:
        """The id of a form of a term as one token."""
        return self.target.index(self.written(string))

    def _read_as(self, string: str) -> int:
        """What a network reads in the place of a form: its word; of a phrase the head, or else the last known word."""
        every = [self.target.known_index.get(word) for word in string.split()]
        known = {place: index for place, index in enumerate(every) if index is not None}
        if len(known) < 2:
            return next(iter(known.values()), self.target.known_index[UNK])
        end = next((place for place, index in known.items() if self._is_any(ADPOSITIONS, index)), len(every))
        nouns = [place for place, index in known.items() if self._is_any(NOUNS, index)]
        nouns = [place for place in nouns if place < end] or nouns
        modifiers = [place for place in nouns if self._is_any(MODIFIERS, known[place])]
        head = head_of(nouns, modifiers, lambda place: has_case_or_gender(self._output.features_of(known[place])))
        return known[max(known) if head is None else head]

    def _beside(self, forms: Sequence[str], must: bool) -> list[tuple[int, int]]:
        """The tokens that would spell forms beside their own, with their rows: the words that differ among phrases.

        None where a phrase need not be said; and no articles or the like, which the rest of the sentence needs.
        """
        if not must:
            return []
        phrases = [form.split() for form in forms if len(form.split()) > 1]
        places = [{*words} for words in zip(*phrases, strict=True)] if len({len(one) for one in phrases}) == 1 else []
        inflected = sorted(word for words in places if len(words) > 1 for word in words)
        known = [index for word in inflected if (index := self.target.known_index.get(word)) is not None]
        content = [index for index in dict.fromkeys(known) if not self._is_any(FUNCTION_WORDS, index)]
        return [(index, self._row_of(index)) for index in content]

    def _is_any(self, parts_of_speech: frozenset[str], index: int) -> bool:
        features = self._output.features_of(index).items()
        return any(name in parts_of_speech and value >= LEAST_GUESS for name, value in features)

    def _row_of(self, index: int) -> int:
        return self._row_with(self._output.features_of(index))

    def written(self, string: str) -> str:
        """How a target word, or a phrase, is written as one token."""
        return string

    def _unknown_features(self, string: str) -> dict[str, float]:
        """What is known of a target word that has no token of its own, or whose source word is unknown."""
        return unknown_word_features(string, self._feature, self._shapes, self.rules.user_patterns)


class _Without:
    """A container, but for one of its elements."""

    def __init__(self, container: Container[str], left_out: str) -> None:
        self.container, self.left_out = container, left_out

    def __contains__(self, element: object) -> bool:
        return element != self.left_out and element in self.container
