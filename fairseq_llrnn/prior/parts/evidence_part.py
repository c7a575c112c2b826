"""Evidence: the strings of a source sentence that its translation may contain (evidence/rules.py).

Over pieces (the prior's setting `pieces`, of both sides) the part also stores the words of the source's training text,
since a dictionary of pieces does not show which words are unknown. If a system requests strings
(`EvidenceRules.asked`), the part stores the target's words with their counts.

Sizes: D different words of a training text, V target words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairseq_llrnn.alignment.translation_table import is_word
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evidence.evidence_table import MAX_SLOTS, EvidenceTable, WordSpans, slot_features
from fairseq_llrnn.evidence.piece_table import PieceTable
from fairseq_llrnn.evidence.rules import (
    ASKED,
    BY_KNOWN_WORDS,
    Evidence,
    EvidenceRules,
    features,
    form_of,
    read_evidence_map,
)
from fairseq_llrnn.features.dictionary import PADDING_ENTRY, SPECIALS, UNK, OpenWords, WordList, load_dictionary
from fairseq_llrnn.features.spelling_features import UserPatterns
from fairseq_llrnn.features.subwords import CONVENTIONS, Convention, PieceText
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.prior.part import BuildContext, Facts, Part, PriorView, SavedPart, register_part
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe

if TYPE_CHECKING:
    from fairseq_llrnn.backgrounds.background import Background
    from fairseq_llrnn.output.class_source import ClassSource, Head


SOURCE_VOCABULARY, TARGET_WORDS, TARGET_COUNTS = "known_words", "target_words", "target_counts"  # names of arrays


@register_part("evidence")
@dataclass(frozen=True)
class EvidencePart(Part):
    """The rules of evidence. φ contains the features of slots."""

    rules: EvidenceRules
    source_vocabulary: frozenset[str] | None = None  # of a source in pieces; None: the words of its dictionary
    target_words: Mapping[str, int] | None = None  # D and their counts, if strings are requested over pieces

    needs_source = has_source_strings = True
    class_name = "slot_rows"
    subject = "evidence was"

    def arrays(self) -> dict[str, np.ndarray]:
        """Return words as UTF-8, one per line."""
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
        pieces = pieces_of(prior) is not None
        has_target_words = pieces and bool(rules.asked)
        if (SOURCE_VOCABULARY in saved.arrays, TARGET_WORDS in saved.arrays) != (pieces, has_target_words):
            raise ValueError("the evidence and the prior differ in whether their words are in pieces")
        if not pieces:
            return cls(rules)
        vocabulary = frozenset(_read_lines(saved.array(SOURCE_VOCABULARY, np.uint8)))
        if TARGET_WORDS not in saved.arrays:
            return cls(rules, vocabulary)
        words, counts = _read_lines(saved.array(TARGET_WORDS, np.uint8)), saved.array(TARGET_COUNTS, np.int64)
        if len(words) != len(counts) or (counts < 0).any():
            raise ValueError("the evidence's target words and their counts do not match")
        return cls(rules, vocabulary, dict(zip(words, counts.tolist(), strict=True)))

    def find(self, word: str, symbols: Collection[str]) -> Evidence | None:
        """Return the evidence of a source word, or None. `symbols` is the source dictionary.

        Raises:
            OptionError: a pattern takes too long.
        """
        return self.rules.find(word, symbols if self.source_vocabulary is None else self.source_vocabulary)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return slot_features(self.rules)

    def source_words(self, symbols: Sequence[str]) -> dict[str, int]:
        """Count the source words that are evidence, by kind.

        Raises:
            OptionError: a pattern takes too long.
        """
        vocabulary = frozenset(symbols) if self.source_vocabulary is None else self.source_vocabulary
        matches = (self.rules.find(word, vocabulary) for word in vocabulary if not PADDING_ENTRY.fullmatch(word))
        counted = Counter(evidence.kind for evidence in matches if evidence is not None)
        return {kind: counted[kind] for kind in self.rules.kinds}

    def offers(self, prior: PriorView, max_slots: int | None = None) -> EvidenceTable:
        """Return the one table of this prior's session.

        Args:
            max_slots: most strings of a sentence, at the first call (None: as in the existing table, or MAX_SLOTS).

        Raises:
            ValueError: the table exists with another limit.
        """
        rules, session, shapes = self.rules, prior.session, bool(prior.settings.get("shapes"))
        limit = MAX_SLOTS if max_slots is None else max_slots
        arguments = rules, session.source, session.target, prior.output, shapes, limit
        pieces, vocabulary = pieces_of(prior), self.source_vocabulary

        def make() -> EvidenceTable:
            if pieces is None or vocabulary is None:
                return EvidenceTable(*arguments)
            return PieceTable(*arguments, convention=pieces, source_vocabulary=vocabulary)

        table = session.memoize("evidence", make)
        if max_slots not in (None, table.max_slots):
            raise ValueError(f"expected a session with {max_slots} slots a sentence, found one with {table.max_slots}")
        return table

    def source_index(self, prior: PriorView, word: str) -> int | None:
        return self.offers(prior).source_index(word)

    def source_word(self, prior: PriorView, word: str, index: int | None) -> Facts:
        pieces = pieces_of(prior)
        spelt = word if pieces is None or index is None else pieces.bare(word)
        evidence = self.find(spelt, frozenset(prior.source_symbols))
        facts = ["none"] if evidence is None else [f"{evidence.kind}: {' '.join(evidence.words)}"]
        lacking = "the source dictionary" if self.source_vocabulary is None else "the source's training text"
        if index is None if self.source_vocabulary is None else spelt not in self.source_vocabulary:
            facts.append(f"unknown: {lacking} lacks it")
        return {"evidence": facts}

    def lines(self, prior: PriorView) -> list[str]:
        unsupported = [_note(kind, factor) for kind, factor in self.rules.unsupported.items()]
        return [kinds_text(self.source_words(prior.source_symbols)), f"weight {self.rules.weight:g}", *unsupported]

    def background(self, below: Background, context: BuildContext) -> Background:
        """Add slots to the background below, and reduce words that need a slot and have none.

        Without a source there are no slots.
        """
        import torch

        from fairseq_llrnn.evidence.translation_slots import EvidenceBackground, TranslationSlots, with_factors

        prior, factors = context.prior, None
        if self.rules.unsupported:
            factors = torch.from_numpy(factors_of(prior, self.rules))
        if not context.has_source:
            return below if factors is None else with_factors(below, factors)
        source_unk = prior.source_symbols.index(UNK)
        translations = TranslationSlots(prior.output) if "translations" in self.rules.kinds else None
        table = evidence_table(prior)
        return EvidenceBackground(below, table, prior.index(UNK), source_unk, translations, factors)

    def class_source(self, head: Head) -> ClassSource | None:
        from fairseq_llrnn.evidence.slots import SlotRows

        return None if head.source_size is None else SlotRows(head.source_size, head.hidden_size)


def _lines(words: Iterable[str]) -> np.ndarray:
    return np.frombuffer("\n".join(words).encode(), dtype=np.uint8)


def _read_lines(array: np.ndarray) -> list[str]:
    return [word for word in array.tobytes().decode().split("\n") if word]


def factors_of(prior: PriorView, rules: EvidenceRules) -> np.ndarray:
    """Return the factor of each target word that no slot offers: (V,)."""
    return np.array([rules.unsupported.get(str(form), 1.0) for form in forms_of_words(prior)])


def forms_of_words(prior: PriorView) -> list[str | None]:
    """Return the kind of each target word by its form: (V,), or None for most words and for special symbols."""
    convention = pieces_of(prior)
    spelt = prior.symbols if convention is None else [*map(convention.bare, prior.symbols)]
    vocabulary = frozenset(spelt)
    special = [symbol in SPECIALS or PADDING_ENTRY.fullmatch(symbol) for symbol in prior.symbols]
    return [None if is_special else form_of(word, vocabulary) for word, is_special in zip(spelt, special, strict=True)]


def check_translations(rules: EvidenceRules, prior: PriorView) -> None:
    """Raise ValueError if evidence offers translations and the prior has none of whole words."""
    if "translations" in rules.kinds and (prior.translations is None or pieces_of(prior) is not None):
        raise ValueError("the evidence offers translations, and the prior has none of whole words")


def pieces_of(prior: PriorView) -> Convention | None:
    """Return how the prior's words are written in pieces, or None for whole words."""
    return CONVENTIONS.get(str(prior.settings.get("pieces")))


