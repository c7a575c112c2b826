"""What every source token offers as evidence, for vocabularies that are open on both sides.

Sizes: U source words, V target words, L tokens of a sentence.

`WordSpans` say where words stand in sentences of numbers: a token each, or several pieces each. Special symbols stand
alone and spell no word. Which piece a `<unk>` was, and where its word began and ended, nobody knows: all that may
belong to its word spells none.

A *group* is one of strings of which a translation has to have one. A system that requires strings of a translation
(systems/terms) adds its groups to the one `GroupTable` of a session, and marks source tokens. A sentence's marks travel
inside its source ids, so that whatever sorts, splits or repeats sentences cannot part them:

    id  =  (mark + 1) · 2³²  +  the token's own id

A mark is a number of the table, and says which groups are asked for at the token. Evidence reads them, and who hands a
source to it; everyone else is given the tokens' own ids (`plain` of features/dictionary.py). Groups and marks have
numbers that live as long as the session's evidence table, whose part this is.

A string that no dictionary has gets features by what it looks like (`unknown_word_features`). Evidence that finds no
room in the slots of its sentence gets one warning, with the count of all sentences (`OmissionCount`). Where a data set
is loaded, they are counted beforehand (plugin/data/evidence_data.py). Where sentences come one after the other
(fairseq-interactive, `llrnn explain`, `llrnn rescore`), only the end of the process knows their number.

In an `EvidenceTable`, ids below U (V) are those of the dictionaries. A string outside gets the next free id when it
is first met, the same in the whole process; what stands at it is one of three things:

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
from fairseq_llrnn.features.dictionary import PAD, SHIFT, SPECIALS, UNK, Ids, OpenWords, plain
from fairseq_llrnn.features.feature_table import NOT_TOP, Signatures
from fairseq_llrnn.features.spelling import UserPatterns, shape_features, suffixes
from fairseq_llrnn.features.subwords import Convention

_SPECIALS = frozenset(SPECIALS)


class WordSpans:
    """Words in the sentences of one language."""

    def __init__(self, tokens: OpenWords, convention: Convention | None) -> None:
        """convention: of pieces; None: every token is a word."""
        self.tokens, self.convention = tokens, convention
        self._before = np.zeros(0, dtype=bool)  # by id: whether a word begins with it
        self._after = np.zeros(0, dtype=bool)  # … and whether one ends with it

    def spans(self, sentence: np.ndarray) -> list[tuple[int, int]]:
        """Where each word begins, and where the next one does, in the sentence (L,)."""
        self._grow()
        starts = self._before[sentence]
        starts[1:] |= self._after[sentence[:-1]]
        starts[:1] = True
        return list(pairwise([*np.flatnonzero(starts).tolist(), len(sentence)])) if len(sentence) else []

    def word(self, tokens: np.ndarray) -> str | None:
        """The word that the tokens between two of its bounds spell; None: a special symbol, or one with `<unk>`."""
        symbols = [self.tokens.symbols[token] for token in tokens.tolist()]
        if not _SPECIALS.isdisjoint(symbols):
            return None
        return symbols[0] if self.convention is None else self.convention.join(symbols)

    def words_of(self, token: int) -> tuple[str, ...]:
        """The words that a token spells which is no piece, but stands for one word or several."""
        symbol = self.tokens.symbols[token]
        return tuple(symbol.split()) if self.convention is None else self.convention.words_of(symbol)

    def _grow(self) -> None:
        """Look at the strings that got a number since."""
        new = self.tokens.symbols[len(self._before) :]
        if new:
            self._before = np.concatenate([self._before, [self._is_bound(symbol, True) for symbol in new]])
            self._after = np.concatenate([self._after, [self._is_bound(symbol, False) for symbol in new]])

    def _is_bound(self, symbol: str, before: bool) -> bool:
        """Whether a word begins (or ends, where `before` is False) with this token, whatever its neighbours are."""
        if self.convention is None or (symbol in SPECIALS and symbol != UNK):
            return True
        if symbol == UNK or before != self.convention.mark_begins:
            return False
        return self.convention.is_marked(symbol) == before


def marks_of(ids: Ids) -> Ids:
    """Their marks, −1 for tokens that carry none."""
    return (ids >> SHIFT) - 1


def marked(token: int, mark: int) -> int:
    """A token that carries a mark."""
    return ((mark + 1) << SHIFT) | token


@dataclass(frozen=True)
class Group:
    """Strings: exactly one of them, as often as it is asked for; or, if it need not be, made likely."""

    name: str
    words: tuple[int, ...]  # target ids, different ones
    rows: tuple[int, ...]  # of EvidenceTable.rows
    input_ids: tuple[int, ...]  # target ids: what a network reads in their place
    must: bool
    beside: tuple[tuple[int, int], ...] = ()  # other tokens that spell some of the strings, with their rows


@dataclass(frozen=True)
class Use:
    """A group at a source token."""

    group: int
    counts: bool  # whether it is asked for once more here; only one token of a phrase does
    is_place: bool  # whether its translation is to be looked for here


class GroupTable:
    """Groups and marks by number."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.required = False  # whether there is a group that must be said
        self._number_of: dict[Group, int] = {}
        self._marks: list[tuple[Use, ...]] = []
        self._mark_of: dict[tuple[Use, ...], int] = {}

    def add(self, group: Group) -> int:
        """The number of a group."""
        number = self._number_of.setdefault(group, len(self.groups))
        if number == len(self.groups):
            self.groups.append(group)
            self.required |= group.must
        return number

    def mark(self, uses: Sequence[Use]) -> int:
        """The number of a mark that says these uses."""
        mark = self._mark_of.setdefault(tuple(uses), len(self._marks))
        if mark == len(self._marks):
            self._marks.append(tuple(uses))
        return mark

    def marked(self, token: int, uses: Sequence[Use]) -> int:
        """A source token with these uses beside those that it has."""
        return marked(plain(token), self.mark((*self.uses(token), *uses)))

    def uses(self, token: int) -> tuple[Use, ...]:
        """What a source token carries; () for most."""
        mark = marks_of(token)
        return self._marks[mark] if mark >= 0 else ()


