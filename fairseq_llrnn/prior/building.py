"""Builds a prior from files or objects, for `llrnn prior` and `build_prior`:

dictionary, counts, lexicon  ->  features and b₀ (base_prior.py)  ->  backgrounds (background_terms.py)
    ->  open vocabulary  ->  lexical translations, words that need evidence, evidence
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fairseq_llrnn.alignment.aligners import choose_aligner
from fairseq_llrnn.alignment.binarized_bitext import read_bitext
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import SPECIALS, UNK, WordList, check_order, count_words, load_dictionary
from fairseq_llrnn.features.spelling_features import UserPatterns
from fairseq_llrnn.features.subwords import CONVENTIONS, PieceText
from fairseq_llrnn.features.text_check import TextCheck
from fairseq_llrnn.files.numbers import LARGEST_COUNT
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.files.text_lines import other_forms, warn_of_forms
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.held_out import HeldOut
from fairseq_llrnn.lexicon.language_check import is_warning, unknown_remark
from fairseq_llrnn.lexicon.languages.names import language_code
from fairseq_llrnn.lexicon.lexicon_table import GUESS, Table
from fairseq_llrnn.lexicon.merge_sources import gather
from fairseq_llrnn.lexicon.readers import SOURCES
from fairseq_llrnn.lexicon.unknown_word_features import TextWords, of_package
from fairseq_llrnn.prior.background_terms import (
    check_background,
    is_static,
    named_in,
    read_background,
    read_part,
    registered,
    with_names,
)
from fairseq_llrnn.prior.base_prior import plain_prior
from fairseq_llrnn.prior.expression import Atom, Expression, atoms, with_atoms
from fairseq_llrnn.prior.held_out_texts import read_held_out
from fairseq_llrnn.prior.named_backgrounds import Inputs, OpenModel
from fairseq_llrnn.prior.origins import origins_of
from fairseq_llrnn.prior.parts.automaton_part import AutomatonPart
from fairseq_llrnn.prior.parts.evidence_part import (
    add_evidence,
    check_unsupported,
    rules_of,
    source_symbols,
    source_vocabulary_of,
    spelled_words,
)
from fairseq_llrnn.prior.parts.guesses import GuessesPart
from fairseq_llrnn.prior.parts.languages import part_of, with_codes
from fairseq_llrnn.prior.parts.lexical import add_translations, check_translations, lemmas_of, source_lemmas_of
from fairseq_llrnn.prior.parts.open_vocabulary import add_open_vocabulary, read_lists
from fairseq_llrnn.prior.parts.static import StaticPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.prior.spelling_check import notes_of_spelling
from fairseq_llrnn.settings import check_files, checked

Dictionary = WordList | Sequence[str] | str | Path
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class BuildResult:
    """A prior, its dictionary and counts, and notes for the user with their counts."""

    prior: Prior
    words: WordList
    counts: np.ndarray  # (V,)
    notes: Counter[str]
    table: Table  # lexical features of words


def build_prior(dictionary: Dictionary, recipe: Recipe | None = None) -> Prior:
    """Build a prior from files or objects, as `llrnn prior` does, and log the warnings among its notes.

        words = LexiconOptions(conllu=["fr.conllu"])
        build_prior("data-bin/dict.txt", Recipe(text="train.txt", words=words, suffixes=5))

    Args:
        dictionary: a dict.txt of fairseq-preprocess, or V symbols, the first of which are <s>, <pad>, </s>, <unk>.

    Raises:
        OptionError: options that exclude each other or lack another one.
        DataError: a file is missing or malformed.
    """
    built = build(dictionary, recipe)
    for remark in filter(is_warning, built.notes):
        logger.warning(f"{built.notes[remark]:,} {remark}")
    return built.prior


def build(
    dictionary: Dictionary,
    recipe: Recipe | None = None,
    open_model: OpenModel | None = None,
    option_name: Callable[[str], str] = str,
) -> BuildResult:
    """Build a prior.

    All options and the existence of files are checked before any text is read.

    Args:
        dictionary: a dict.txt of fairseq-preprocess, or the V symbols, beginning with those of fairseq.
        open_model: reads other trained models, for `model:FILE`.
        option_name: as in `settings.checked`.

    Raises:
        OptionError: options that exclude each other or lack another one.
        DataError: a file is missing or malformed.
    """
    options = checked(Recipe, recipe or Recipe(), option_name)
    options.check(option_name)
    path = Path(dictionary) if isinstance(dictionary, (str, Path)) else None
    check_files(stored_recipe := replace(options, dictionary=path), option_name)
    words = _words(dictionary)
    if options.translations is not None:
        choose_aligner(options.translations.aligner)
    if options.labels:
        _check_of_labels(options)
        words = replace(words, are_labels=True)
    code = None if options.words.language is None else language_code(options.words.language)
    background, patterns = with_codes(read_background(options.background), code), _patterns(options)
    below = with_codes(_static_term(options, background), code)
    assert isinstance(below, Atom)
    evidence = rules_of(options, patterns)
    check_translations(options.translations, background)
    piece_texts, named = _texts_of_pieces(options, path, words, option_name), named_in(background)
    uses_source = evidence is not None or options.translations is not None
    needs_source = uses_source or any(entry.part.needs_source for _, entry in named)
    if options.source_dictionary is not None and not needs_source:
        raise OptionError(
            "source_dictionary: it needs translations, evidence or a background that uses the source; add one of "
            "them, or leave it out"
        )
    check_background(background, as_paths(options.text), open_model is not None)
    if options.translations is not None and isinstance(options.translations.data, (str, Path)):
        bitext = read_bitext(str(options.translations.data), str(path or "the dictionary"), words)
        options = replace(options, translations=replace(options.translations, data=bitext))
    source_option = f"--background {options.background}" if evidence is None else "--evidence"
    source = source_symbols(options, path, source_option) if needs_source else ()
    if evidence is not None and evidence.mapping:
        warn_of_forms("evidence.mapping", evidence.mapping, source)
        targets = (word for entry_words in evidence.mapping.values() for word in entry_words)
        warn_of_forms("evidence.mapping", targets, words.symbols)
    source_vocabulary = None if evidence is None else source_vocabulary_of(options, source)
    text = PieceText.read(piece_texts, CONVENTIONS[str(options.pieces)], options.workers) if piece_texts else None
    check, held_out = TextCheck(words.ordinary), HeldOut() if path is None else read_held_out(path, words)
    counts, all_counts = _both_counts(options, words, check, held_out)
    target_words = None if evidence is None else spelled_words(options, evidence, text)
    text_words = _text_words(options, words, counts, all_counts, text, held_out)
    table = gather(options.words, text_words, options.between_lemmas)
    lexicon, morphemes = table.lexicon(), None if options.pieces else table.morphemes()  # morphemes need whole words
    for_source = evidence is not None and "patterns" in evidence.kinds
    origins = origins_of(options, background, code)
    prior, notes = plain_prior(
        words, counts, lexicon, options, patterns, origins, text, for_source, morphemes, below,
    )  # fmt: skip
    notes.update(table.notes)
    notes.update(_notes_of_texts(options, words, check))
    notes.update(held_out.remarks())
    for beginning, is_listed in (
        (
            ("the lexicon has", lambda row: row.features and row.source != GUESS and not of_package(row)),
            ("words.values has", lambda row: row.source == "values"),
            ("words.morphemes has", lambda row: row.source == "morphemes"),
        )
        if text is None
        else ()
    ):
        listed = {row.form for row in table.rows if row.is_word and is_listed(row)}
        notes.update(notes_of_spelling(words, counts, listed, beginning, options.words))
    completed = table.completed
    assert completed is not None  # `gather` completes a table for a text
    entries = len(lexicon) - completed.added
    described = with_atoms(background, with_names)
    shown = described.text if isinstance(described, Atom) and not described.options else str(described)
    settings = {"background": shown, "lexicon_entries": entries, **({"labels": True} if options.labels else {})}
    prior = replace(prior, settings={**prior.settings, **settings})
    opened = options.open_vocabulary
    lexicon_places = [] if opened is None else as_paths(opened.lexicon)
    if (part := part_of(table, background, words, counts, lexicon_places)) is not None:
        prior = prior.with_part(part)
        for finding in {*part.findings} - {*(() if table.packages is None else table.packages.findings)}:
            notes.update(finding.notes)
    guessed = np.flatnonzero([word in completed.guessed for word in words.symbols])
    if len(guessed):
        prior = prior.with_part(GuessesPart(guessed, completed.groups, dict(completed.accuracy)))
    inputs = Inputs(words, counts, as_paths(options.text), None, open_model, options.workers, source)
    prior, more_notes = add_backgrounds(prior, background, inputs)
    notes.update(more_notes)
    if opened is not None:
        features = Lexicon(lexicon, morphemes) if morphemes else lexicon
        lists = read_lists(lexicon_places, options.words.spelling, option_name("open_vocabulary.lexicon"))
        prior = add_open_vocabulary(prior, words, all_counts, features, opened.floor, opened.types, opened.kind, lists)
    lemmas = lemmas_of(options, words, table), source_lemmas_of(options, notes)
    if options.translations is not None:
        prior, more_notes = add_translations(prior, options.translations, options.workers, *lemmas)
        notes.update(more_notes)
    if evidence is not None:
        notes.update(check_unsupported(prior, evidence))
        prior = add_evidence(prior, evidence, source, source_vocabulary, target_words)
    return BuildResult(replace(prior, recipe=stored_recipe), words, counts, notes, table)


def add_backgrounds(prior: Prior, expression: Expression, inputs: Inputs) -> tuple[Prior, Counter[str]]:
    """Return the prior with the backgrounds of an expression, and notes for the user with counts.

    b₀ becomes the root of the first n-grams, or else of the first automaton. A part with another root keeps its own.

    Args:
        prior: its b₀ is the first static background of the expression, or else the unigram.

    Raises:
        DataError, OptionError: as the readers do, and DataError for a sentence of probability zero.
    """
    leaves = [atom for atom, named in named_in(expression) if named.read is not None]
    if isinstance(expression, Atom) and is_static(expression.text):
        return prior, Counter()
    notes: Counter[str] = Counter()
    built = []
    for atom in leaves:
        part, more_notes = read_part(atom, prior, inputs)
        built.append(part)
        notes.update(more_notes)
    over_roots = [part for part in built if isinstance(part, AutomatonPart)]
    first = min(over_roots, key=lambda part: part.made_from != "ngram", default=None)
    combined = prior if first is None else replace(prior, log_weights=first.root_of(prior.log_weights))
    for part in built:
        if isinstance(part, AutomatonPart) and np.array_equal(part.root_of(prior.log_weights), combined.log_weights):
            part = replace(part, root=None)
        combined = combined.with_part(part, inputs.source_symbols if part.needs_source else None)
    if not isinstance(expression, Atom):
        names = iter(combined.names)
        combined = replace(combined, expression=with_atoms(expression, lambda atom: _add_part_name(atom, names)))
    return combined, notes


def _add_part_name(atom: Atom, names: Iterator[str]) -> Atom:
    """Return an atom with the name of its part. Translations get theirs later."""
    return atom if registered(atom.text).read is None else replace(with_names(atom), part=next(names))


# ---- what it is built from ------------------------------------------------------------------------------------------


def _check_of_labels(options: Recipe) -> None:
    """Raise OptionError for options of words in a text: a label has no context and no end of sentence."""
    for name, value in (
        ("--open-vocabulary", options.open_vocabulary),
        ("--evidence", options.evidence),
        ("--pieces", options.pieces),
    ):
        if value is not None:
            raise OptionError(f"--labels excludes {name}, which needs words of a text; leave one of them out")
    named = named_in(read_background(options.background))
    if not all(entry.part is StaticPart or entry.read is None for _, entry in named):
        raise OptionError(
            f"--background {options.background}: --labels needs a background without context (unigram, uniform or a "
            "TSV), since a label has none; to use the words of the text, add --lexical-translation"
        )


def _words(dictionary: Dictionary) -> WordList:
    """Return the dictionary. Raises DataError for a malformed one."""
    if isinstance(dictionary, (str, Path)):
        words = load_dictionary(dictionary)
    elif isinstance(dictionary, WordList):
        words = dictionary
        _check_counts("the dictionary's counts", words.counts, words)
    else:
        symbols = tuple(dictionary)
        for symbol in symbols:
            if not isinstance(symbol, str) or re.search(r"[ \t\r\n]", symbol):
                raise DataError(
                    f"the dictionary: expected words without blanks and line ends, found {symbol!r:.60}; "
                    "split the text with .split()"
                )
        words = WordList(symbols, np.zeros(len(symbols), dtype=np.int64))
    try:
        check_order(words.symbols)
    except ValueError as error:
        if isinstance(dictionary, (str, Path)):
            raise DataError(f"{dictionary}: {error}; run fairseq-preprocess again") from None
        raise DataError(f"the dictionary: {error}; put <s>, <pad>, </s>, <unk> first, and each word once") from None
    return words


def _check_counts(name: str, counts: np.ndarray, words: WordList) -> None:
    """Raise DataError unless these are V numbers from 0 to LARGEST_COUNT. `name` starts the message."""
    found = f"shape {counts.shape}"
    if counts.shape == (len(words),):
        is_number = np.issubdtype(counts.dtype, np.number) and not np.iscomplexobj(counts)
        is_count = (counts >= 0) & (counts <= LARGEST_COUNT) if is_number else np.zeros(len(words), dtype=bool)
        if is_count.all():
            return
        first = int(np.argmin(is_count))
        found = f"{counts[first]} for {words.symbols[first]!r}"
    raise DataError(
        f"{name}: expected {len(words):,} numbers from 0 to {LARGEST_COUNT:,}, one for each symbol, found {found}; "
        "count again"
    )


def _both_counts(
    options: Recipe, words: WordList, check: TextCheck, held_out: HeldOut
) -> tuple[np.ndarray, Mapping[str, int]]:
    """Return the counts of the dictionary (V,), and of all words of the text, which an open vocabulary needs.

    The text is read once. Words are counted one by one only for an open vocabulary.

    Args:
        check, held_out: they collect statistics of the text.
    """
    texts, all_counts, counts = as_paths(options.text), Counter[str](), options.counts
    if counts is not None:
        _check_counts("counts", counts, words)
    if texts and options.open_vocabulary is not None:
        all_counts, lines = count_words(texts, options.workers, held_out)
        counts = words.counts_of([(all_counts, lines)], check) if counts is None else counts
        check.warn(texts)
    elif texts and counts is None:
        counts = words.count_text(texts, options.workers, check, held_out)
    elif options.open_vocabulary is not None:
        vocabulary_counts = words.counts if counts is None else counts
        ordinary = zip(words.symbols, vocabulary_counts.tolist(), words.specials, strict=True)
        all_counts = Counter({symbol: count for symbol, count, special in ordinary if not special})
    if texts and counts is not None and not counts[~words.specials].any():
        reason = other_forms(", ".join(map(str, texts)), check.lacking, words.symbols)  # Korean in NFD
        if reason is not None:
            raise DataError(reason)
        raise DataError(
            f"{', '.join(texts)}: expected counts, found none for any word of the dictionary; give the text that the "
            "dictionary was made from, tokenised in the same way"
        )
    return words.counts_with_ends() if counts is None else counts, all_counts


def _notes_of_texts(options: Recipe, words: WordList, check: TextCheck) -> Counter[str]:
    """Return notes on unknown words of the texts. `check` has read the counted text."""
    notes, unk, is_open = Counter[str](), words.symbols.index(UNK), options.open_vocabulary is not None
    text = f"--count-text {' '.join(as_paths(options.text))}"
    notes.update(unknown_remark(text, check.unknown, check.words, is_open, check.explains_most()))
    if options.translations is not None:
        bitext, symbols = options.translations.parallel.bitext, options.translations.parallel.source_symbols
        for side, unknown in ((bitext.source, symbols.index(UNK)), (bitext.target, unk)):
            text_name = f"the {'source' if side is bitext.source else 'target'} side of --lexical-translation"
            notes.update(unknown_remark(text_name, int((side.tokens == unknown).sum()), len(side.tokens)))
    return notes


def _static_term(options: Recipe, background: Expression) -> Atom:
    """Return the expression of b₀."""
    static = [atom for atom in atoms(background) if is_static(atom.text)]
    if options.over is None:
        return static[0] if static else Atom("unigram")
    over = read_background(options.over, "over")
    if not isinstance(over, Atom) or not is_static(over.text) or background in static:
        raise OptionError(
            f"over {options.over}: expected a static background (unigram, uniform, a TSV) below another kind, found it "
            f"below {options.background}; correct it, or leave it out"
        )
    return over


def _text_words(
    options: Recipe, words: WordList, counts: np.ndarray, others: Mapping[str, int], text: PieceText | None,
    held_out: HeldOut,
) -> TextWords:  # fmt: skip
    """Return the words to look up in the lexicon: over pieces, those of the text. A `<unk>` of the text is no word."""
    if options.pieces is not None:
        return TextWords({}, [] if text is None else [word for word in text.words() if word not in SPECIALS], held_out)
    rows = zip(words.symbols, counts.tolist(), words.specials, strict=True)
    ordinary = {word: count for word, count, special in rows if not special}
    return TextWords(ordinary, [word for word in others if word not in SPECIALS], held_out)


def _patterns(options: Recipe) -> UserPatterns | None:
    patterns = options.patterns
    return patterns if patterns is None or isinstance(patterns, UserPatterns) else UserPatterns.load(str(patterns))


def _texts_of_pieces(
    options: Recipe, path: Path | None, words: WordList, option_name: Callable[[str], str]
) -> list[str]:
    """Return the texts whose words give pieces their features; [] for words, or if no option gives words features."""
    if options.pieces is None:
        return []
    convention, texts = CONVENTIONS[options.pieces], as_paths(options.text)
    convention.check_dictionary(str(path or "the dictionary"), words)
    sources = [*(name for name, source in SOURCES.items() if source.has_features), "language"]
    needing = [option_name(f"words.{name}") for name in sources if getattr(options.words, name)]
    needing += [option_name("suffixes")] * bool(options.suffixes)
    if needing and not texts:
        raise OptionError(
            f"--pieces {options.pieces}: {needing[0]} needs --count-text; add the training text in pieces, which "
            f"shows the words of each piece, or leave {' and '.join(needing)} out: a piece then has only the "
            "features of its own spelling"
        )
    return texts if needing else []