def kinds_text(source_words: Mapping[str, int]) -> str:
    """Return kinds and counts as text: `terms (of a file), numbers 120, names 33, copies (unknown words)`."""
    uncounted = {kind: f"{kind} ({request.origin})" for kind, request in ASKED.items()}
    uncounted |= {"copies": "copies (unknown words)", "translations": "translations (rare words)"}
    return ", ".join(uncounted.get(kind, f"{kind} {count:,}") for kind, count in source_words.items())


def evidence_table(prior: PriorView, max_slots: int | None = None) -> EvidenceTable:
    """Return the strings that source tokens offer, as `EvidencePart.offers`. Raises ValueError also without
    evidence.
    """
    table = prior.offers(max_slots)
    if table is None:
        raise ValueError("the prior has no evidence")
    return table


# ---- how it is built -----------------------------------------------------------------------------------------------


SENTENCES = 10_000  # split into words at once


def source_symbols(options: Recipe, path: Path | None, option: str) -> tuple[str, ...]:
    """Return the words of the source dictionary: given, of the parallel text, or of the only other dictionary next to
    `path`.

    Args:
        option: the option that needs them.

    Raises:
        OptionError: there is none, there are several, or it is not the parallel text's.
    """
    dictionary, translations = options.source_dictionary, options.translations
    if dictionary is not None:
        symbols = load_dictionary(dictionary).symbols if isinstance(dictionary, (str, Path)) else tuple(dictionary)
        if translations is not None and symbols != translations.parallel.source_symbols:
            name = f" {dictionary}" if isinstance(dictionary, (str, Path)) else ""
            raise OptionError(
                f"source_dictionary{name}: expected the words of the source side of --lexical-translation, found "
                "others; leave it out"
            )
        return symbols
    if translations is not None:
        return translations.parallel.source_symbols
    others = [] if path is None else [p for p in path.parent.glob("dict.*.txt") if p.name != path.name]
    if len(others) != 1:
        names = ", ".join(sorted(other.name for other in others)) or "none"
        raise OptionError(
            f"{option}: expected one other dict.*.txt next to --dict {path}, the source's, found {names}; give it as "
            "source_dictionary"
        )
    return load_dictionary(others[0]).symbols


