"""Builds a prior from files or objects, step by step: what `llrnn prior` and `Prior.build` do.

dictionary, counts, lexicon  ->  features and b₀ (build.py)  ->  backgrounds (leaves.py)  ->  open vocabulary
    ->  lexical translations, words that need evidence, evidence
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.evidence.mapping_file import read_evidence_map
from fairseq_llrnn.evidence.rules import KINDS, EvidenceRules
from fairseq_llrnn.features.dictionary import WordList, load_dictionary
from fairseq_llrnn.features.languages import language_code
from fairseq_llrnn.features.languages.gathering import Gathered
from fairseq_llrnn.features.lexicon import Lexicon, united
from fairseq_llrnn.features.subwords import CONVENTIONS, PieceText
from fairseq_llrnn.features.text_words import count_words
from fairseq_llrnn.features.user_patterns import UserPatterns
from fairseq_llrnn.prior.analyses import complete_analyses, read_analyses, with_values
from fairseq_llrnn.prior.build import PriorSettings, build_prior
from fairseq_llrnn.prior.case_check import notes_of_case
from fairseq_llrnn.prior.evidence import add_evidence, discount, known_source_words, spelled_words
from fairseq_llrnn.prior.expression import Atom, Expression, atoms
from fairseq_llrnn.prior.guessing import Completed
from fairseq_llrnn.prior.labels import LABELS, check_of_labels
from fairseq_llrnn.prior.languages import gathered_for, part_of, with_codes
from fairseq_llrnn.prior.leaves import EXAMPLES, STATIC, TRANSLATIONS, Leaves, is_order, kind_of, read_background
from fairseq_llrnn.prior.lemmas import check_units, files_of_source_lemmas, lemmas_of, source_lemmas_of
from fairseq_llrnn.prior.morphemes import check_options, morphemes_of, segmenter
from fairseq_llrnn.prior.open_vocabulary import add_open_vocabulary
from fairseq_llrnn.prior.options import MORFESSOR, EvidenceOptions, PriorOptions, as_paths
from fairseq_llrnn.prior.parts import CopiedWordsPart, GuessesPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.translations import add_translations, background_of

Dictionary = WordList | Sequence[str] | str | Path


@dataclass(frozen=True)
class Built:
    """A prior, the dictionary that it was built for, how often it has each word, and remarks of how many things each is
    true."""

    prior: Prior
    words: WordList
    counts: np.ndarray  # (V,)
    notes: Counter[str]
    completed: Completed  # what the lexicon covers, and what was guessed
    gathered: Gathered  # what packages know of the language


def build(dictionary: Dictionary, options: PriorOptions | None = None) -> Built:
    """Build a prior.

    Args:
        dictionary: a dict.txt of fairseq-preprocess, or the V symbols themselves, those of fairseq first.

    Raises:
        OptionError, DataError: options that do not go together, files that are not what they should be.
    """
    options = options or PriorOptions()
    if options.lower is not None and options.keep_case:
        raise OptionError(f"--lower {options.lower}: found --keep-case beside it; leave one of them out")
    check_options(options)
    check_units(options)
    words = _words(dictionary)
    if options.labels:
        check_of_labels(options)
        words = replace(words, are_labels=True)
    path = Path(dictionary) if isinstance(dictionary, (str, Path)) else None
    code = None if options.language is None else language_code(options.language)
    background, patterns = with_codes(read_background(options.background), code), _patterns(options)
    translated = options.translations is not None
    evidence = None if options.evidence is None else _rules(options.evidence, patterns, translated)
    if options.background_options.copy_source_words:
        _check_copies(options, background)
    if options.translations is None and any(kind_of(atom.text)[0] == TRANSLATIONS for atom in atoms(background)):
        raise OptionError(
            "--background: it names `translations`, expected --lexical-translation beside it, found none; add it"
        )
    source = _source_symbols(options, path)
    text, (counts, all_counts) = _piece_text(options, path, words), _both_counts(options, words)
    known_words = None if evidence is None else _known_words(options, evidence, source)
    target_words = None if evidence is None else spelled_words(options, evidence, text)
    gathered = gathered_for(code, options, words, counts, all_counts, None if text is None else text.words())
    analyses = read_analyses(options, words, text)
    analyses.update(gathered.analyses)
    completed = complete_analyses(analyses, options, words, counts, all_counts, text)
    lexicon = with_values(completed.lexicon, options, gathered.pooled)
    morphemes = morphemes_of(options, words, counts, all_counts)
    settings = _settings(options, background)
    for_source = evidence is not None and "patterns" in evidence.kinds
    sources = _sources(options, background, code)
    prior, notes = build_prior(
        words, counts, lexicon, settings, patterns, sources, text, for_source, morphemes.features
    )
    notes.update(morphemes.notes)
    notes.update(notes_of_case(words, counts, analyses, options) if text is None else ())
    entries = len(lexicon) - completed.added
    known = {"background": options.background, "lexicon_entries": entries, **({LABELS: True} if options.labels else {})}
    prior = replace(prior, settings={**prior.settings, **known})
    if (part := part_of(gathered, background, words, counts)) is not None:
        prior = prior.with_part(part)
    if completed.guessed.any():
        guessed = np.flatnonzero(completed.guessed)
        prior = prior.with_part(GuessesPart(guessed, completed.groups, dict(completed.accuracy)))
    prior, more = Leaves(words, counts, as_paths(options.text), options.background_options, options.workers).add(
        prior, background
    )
    notes.update(more)
    if options.background_options.copy_source_words:
        prior = prior.with_part(CopiedWordsPart(), source)
    if options.open_vocabulary is not None:
        opened = options.open_vocabulary
        features = united(lexicon, morphemes.features or {})
        prior = add_open_vocabulary(prior, words, all_counts, features, opened.floor, opened.types, opened.neural)
    prior, more = _with_source(prior, words, options, lemmas_of(options, words, code), source_lemmas_of(options))
    notes.update(more)
    if evidence is not None:
        prior = add_evidence(prior, evidence, source, known_words, target_words)
    return Built(prior, words, counts, notes, completed, gathered)


def _with_source(
    prior: Prior, words: WordList, options: PriorOptions, lemmas: Sequence[Sequence[str]] | None,
    source_lemmas: Sequence[Sequence[str]] | None,
) -> tuple[Prior, Counter[str]]:  # fmt: skip
    """Translations, and less background for words that need evidence.

    A static background is discounted before translations come, which may then hold no word that it forbids; any other
    one after them, or translations would give such words their weight again.
    """
    notes: Counter[str] = Counter()
    unsupported = {} if options.evidence is None else options.evidence.unsupported
    late = background_of(prior) is not None
    if unsupported and not late:
        prior, more = discount(prior, words, unsupported)
        notes.update(more)
    if options.translations is not None:
        prior, more = add_translations(prior, options.translations, options.workers, lemmas, source_lemmas)
        notes.update(more)
    if unsupported and late:
        prior, more = discount(prior, words, unsupported)
        notes.update(more)
    return prior, notes


# ---- what it is built from ------------------------------------------------------------------------------------------


def _words(dictionary: Dictionary) -> WordList:
    if isinstance(dictionary, (str, Path)):
        return load_dictionary(dictionary)
    if isinstance(dictionary, WordList):
        return dictionary
    return WordList(tuple(dictionary), np.zeros(len(dictionary), dtype=np.int64))


def _both_counts(options: PriorOptions, words: WordList) -> tuple[np.ndarray, Mapping[str, int]]:
    """(V,), and how often each word occurs, those outside the dictionary as well, which an open vocabulary needs.

    A text is counted once, word by word only where that is needed.
    """
    texts, all_counts, counts = as_paths(options.text), Counter[str](), options.counts
    if texts and options.open_vocabulary is not None:
        all_counts, lines = count_words(texts, options.workers)
        counts = words.counts_of([(all_counts, lines)]) if counts is None else counts
    elif texts and counts is None:
        counts = words.count_text(texts, options.workers)
    elif options.open_vocabulary is not None:
        own = words.counts if counts is None else counts
        ordinary = zip(words.symbols, own.tolist(), words.specials, strict=True)
        all_counts = Counter({symbol: count for symbol, count, special in ordinary if not special})
    if texts and counts is not None and not counts[~words.specials].any():
        raise DataError(
            f"{', '.join(texts)}: expected counts, found none for any word of the dictionary; give the text that the "
            "dictionary was made from, tokenised in the same way"
        )
    return words.counts_with_ends() if counts is None else counts, all_counts


def _settings(options: PriorOptions, background: Expression) -> PriorSettings:
    if options.suffixes is not None and options.suffixes < 1:
        raise OptionError(f"--suffixes {options.suffixes}: expected a number of word types of at least 1")
    static = [atom.text for atom in atoms(background) if kind_of(atom.text)[0] == STATIC]
    return PriorSettings(
        options.top_words,
        options.features,
        options.input_features,
        options.input_top_words,
        options.shapes,
        options.suffixes,
        static[0] if static else "unigram",
        options.background_options.smoothing,
        options.background_options.pseudo_count,
        options.pieces,
        options.identity_floor,
        segmenter(options),
        None if options.morphemes is None else options.morpheme_floor,
    )


def _patterns(options: PriorOptions) -> UserPatterns | None:
    found = options.patterns
    return found if found is None or isinstance(found, UserPatterns) else UserPatterns.load(str(found))


def _piece_text(options: PriorOptions, path: Path | None, words: WordList) -> PieceText | None:
    """The text that says which words a piece is part of; None where words are words, or nothing is known of them."""
    if options.pieces is None:
        return None
    if options.open_vocabulary is not None:
        raise OptionError(
            f"--open-vocabulary: it is of whole words, found --pieces {options.pieces} beside it; preprocess words, or "
            "leave one of them out"
        )
    convention, texts = CONVENTIONS[options.pieces], as_paths(options.text)
    convention.check_dictionary(str(path or "the dictionary"), words)
    of_words = [
        name
        for name in ("conllu", "lexicon", "unimorph", "language", "apertium", "values", "suffixes")
        if getattr(options, name)
    ]
    if of_words and not texts:
        raise OptionError(
            f"--pieces {options.pieces}: expected --count-text beside --{of_words[0]}, found none; add the training "
            f"text in pieces, which shows what words hold a piece, or leave --{' and --'.join(of_words)} out: a piece "
            "then has the features that it shows itself"
        )
    return PieceText.read(texts, convention, options.workers) if of_words else None


def _sources(options: PriorOptions, background: Expression, code: str | None) -> list[str]:
    """What the prior was made from: option, file name, and the beginning of the content's SHA-256.

    Args:
        code: of --language.
    """
    evidence_map = None if options.evidence is None else options.evidence.mapping
    lexicon = options.lexicon
    files: list[tuple[str, str | Path]] = [
        *(("--conllu", path) for path in as_paths(options.conllu)),
        *(("--lexicon", path) for path in ([] if isinstance(lexicon, (Lexicon, Mapping)) else as_paths(lexicon))),
        *(("--unimorph", path) for path in as_paths(options.unimorph)),
        *(("--values", path) for path in as_paths(options.values)),
        *(("--morphemes", path) for path in [options.morphemes] if isinstance(path, (str, Path)) and path != MORFESSOR),
        *(("--count-text", path) for path in as_paths(options.text)),
        *(("--patterns", path) for path in [options.patterns] if isinstance(path, (str, Path))),
        *(("--background", path) for path in _background_files(options, background)),
        *(("--lexical-translation", p) for p in (options.translations.text.files if options.translations else ())),
        *(("--hunspell", path) for path in as_paths(options.translations.hunspell if options.translations else ())),
        *(("--lexical-source-lemmas", path) for path in files_of_source_lemmas(options)),
        *(("--evidence-map", path) for path in [evidence_map] if isinstance(path, (str, Path))),
    ]
    described = []
    for option, path in files:
        if not Path(path).is_file():  # a pipe, which was read, and has no more
            described.append(f"{option} (a pipe)")
            continue
        with open(path, "rb") as stream:
            described.append(f"{option} {Path(path).name} {hashlib.file_digest(stream, 'sha256').hexdigest()[:16]}")
    if code is not None:
        described.append(f"--language {code}, lemmas that {options.lemma_floor} words share")
    packages = () if options.translations is None else options.translations.source_lemmas
    described += [f"--lexical-source-lemmas {place}" for place in packages if place.startswith("lemmas:")]
    return described + ([] if options.apertium is None else [f"--apertium {Path(options.apertium).name}"])


def _background_files(options: PriorOptions, background: Expression) -> list[str]:
    """The files that the backgrounds of an expression are read from; that of `unigram` is the counted text."""
    found: list[str] = []
    for atom in atoms(background):
        kind, source = kind_of(atom.text)
        if is_order(atom.text):
            found += as_paths(options.background_options.ngram_text)
        elif kind in EXAMPLES and kind != "cache":
            found.append(source)
    return found


# ---- the source of a translation ------------------------------------------------------------------------------------


def _rules(options: EvidenceOptions, patterns: UserPatterns | None, translated: bool) -> EvidenceRules:
    """Raises OptionError for kinds without what they need."""
    options.check()
    if "mapped" in options.kinds and options.mapping is None:
        raise OptionError("--evidence mapped: expected --evidence-map with what is mapped, found none; add it")
    if "patterns" in options.kinds and patterns is None:
        raise OptionError("--evidence patterns: expected --patterns with your expressions, found none; add it")
    if "translations" in options.kinds and not translated:
        raise OptionError(
            "--evidence translations: expected --lexical-translation beside it, which says what words translate into, "
            "found none; add it"
        )
    mapping = options.mapping or {}
    if isinstance(mapping, (str, Path)):
        mapping = read_evidence_map(str(mapping))
    table = {word: tuple(words) for word, words in mapping.items()}
    kinds = tuple(kind for kind in KINDS if kind in options.kinds or (kind == "mapped" and table))
    return EvidenceRules(kinds, table, {} if patterns is None else patterns.expressions, options.weight)


def _known_words(options: PriorOptions, rules: EvidenceRules, source: tuple[str, ...]) -> frozenset[str] | None:
    """Of the source, where both sides are in pieces; None where they are not."""
    if options.pieces is None:
        return None
    if "translations" in rules.kinds:
        raise OptionError(
            f"--evidence translations: not supported with --pieces {options.pieces}, since it singles words out; "
            "preprocess words, or leave one of them out"
        )
    text = None if options.translations is None else options.translations.text.bitext.source
    return known_source_words(rules, CONVENTIONS[options.pieces], source, text)


def _check_copies(options: PriorOptions, background: Expression) -> None:
    if options.evidence is not None:
        raise OptionError(
            "--evidence: evidence is of whole words, and --copy-source-words spells them; leave one of them out"
        )
    if not (isinstance(background, Atom) and background.text.endswith(".words")):
        raise OptionError("--copy-source-words: it needs --background automaton:FILE.words; add that, or leave it out")


def _source_symbols(options: PriorOptions, path: Path | None) -> tuple[str, ...]:
    """The source dictionary's words: those given, of the parallel text, or of the only other dictionary beside `path`.

    () where nothing needs them. Raises OptionError: none or several; one that is not the parallel text's.
    """
    given, translations = options.source_dictionary, options.translations
    if options.evidence is None and not options.background_options.copy_source_words:
        return ()
    if given is not None:
        symbols = load_dictionary(given).symbols if isinstance(given, (str, Path)) else tuple(given)
        if translations is not None and symbols != translations.text.source_symbols:
            name = f" {given}" if isinstance(given, (str, Path)) else ""
            raise OptionError(
                f"--source-dict{name}: expected the words of the source side of --lexical-translation, found others; "
                "leave it out"
            )
        return symbols
    if translations is not None:
        return translations.text.source_symbols
    others = [] if path is None else [p for p in path.parent.glob("dict.*.txt") if p.name != path.name]
    if len(others) != 1:
        option = "--copy-source-words" if options.background_options.copy_source_words else "--evidence"
        found = ", ".join(sorted(other.name for other in others)) or "none"
        raise OptionError(
            f"{option}: expected one other dict.*.txt beside --dict {path}, the source's, found {found}; give it as "
            "--source-dict"
        )
    return load_dictionary(others[0]).symbols
