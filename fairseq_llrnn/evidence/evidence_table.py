"""The evidence of every source token, for vocabularies that are open on both sides.

Sizes: U source words, V target words, L tokens of a sentence.

`WordSpans` finds words in sentences of ids: one token each, or several pieces each. Special symbols stand alone and
spell no word. A word with `<unk>` among its pieces is unknown: it spells no word either.

A *group* is a set of strings of which a translation must have one. A system that requires strings (systems/terms) adds
its groups to the `GroupTable` of a session, and marks source tokens. A sentence's marks are stored in its source ids,
so that sorting, splitting or repeating sentences cannot separate them:

    id  =  (mark + 1) · 2³²  +  the token's own id

A mark is an index of the table: the groups that the token requires. Only evidence, and code that passes sources to it,
reads marks. All other code gets the tokens' own ids (`plain` of features/dictionary.py). Groups and marks have
indices that live as long as the session's evidence table.

A string outside the dictionaries gets features of its form (`unknown_word_features`). If a sentence has more evidence
than slots, one warning has the count of all sentences (`OmissionCount`). Loading a data set counts them in advance
(plugin/data/evidence_data.py). If sentences arrive one by one (fairseq-interactive, `llrnn explain`, `llrnn rescore`),
the warning follows at the end of the process.

In an `EvidenceTable`, ids below U (V) are those of the dictionaries. A string outside them gets the next free id at
its first occurrence, the same in the whole process. It is one of three things:

    source id ≥ U   an unknown word that is evidence (any other unknown word is <unk>), or the *unknown alias* of a
                    known one: the same string, read as <unk> (plugin/data/evidence_data.py trains with aliases)
    target id ≥ V   a string that some slot offers, or a word of a reference text that the dictionary lacks
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fairseq_llrnn.defaults import MAX_SLOTS as MAX_SLOTS
from fairseq_llrnn.evidence.rules import FEATURES, KINDS, NEXT, UNKNOWN, Evidence, EvidenceRules
from fairseq_llrnn.features.dictionary import PAD, SHIFT, SPECIALS, UNK, OpenWords, plain
from fairseq_llrnn.features.feature_table import NOT_TOP, Signatures
from fairseq_llrnn.features.spelling_features import UserPatterns, shape_features, suffixes
from fairseq_llrnn.features.subwords import Convention

_SPECIALS = frozenset(SPECIALS)


class WordSpans:
    """Words in the sentences of one language."""

    def __init__(self, tokens: OpenWords, convention: Convention | None) -> None:
        """convention: of pieces. None: every token is a word."""
        self.tokens, self.convention = tokens, convention
        self._before = np.zeros(0, dtype=bool)  # by id: whether a word begins with it
        self._after = np.zeros(0, dtype=bool)  # by id: whether a word ends with it

    def spans(self, sentence: np.ndarray) -> list[tuple[int, int]]:
        """Return the start and end of each word in the sentence (L,)."""
        self._grow()
        starts = self._before[sentence]
        starts[1:] |= self._after[sentence[:-1]]
        starts[:1] = True
        return list(pairwise([*np.flatnonzero(starts).tolist(), len(sentence)])) if len(sentence) else []

    def word(self, tokens: np.ndarray) -> str | None:
        """Return the word that the tokens of a span spell, or None for a special symbol or with `<unk>`."""
        symbols = [self.tokens.symbols[token] for token in tokens.tolist()]
        if not _SPECIALS.isdisjoint(symbols):
            return None
        return symbols[0] if self.convention is None else self.convention.join(symbols)

    def words_of(self, token: int) -> tuple[str, ...]:
        """Return the words of a token that is no piece, but one or several words."""
        symbol = self.tokens.symbols[token]
        return tuple(symbol.split()) if self.convention is None else self.convention.words_of(symbol)

    def _grow(self) -> None:
        """Extend the tables for strings that were added since the last call."""
        new = self.tokens.symbols[len(self._before) :]
        if new:
            self._before = np.concatenate([self._before, [self._is_bound(symbol, True) for symbol in new]])
            self._after = np.concatenate([self._after, [self._is_bound(symbol, False) for symbol in new]])

    def _is_bound(self, symbol: str, before: bool) -> bool:
        """Return whether a word begins (or, if not `before`, ends) at this token, for any neighbours."""
        if self.convention is None or (symbol in SPECIALS and symbol != UNK):
            return True
        if symbol == UNK or before != self.convention.mark_begins:
            return False
        return self.convention.is_marked(symbol) == before


def marked(token: int, mark: int) -> int:
    """Return a token with a mark."""
    return ((mark + 1) << SHIFT) | token


@dataclass(frozen=True)
class Group:
    """Strings of which exactly one is required, as often as the quota. Or, if not `must`, one is made likely."""

    name: str
    words: tuple[int, ...]  # target ids, different ones
    rows: tuple[int, ...]  # of EvidenceTable.rows
    input_ids: tuple[int, ...]  # target ids that a network reads instead
    must: bool
    spellings: tuple[tuple[int, int], ...] = ()  # other tokens that spell some of the strings, with their rows


@dataclass(frozen=True)
class Use:
    """A group at a source token."""

    group: int
    counts: bool  # whether it raises the quota by one; only one token of a phrase does
    is_place: bool  # whether the translation of the group is at this position


class GroupTable:
    """Groups and marks by index."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.required = False  # whether there is a group with `must`
        self._number_of: dict[Group, int] = {}
        self._marks: list[tuple[Use, ...]] = []
        self._mark_of: dict[tuple[Use, ...], int] = {}

    def add(self, group: Group) -> int:
        """Add a group and return its index."""
        number = self._number_of.setdefault(group, len(self.groups))
        if number == len(self.groups):
            self.groups.append(group)
            self.required |= group.must
        return number

    def mark(self, uses: Sequence[Use]) -> int:
        """Return the index of the mark with these uses."""
        mark = self._mark_of.setdefault(tuple(uses), len(self._marks))
        if mark == len(self._marks):
            self._marks.append(tuple(uses))
        return mark

    def marked(self, token: int, uses: Sequence[Use]) -> int:
        """Return a source token with these uses in addition to its own."""
        return marked(plain(token), self.mark((*self.uses(token), *uses)))

    def uses(self, token: int) -> tuple[Use, ...]:
        """Return the uses of a source token, or () for most."""
        mark = (token >> SHIFT) - 1  # −1 without a mark
        return self._marks[mark] if mark >= 0 else ()