def rules_of(options: Recipe, patterns: UserPatterns | None) -> EvidenceRules | None:
    """Return the rules, or None without evidence. Raises OptionError for kinds whose inputs are missing."""
    evidence = options.evidence
    if evidence is None:
        return None
    if "mapped" in evidence.kinds and evidence.mapping is None:
        raise OptionError("--evidence mapped needs evidence.mapping; add it")
    if "patterns" in evidence.kinds and patterns is None:
        raise OptionError("--evidence patterns needs patterns, a file of regular expressions; add it")
    if "translations" in evidence.kinds and options.translations is None:
        raise OptionError("--evidence translations needs --lexical-translation; add it")
    if options.pieces is not None:
        _check_of_pieces(options, evidence.kinds)
    mapping = evidence.mapping or {}
    if isinstance(mapping, (str, Path)):
        mapping = read_evidence_map(str(mapping), options.words.normalize)
    table = {word: tuple(words) for word, words in mapping.items()}
    kinds = tuple(kind for kind in features() if kind in evidence.kinds or (kind == "mapped" and table))
    unsupported = {str(form): float(factor) for form, factor in evidence.unsupported.items()}
    expressions = {} if patterns is None else patterns.expressions
    return EvidenceRules(kinds, table, expressions, evidence.weight, unsupported)