logger = logging.getLogger(__name__)


class OmissionCount:
    """Counts what the sentences leave out. Each counts once, in however many models, batches and epochs it is read."""

    def __init__(self) -> None:
        self._is_covered = False  # whether a data set's own warning said it all
        self._of_sentence: dict[bytes, int] = {}  # by source ids

    def mark_covered(self) -> None:
        """No sentence needs to be counted: the data set's own warning says how many there are."""
        self._is_covered = True

    def note(self, source: np.ndarray, strings: int, max_slots: int) -> None:
        """A sentence (L,), padded on any side, left out so many strings."""
        if self._is_covered:
            return
        if not self._of_sentence:
            atexit.register(self._warn, max_slots)
        self._of_sentence[source[source != SPECIALS.index(PAD)].tobytes()] = strings

    def _warn(self, max_slots: int) -> None:
        sentences = self._of_sentence
        logger.warning(no_room(sum(sentences.values()), f"{len(sentences):,} different sentences", max_slots))


def no_room(strings: int, sentences: str, max_slots: int) -> str:
    """The warning. `sentences` says how many and which."""
    return (
        f"evidence: {strings:,} strings of {sentences} find no room: a sentence keeps at most {max_slots}, by kind, "
        "then by place; more with --max-slots"
    )


def unknown_word_features(
    word: str, names: Container[str], shapes: bool = False, patterns: UserPatterns | None = None
) -> dict[str, float]:
    """Features of a string outside a dictionary: `NOTTOP`, and those of its spelling.

    Args:
        names: of the features of φ; a suffix that too few words of the dictionary share is none of them.
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
    """The features that slots may have and no word of a dictionary needs to."""
    patterns = rules.patterns if "patterns" in rules.kinds else {}
    return (NOT_TOP, *(f"Pattern:{name}" for name in patterns), *rules.feature_names)


@dataclass(frozen=True)
class Offer:
    """One slot that one source token offers."""

    rank: int  # of its kind among all: the lower, the rather it is kept
    word: int  # target id
    row: int  # of EvidenceTable.rows
    unknown: bool  # the model reads its source word as <unk>, and after it has written the slot, the slot too
    names_unknown: bool  # no dictionary has its string, or training reads its word as if none had


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
        convention: Convention | None = None,
        source_vocabulary: frozenset[str] = frozenset(),
    ) -> None:
        """
        Args:
            output: φ of the target's dictionary. shapes: whether φ has surface shapes.
            max_slots: of a sentence. once: whether each is said as often as its source has it (counted_slots.py).
            convention: of the pieces of both sides, if they have some. source_vocabulary: words of the source then.
        """
        self.rules, self.source, self.target, self.max_slots, self.once = rules, source, target, max_slots, once
        self.convention, self.source_vocabulary = convention, source_vocabulary
        self.source_words, self.target_words = WordSpans(source, convention), WordSpans(target, convention)
        self.rows: list[tuple[tuple[int, ...], tuple[float, ...]]] = []  # features and their values
        self.output, self._shapes = output, shapes
        self._feature = {name: i for i, name in enumerate(output.features.names)}
        self._row_index: dict[tuple[tuple[int, ...], tuple[float, ...]], int] = {}
        self._offers: dict[int | tuple[int, ...], tuple[Offer, ...]] = {}  # by source id; by those of a word's pieces
        self._seen = np.zeros(0, dtype=np.uint8)  # by source id; 0: not asked yet, 1: offers nothing, 2: something
        self.left_out = OmissionCount()
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

    def offers_at(self, source: np.ndarray) -> np.ndarray:
        """Which of the source ids (any shape) offer something: bool, the same shape."""
        if more := len(self.source.symbols) - len(self._seen):
            self._seen = np.pad(self._seen, (0, more))
        for index in np.unique(source[self._seen[source] == 0]).tolist():
            self._seen[index] = 2 if self.offers(index) else 1
        return self._seen[source] == 2

    def offered(self, sources: np.ndarray) -> Iterator[tuple[int, list[int], tuple[Offer, ...]]]:
        """What the sentences (B, L) offer: the number of the sentence, the places of a word in it, its offers."""
        for sentence, place in zip(*self.offers_at(sources).nonzero(), strict=True):
            yield int(sentence), [int(place)], self.offers(int(sources[sentence, place]))

    def strings(self, source: np.ndarray) -> int:
        """How many different strings the source ids of a sentence (L,) offer, whether or not they find room."""
        return len({offer.word for _, _, offers in self.offered(source[None]) for offer in offers})

    def _find(self, index: int) -> tuple[Offer, ...]:
        word, unknown = self.source.symbols[index], index >= self.source.num_words
        vocabulary: Container[str] = _Without(self.source.word_index, word) if unknown else self.source.word_index
        is_alias = unknown and word in self.source.word_index
        return self._offered_by(self.rules.find(word, vocabulary), unknown, is_alias)

    def _offered_by(
        self, evidence: Evidence | None, unknown: bool | None = None, is_alias: bool = False
    ) -> tuple[Offer, ...]:
        """Slots for evidence.

        Args:
            unknown: whether its word is; None: those are which no token of the dictionary spells. is_alias: whether
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
        """The number of the slot's feature row, a new one if no slot had it before."""
        target = self.target.word_index.get(self.token_string(string))
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
        number = self._row_index.setdefault(row, len(self.rows))
        if number == len(self.rows):
            self.rows.append(row)
        return number

    def token_string(self, string: str) -> str:
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