logger = logging.getLogger(__name__)


class OmissionCount:
    """Count the strings that sentences leave out. Each sentence counts once, in any number of models, batches
    and epochs.
    """

    def __init__(self) -> None:
        self._is_covered = False  # whether a data set has its own warning
        self._of_sentence: dict[bytes, int] = {}  # by source ids

    def mark_covered(self) -> None:
        """Stop counting, because the data set's own warning has the numbers."""
        self._is_covered = True

    def note(self, source: np.ndarray, strings: int, max_slots: int) -> None:
        """Record the number of strings that a sentence (L,), padded on any side, leaves out."""
        if self._is_covered:
            return
        if not self._of_sentence:
            atexit.register(self._warn, max_slots)
        self._of_sentence[source[source != SPECIALS.index(PAD)].tobytes()] = strings

    def _warn(self, max_slots: int) -> None:
        sentences = self._of_sentence
        logger.warning(no_room(sum(sentences.values()), f"{len(sentences):,} different sentences", max_slots))


def no_room(strings: int, sentences: str, max_slots: int) -> str:
    """Return the warning. `sentences` has their number and description."""
    return (
        f"evidence: {strings:,} strings of {sentences} are left out: a sentence keeps at most {max_slots}, by kind, "
        "then by place; raise --max-slots to keep more"
    )


