"""Gives a prior its evidence: the rules, and less background for target words that need evidence.

Sizes: V target words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evidence.rules import ASKED, BY_KNOWN_WORDS, EvidenceRules, features, read_evidence_map
from fairseq_llrnn.evidence.table import WordSpans
from fairseq_llrnn.features.dictionary import OpenWords, WordList, load_dictionary
from fairseq_llrnn.features.spelling import UserPatterns
from fairseq_llrnn.features.subwords import CONVENTIONS, PieceText
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.prior.expression import Atom, Times
from fairseq_llrnn.prior.parts.evidence import UNSUPPORTED, EvidencePart, check_translations, forms_of_words, pieces_of
from fairseq_llrnn.prior.parts.static import StaticPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.prior.translations import background_of

SENTENCES = 10_000  # that are cut into words at once


def source_symbols(options: Recipe, path: Path | None, asked_by: str) -> tuple[str, ...]:
    """The source dictionary's words: those given, of the parallel text, or of the only other dictionary beside `path`.

    Args:
        asked_by: the option that needs them.

    Raises:
        OptionError: none or several; one that is not the parallel text's.
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
            f"{asked_by}: expected one other dict.*.txt beside --dict {path}, the source's, found {names}; give it as "
            "source_dictionary"
        )
    return load_dictionary(others[0]).symbols


def rules_of(options: Recipe, patterns: UserPatterns | None) -> EvidenceRules | None:
    """None where no evidence is asked for. Raises OptionError for kinds without what they need."""
    asked = options.evidence
    if asked is None:
        return None
    if "mapped" in asked.kinds and asked.mapping is None:
        raise OptionError("--evidence mapped: expected evidence.mapping with what is mapped, found none; add it")
    if "patterns" in asked.kinds and patterns is None:
        raise OptionError("--evidence patterns: expected patterns with your expressions, found none; add it")
    if "translations" in asked.kinds and options.translations is None:
        raise OptionError(
            "--evidence translations: expected --lexical-translation beside it, which says what words translate into, "
            "found none; add it"
        )
    if options.pieces is not None:
        _check_of_pieces(options, asked.kinds)
    mapping = asked.mapping or {}
    if isinstance(mapping, (str, Path)):
        mapping = read_evidence_map(str(mapping), options.words.normalize)
    table = {word: tuple(words) for word, words in mapping.items()}
    kinds = tuple(kind for kind in features() if kind in asked.kinds or (kind == "mapped" and table))
    return EvidenceRules(kinds, table, {} if patterns is None else patterns.expressions, asked.weight)


def _check_of_pieces(options: Recipe, kinds: Sequence[str]) -> None:
    """Raise OptionError for kinds without a text that says which words there are."""
    for kinds_of_text, option, side, is_there in (
        (BY_KNOWN_WORDS, "--lexical-translation", "source", options.translations is not None),
        (ASKED, "--count-text", "target", bool(as_paths(options.text))),
    ):
        kind = next((kind for kind in features() if kind in kinds and kind in kinds_of_text), None)
        if kind is not None and not is_there:
            raise OptionError(
                f"--evidence {kind}: expected {option} beside it and --pieces {options.pieces}, since only the "
                f"{side}'s training text says which words there are, found none; add it"
            )


def add_evidence(
    prior: Prior,
    rules: EvidenceRules,
    source_symbols: tuple[str, ...],
    source_vocabulary: frozenset[str] | None = None,
    target_words: Mapping[str, int] | None = None,
) -> Prior:
    """The prior with evidence.

    Args:
        source_symbols: the source dictionary; the same one as that of its lexical translations.
        source_vocabulary: words of the source, where dictionaries hold pieces.
        target_words: with counts, where some are asked for.

    Raises:
        ValueError: it offers translations, and the prior has none; pieces without the words that they need.
    """
    check_translations(rules, prior)
    if pieces_of(prior) is not None and (source_vocabulary is None or (rules.asked and target_words is None)):
        raise ValueError("over pieces, evidence needs the words of the source, and terms those of the target")
    return prior.with_part(EvidencePart(rules, source_vocabulary, target_words), source_symbols)


def source_vocabulary_of(
    options: Recipe, rules: EvidenceRules, source_symbols: tuple[str, ...]
) -> frozenset[str] | None:
    """The words of a source in pieces that are not unknown, those of its training text; None where words are words.

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
    for start in range(0, len(text), SENTENCES):  # by blocks: a large text would need 100 bytes a word
        block = text.tokens[text.offsets[start] : text.offsets[min(start + SENTENCES, len(text))]]
        tokens = block.tolist()
        tokens_of_words.update(tuple(tokens[begin:end]) for begin, end in spans.spans(block))
    return frozenset(word for word in (spans.word(np.array(one)) for one in tokens_of_words) if word is not None)


def spelled_words(
    options: Recipe, rules: EvidenceRules, text: PieceText | None
) -> Mapping[str, int] | None:
    """The words of a target in pieces, and how often its training text has each; None where nobody needs them.

    Args:
        text: the target's training text, if it was read.

    Raises:
        DataError: it is not in pieces.
    """
    if options.pieces is None or not rules.asked:
        return None
    return (text or PieceText.read(as_paths(options.text), CONVENTIONS[options.pieces], options.workers)).word_counts()


def discount(prior: Prior, words: WordList, factors: Mapping[str, float]) -> tuple[Prior, Counter[str]]:
    """The prior with less background for words of some kinds of FORMED, and how many words those are.

    Static weights are multiplied and then scaled so that all words together weigh what they weighed before: those of
    <unk> and </s> stay (Dymetman & Xiao 2016, §4, condition-based priming). Any other background is multiplied by
    static factors, 1 for most words.

    Args:
        words: the prior's dictionary. factors: 0 … 1 by kind.

    Raises:
        OptionError: no word is left.
    """
    ordinary = ~words.specials & prior.allowed
    notes = Counter({_note(kind, factor): 0 for kind, factor in factors.items()})
    factor_of = np.ones(len(words))
    for i, kind in enumerate(forms_of_words(prior)):
        if kind is not None and kind in factors and ordinary[i]:
            factor_of[i] = factors[kind]
            notes[_note(kind, factors[kind])] += 1
    written = [f"{kind}={factor:g}" for kind, factor in factors.items()]
    before = np.exp(prior.log_weights[ordinary])
    after = before * factor_of[ordinary]
    if not after.sum() > 0:
        raise OptionError(
            f"evidence.unsupported {' '.join(written)}: expected some word that remains possible without evidence, "
            "found "
            "none; leave a kind out"
        )
    prior = replace(prior, settings={**prior.settings, UNSUPPORTED: written})
    background = background_of(prior)
    if background is not None:
        with np.errstate(divide="ignore"):
            discounted = prior.with_part(StaticPart(np.log(factor_of)))
        name = [name for name in discounted.names if name.startswith(StaticPart.kind)][-1]
        return replace(discounted, expression=Times((background, Atom(UNSUPPORTED, name)))), notes
    log_weights = prior.log_weights.copy()
    with np.errstate(divide="ignore"):
        log_weights[ordinary] = np.log(after * (before.sum() / after.sum()))
    return replace(prior, log_weights=log_weights), notes


def _note(kind: str, factor: float) -> str:
    how = "impossible without evidence" if factor == 0 else f"weighed {factor:g} times as much without evidence"
    return f"target words are {kind}, {how}"
