"""Evidence: which strings of a source sentence its translation may write (evidence/rules.py).

Over pieces (the prior's setting `pieces`, of both sides) the part also has the words of the source's training text:
a dictionary of pieces does not say which words are unknown. Where a system asks for strings (`EvidenceRules.asked`), it
has those of the target's, and how often each occurs.

Sizes: D different words of a training text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairseq_llrnn.evidence.piece_table import PieceTable
from fairseq_llrnn.evidence.rules import ASKED, FORMED, Evidence, EvidenceRules, form_of
from fairseq_llrnn.evidence.table import MAX_SLOTS, EvidenceTable, slot_features
from fairseq_llrnn.features.dictionary import PADDING_ENTRY, SPECIALS, UNK
from fairseq_llrnn.features.subwords import CONVENTIONS, Convention
from fairseq_llrnn.prior.expression import atoms
from fairseq_llrnn.prior.part import BuildContext, Facts, Part, SavedPart, register_part

if TYPE_CHECKING:
    from fairseq_llrnn.backgrounds.base import Background
    from fairseq_llrnn.output.class_source import ClassSource, Head
    from fairseq_llrnn.prior.prior import Prior

SOURCE_VOCABULARY, TARGET_WORDS, TARGET_COUNTS = "known_words", "target_words", "target_counts"  # arrays


@register_part("evidence")
@dataclass(frozen=True)
class EvidencePart(Part):
    """The rules; the features of slots are among those of φ."""

    rules: EvidenceRules
    source_vocabulary: frozenset[str] | None = None  # its words, where it is in pieces; else those of its dictionary
    target_words: Mapping[str, int] | None = None  # D and their counts, where strings are asked for over pieces

    knows_source = brings_strings = True
    class_name = "slot_rows"
    called = "evidence was"

    def arrays(self) -> dict[str, np.ndarray]:
        """Words as UTF-8, one a line."""
        arrays = {} if self.source_vocabulary is None else {SOURCE_VOCABULARY: _lines(sorted(self.source_vocabulary))}
        if self.target_words is not None:
            words = dict(sorted(self.target_words.items()))
            arrays |= {TARGET_WORDS: _lines(words), TARGET_COUNTS: np.array(list(words.values()), dtype=np.int64)}
        return arrays

    def description(self) -> dict[str, Any]:
        return self.rules.description()

    @property
    def identity(self) -> str:
        return self.rules.identity

    @classmethod
    def read(cls, saved: SavedPart) -> EvidencePart:
        prior, rules = saved.prior, EvidenceRules.described(saved.description)
        if (prior.output.class_of == prior.output.class_of[prior.index(UNK)]).sum() > 1:
            raise ValueError("the evidence needs <unk> alone in its signature")
        if UNK not in prior.source_symbols:
            raise ValueError(f"the source words of the evidence lack {UNK}")
        check_translations(rules, prior)
        unsupported_of(prior)
        pieces = pieces_of(prior) is not None
        asked = pieces and bool(rules.asked)
        if (SOURCE_VOCABULARY in saved.arrays, TARGET_WORDS in saved.arrays) != (pieces, asked):
            raise ValueError("the evidence and the prior differ in whether their words are in pieces")
        if not pieces:
            return cls(rules)
        vocabulary = frozenset(_read_lines(saved.array(SOURCE_VOCABULARY, np.uint8)))
        if TARGET_WORDS not in saved.arrays:
            return cls(rules, vocabulary)
        words, counts = _read_lines(saved.array(TARGET_WORDS, np.uint8)), saved.array(TARGET_COUNTS, np.int64)
        if len(words) != len(counts) or (counts < 0).any():
            raise ValueError("the words that evidence asks for and their counts do not go together")
        return cls(rules, vocabulary, dict(zip(words, counts.tolist(), strict=True)))

    def find(self, word: str, symbols: Collection[str]) -> Evidence | None:
        """What a source word is evidence of; symbols: the source dictionary.

        Raises:
            OptionError: a pattern takes far too long.
        """
        return self.rules.find(word, symbols if self.source_vocabulary is None else self.source_vocabulary)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return slot_features(self.rules)

    @property
    def text_words(self) -> tuple[frozenset[str] | None, Mapping[str, int] | None]:
        return self.source_vocabulary, self.target_words

    def source_words(self, symbols: Sequence[str]) -> dict[str, int]:
        """How many of the source words are evidence, by the kinds that were chosen.

        Raises:
            OptionError: a pattern takes far too long.
        """
        vocabulary = frozenset(symbols) if self.source_vocabulary is None else self.source_vocabulary
        matches = (self.rules.find(word, vocabulary) for word in vocabulary if not PADDING_ENTRY.fullmatch(word))
        counted = Counter(evidence.kind for evidence in matches if evidence is not None)
        return {kind: counted[kind] for kind in self.rules.kinds}

    @property
    def offered_kinds(self) -> tuple[str, ...]:
        return self.rules.kinds

    def offers(self, prior: Prior, max_slots: int | None = None, once: bool | None = None) -> EvidenceTable:
        """The one table of this prior's session.

        Args:
            max_slots: strings that a sentence may offer, for whoever asks first; None: as it was made, or MAX_SLOTS.
            once: likewise, whether each is said as often as its source has it; None: as it was made, or not.

        Raises:
            ValueError: a table that was made for other answers.
        """
        rules, session, shapes = self.rules, prior.session, bool(prior.settings.get("shapes"))
        limit = MAX_SLOTS if max_slots is None else max_slots
        arguments = rules, session.source, session.target, prior.output, shapes, limit, bool(once)
        pieces, vocabulary = pieces_of(prior), self.source_vocabulary

        def make() -> EvidenceTable:
            if pieces is None or vocabulary is None:
                return EvidenceTable(*arguments)
            return PieceTable(*arguments, convention=pieces, source_vocabulary=vocabulary)

        table = session.once("evidence", make)
        if max_slots not in (None, table.max_slots):
            raise ValueError(f"expected a session with {max_slots} slots a sentence, found one with {table.max_slots}")
        if once not in (None, table.once):
            raise ValueError(f"expected a session whose slots are counted: {once}, found one with {table.once}")
        return table

    def source_index(self, prior: Prior, word: str) -> int | None:
        return self.offers(prior).source_index(word)

    def source_word(self, prior: Prior, word: str, index: int | None) -> Facts:
        pieces = pieces_of(prior)
        spelt = word if pieces is None or index is None else pieces.bare(word)
        evidence = self.find(spelt, frozenset(prior.source_symbols))
        facts = ["none"] if evidence is None else [f"{evidence.kind}: {' '.join(evidence.words)}"]
        lacking = "the source dictionary" if self.source_vocabulary is None else "the source's training text"
        if index is None if self.source_vocabulary is None else spelt not in self.source_vocabulary:
            facts.append(f"unknown: {lacking} lacks it")
        return {"evidence": facts}

    def lines(self, prior: Prior) -> list[str]:
        return [kinds_text(self.source_words(prior.source_symbols)), f"weight {self.rules.weight:g}"]

    def background(self, below: Background, context: BuildContext) -> Background:
        """Slots beside whatever there is; without a source nothing offers any."""
        if not context.has_source:
            return below
        from fairseq_llrnn.evidence.translation_slots import EvidenceBackground, TranslationSlots, Unsupported

        prior = context.prior
        source_unk = prior.source_symbols.index(UNK)
        translations = TranslationSlots(prior.output) if "translations" in self.rules.kinds else None
        factors, unsupported = unsupported_of(prior), None
        if factors:
            named = () if prior.expression is None else atoms(prior.expression)
            of_words = np.array([factors.get(str(form), 1.0) for form in forms_of_words(prior)])
            unsupported = Unsupported(of_words, of_root=not any(atom.text == UNSUPPORTED for atom in named))
        table = evidence_table(prior)
        return EvidenceBackground(below, table, prior.index(UNK), source_unk, translations, unsupported)

    def class_source(self, head: Head) -> ClassSource | None:
        from fairseq_llrnn.evidence.slots import SlotRows

        table = partial(evidence_table, head.prior)
        return None if head.source_size is None else SlotRows(head.source_size, head.hidden_size, table)


def _lines(words: Iterable[str]) -> np.ndarray:
    return np.frombuffer("\n".join(words).encode(), dtype=np.uint8)


def _read_lines(array: np.ndarray) -> list[str]:
    return [word for word in array.tobytes().decode().split("\n") if word]


UNSUPPORTED = "unsupported"  # words that weigh less without evidence: the setting, and the background in an expression


def unsupported_of(prior: Prior) -> dict[str, float]:
    """What the weights of target words without evidence were multiplied by, by kind. Raises ValueError."""
    entries = [str(entry).partition("=") for entry in prior.settings.get(UNSUPPORTED, ())]
    factors = {kind: float(factor) for kind, _, factor in entries}
    if not all(kind in FORMED and 0.0 <= factor <= 1.0 for kind, factor in factors.items()):
        raise ValueError(f"words of a kind weigh {prior.settings[UNSUPPORTED]} without evidence, which is none")
    return factors


def forms_of_words(prior: Prior) -> list[str | None]:
    """The kind of each target word by its form: (V,); None for most words and for special symbols."""
    convention = pieces_of(prior)
    spelt = prior.symbols if convention is None else [*map(convention.bare, prior.symbols)]
    vocabulary = frozenset(spelt)
    special = [symbol in SPECIALS or PADDING_ENTRY.fullmatch(symbol) for symbol in prior.symbols]
    return [None if none else form_of(word, vocabulary) for word, none in zip(spelt, special, strict=True)]


def check_translations(rules: EvidenceRules, prior: Prior) -> None:
    """Raise ValueError where evidence offers translations that the prior, whose parts come before it, does not have."""
    if "translations" in rules.kinds and (prior.translations is None or pieces_of(prior) is not None):
        raise ValueError("the evidence offers translations, and the prior has none of whole words")


def pieces_of(prior: Prior) -> Convention | None:
    """How the prior's words are written in pieces; None where words are words."""
    return CONVENTIONS.get(str(prior.settings.get("pieces")))


def kinds_text(source_words: Mapping[str, int]) -> str:
    """`terms (of a file), numbers 120, names 33, copies (unknown words)`."""
    uncounted = {kind: f"{kind} ({asked.origin})" for kind, asked in ASKED.items()}
    uncounted |= {"copies": "copies (unknown words)", "translations": "translations (rare words)"}
    return ", ".join(uncounted.get(kind, f"{kind} {count:,}") for kind, count in source_words.items())


def evidence_table(prior: Prior, max_slots: int | None = None, once: bool | None = None) -> EvidenceTable:
    """What source tokens offer, as `EvidencePart.offers`. Raises ValueError for a prior without evidence, too."""
    table = prior.offers(max_slots, once)
    if table is None:
        raise ValueError("the prior has no evidence")
    return table