def _check_of_pieces(options: Recipe, kinds: Sequence[str]) -> None:
    """Raise OptionError for kinds over pieces without a text that contains the words."""
    for kinds_of_text, option, side, is_there in (
        (BY_KNOWN_WORDS, "--lexical-translation", "source", options.translations is not None),
        (ASKED, "--count-text", "target", bool(as_paths(options.text))),
    ):
        kind = next((kind for kind in features() if kind in kinds and kind in kinds_of_text), None)
        if kind is not None and not is_there:
            raise OptionError(
                f"--evidence {kind} with --pieces {options.pieces} needs {option}, since only the {side}'s training "
                "text contains whole words; add it"
            )


def add_evidence(
    prior: Prior,
    rules: EvidenceRules,
    source_symbols: tuple[str, ...],
    source_vocabulary: frozenset[str] | None = None,
    target_words: Mapping[str, int] | None = None,
) -> Prior:
    """Return the prior with evidence.

    Args:
        source_symbols: the source dictionary, the same as that of its lexical translations.
        source_vocabulary: words of the source, if dictionaries contain pieces.
        target_words: with counts, if strings are requested.

    Raises:
        ValueError: evidence offers translations and the prior has none, or pieces come without the words that they
            need.
    """
    check_translations(rules, prior)
    if pieces_of(prior) is not None and (source_vocabulary is None or (rules.asked and target_words is None)):
        raise ValueError("over pieces, evidence needs the words of the source, and terms those of the target")
    return prior.with_part(EvidencePart(rules, source_vocabulary, target_words), source_symbols)


def source_vocabulary_of(options: Recipe, source_symbols: tuple[str, ...]) -> frozenset[str] | None:
    """Return the known words of a source in pieces, those of its training text, or None for whole words.

    Raises:
        DataError: the source is not in pieces of the convention.
    """
    if options.pieces is None:
        return None
    convention = CONVENTIONS[options.pieces]
    words = WordList(source_symbols, np.zeros(len(source_symbols), dtype=np.int64))
    convention.check_dictionary("--evidence: the source dictionary", words)
    if options.translations is None:
        return frozenset()
    spans, text = WordSpans(OpenWords(source_symbols), convention), options.translations.parallel.bitext.source
    tokens_of_words: set[tuple[int, ...]] = set()
    for start in range(0, len(text), SENTENCES):  # a large text at once would need 100 bytes a word
        block = text.tokens[text.offsets[start] : text.offsets[min(start + SENTENCES, len(text))]]
        tokens = block.tolist()
        tokens_of_words.update(tuple(tokens[begin:end]) for begin, end in spans.spans(block))
    return frozenset(word for word in (spans.word(np.array(span)) for span in tokens_of_words) if word is not None)


def spelled_words(options: Recipe, rules: EvidenceRules, text: PieceText | None) -> Mapping[str, int] | None:
    """Return the words of a target in pieces with their counts in its training text, or None if they are not needed.

    Args:
        text: the target's training text, if it was read.

    Raises:
        DataError: it is not in pieces.
    """
    if options.pieces is None or not rules.asked:
        return None
    return (text or PieceText.read(as_paths(options.text), CONVENTIONS[options.pieces], options.workers)).word_counts()


def check_unsupported(prior: Prior, rules: EvidenceRules) -> Counter[str]:
    """Return notes for the user: the numbers of target words that need evidence.

    Raises:
        OptionError: no word remains possible without evidence.
    """
    possible = is_word(prior.symbols) & prior.allowed
    forms = Counter(form for form, is_possible in zip(forms_of_words(prior), possible, strict=True) if is_possible)
    if rules.unsupported and not (factors_of(prior, rules)[possible] > 0).any():
        settings = " ".join(f"{kind}={factor:g}" for kind, factor in rules.unsupported.items())
        raise OptionError(
            f"evidence.unsupported {settings}: expected some word that remains possible without evidence, found none; "
            "leave a kind out"
        )
    return Counter({f"target words are {_note(kind, f)}": forms[kind] for kind, f in rules.unsupported.items()})


def _note(kind: str, factor: float) -> str:
    effect = "impossible without evidence" if factor == 0 else f"weighed {factor:g} times as much without evidence"
    return f"{kind}, {effect}"