def unknown_word_features(
    word: str, names: Container[str], shapes: bool = False, patterns: UserPatterns | None = None
) -> dict[str, float]:
    """Return the features of a string outside a dictionary: `NOTTOP`, and features of its spelling.

    Args:
        names: of the features of φ; rare suffixes are not among them.
        shapes: whether φ has surface shapes.
        patterns: the user's expressions.

    Raises:
        OptionError: one of the user's patterns takes far too long.
    """
    features = {NOT_TOP: 1.0, **{f"Suffix:{suffix}": 1.0 for suffix in suffixes(word)}}
    if shapes:
        features |= shape_features(word)
    if patterns is not None:
        features |= patterns.features(word)
    return {name: value for name, value in features.items() if name in names and value != 0.0}


def slot_features(rules: EvidenceRules) -> tuple[str, ...]:
    """Return the features that slots may have, even if no word of a dictionary has them."""
    patterns = rules.patterns if "patterns" in rules.kinds else {}
    return (NOT_TOP, *(f"Pattern:{name}" for name in patterns), *rules.feature_names)


@dataclass(frozen=True)
class Offer:
    """A slot that a source token offers."""

    rank: int  # of its kind; low ranks are kept first
    word: int  # target id
    row: int  # of EvidenceTable.rows
    unknown: bool  # the model reads its source word, and the generated slot, as <unk>
    names_unknown: bool  # no dictionary has its string, or training treats its word so


class EvidenceTable:
    """Offers by source id. The table grows with new strings. All models of a prior share one."""

    def __init__(
        self,
        rules: EvidenceRules,
        source: OpenWords,
        target: OpenWords,
        output: Signatures,
        shapes: bool,
        max_slots: int = MAX_SLOTS,
        convention: Convention | None = None,
        source_vocabulary: frozenset[str] = frozenset(),
    ) -> None:
        """Build an empty table.

        Args:
            output: φ of the target's dictionary. shapes: whether φ has surface shapes.
            max_slots: of a sentence.
            convention: of the pieces of both sides, or None. source_vocabulary: words of the source, if in pieces.
        """
        self.rules, self.source, self.target, self.max_slots = rules, source, target, max_slots
        self.once = False  # searches set it: a string is generated as often as the source has it (counted_slots.py)
        self.convention, self.source_vocabulary = convention, source_vocabulary
        self.source_words, self.target_words = WordSpans(source, convention), WordSpans(target, convention)
        self.rows: list[tuple[tuple[int, ...], tuple[float, ...]]] = []  # features and their values
        self.output, self._shapes = output, shapes
        self._feature = {name: i for i, name in enumerate(output.features.names)}
        self._row_index: dict[tuple[tuple[int, ...], tuple[float, ...]], int] = {}
        self._offers: dict[int | tuple[int, ...], tuple[Offer, ...]] = {}  # by source id; by those of a word's pieces
        self._seen = np.zeros(0, dtype=np.uint8)  # by source id; 0: not looked up yet, 1: no offers, 2: offers
        self.left_out = OmissionCount()
        self.groups = GroupTable()  # of strings that systems require of sentences

    def __deepcopy__(self, memo: object) -> EvidenceTable:
        return self  # a copy of a model belongs to the same dictionaries

    def source_index(self, word: str) -> int | None:
        """Return the id of a source word, or None for an unknown word that is no evidence, even if another part
        has opened it.
        """
        index = self.source.word_index.get(word)
        if index is None and self.rules.find(word, self.source.word_index) is not None:
            index = self.source.open(word)
        return index

    def alias_of(self, index: int) -> int | None:
        """Return the id of the unknown alias of a known source word, if it would be evidence for a known target
        word.
        """
        word = self.source.symbols[index]
        evidence = self.rules.find(word, _Without(self.source.word_index, word))
        if evidence is None or evidence.words[0] not in self.target.word_index:
            return None
        if evidence.kind == "copies" and len(word) == 1:  # the article `a` and the French verb: alike by accident
            return None
        return self.source.open(word)

    def offers(self, index: int) -> tuple[Offer, ...]:
        """Return the offers of a source id, or () for most."""
        offers = self._offers.get(index)
        if offers is None:
            offers = self._offers[index] = self._find(index)
        return offers

    def offers_at(self, source: np.ndarray) -> np.ndarray:
        """Return whether each source id (any shape) has offers: bool, the same shape."""
        if more := len(self.source.symbols) - len(self._seen):
            self._seen = np.pad(self._seen, (0, more))
        for index in np.unique(source[self._seen[source] == 0]).tolist():
            self._seen[index] = 2 if self.offers(index) else 1
        return self._seen[source] == 2

    def offered(self, sources: np.ndarray) -> Iterator[tuple[int, list[int], tuple[Offer, ...]]]:
        """Yield the offers of sentences (B, L): index of the sentence, positions of a word, its offers."""
        for sentence, place in zip(*self.offers_at(sources).nonzero(), strict=True):
            yield int(sentence), [int(place)], self.offers(int(sources[sentence, place]))

    def strings(self, source: np.ndarray) -> int:
        """Return the number of different strings that a sentence of source ids (L,) offers, before the limit."""
        return len({offer.word for _, _, offers in self.offered(source[None]) for offer in offers})

    def _find(self, index: int) -> tuple[Offer, ...]:
        word, unknown = self.source.symbols[index], index >= self.source.num_words
        vocabulary: Container[str] = _Without(self.source.word_index, word) if unknown else self.source.word_index
        is_alias = unknown and word in self.source.word_index
        return self._offered_by(self.rules.find(word, vocabulary), unknown, is_alias)

    def _offered_by(
        self, evidence: Evidence | None, unknown: bool | None = None, is_alias: bool = False
    ) -> tuple[Offer, ...]:
        """Return slots for evidence.

        Args:
            unknown: whether its word is unknown. None: if no token of the dictionary spells it. is_alias: whether
                training reads a known word as unknown.
        """
        offers = []
        for i, string in enumerate(() if evidence is None else evidence.words):
            assert evidence is not None
            target = self.target.index(self.token_string(string))
            is_unknown = target >= self.target.num_words if unknown is None else unknown
            row = self._row(string, evidence, is_unknown, first=i == 0)
            names_unknown = is_unknown and (is_alias or target >= self.target.num_words)
            offers.append(Offer(KINDS.index(evidence.kind), target, row, is_unknown, names_unknown))
        return tuple(offers)

    def _row(self, string: str, evidence: Evidence, unknown: bool, first: bool) -> int:
        """Return the index of the slot's feature row, a new one for new features."""
        target = self.target.word_index.get(self.token_string(string))
        features = self.unknown_features(string) if target is None or unknown else self.output.features_of(target)
        features[FEATURES[evidence.kind]] = 1.0
        if unknown:
            features[UNKNOWN] = 1.0
        if not first:
            features[NEXT] = 1.0
        return self.row_with(features)

    def row_with(self, features: Mapping[str, float]) -> int:
        """Return the index of the row with these features. Features outside the prior are dropped."""
        entries = sorted((self._feature[name], value) for name, value in features.items() if name in self._feature)
        row = (tuple(i for i, _ in entries), tuple(value for _, value in entries))
        number = self._row_index.setdefault(row, len(self.rows))
        if number == len(self.rows):
            self.rows.append(row)
        return number

    def token_string(self, string: str) -> str:
        """Return a target word, or a phrase, as one token."""
        return string

    def unknown_features(self, string: str) -> dict[str, float]:
        """Return the features of a target word without its own token, or with an unknown source word."""
        return unknown_word_features(string, self._feature, self._shapes, self.rules.user_patterns)


class _Without:
    """A container without one of its elements."""

    def __init__(self, container: Container[str], left_out: str) -> None:
        self.container, self.left_out = container, left_out

    def __contains__(self, element: object) -> bool:
        return element != self.left_out and element in self.container
