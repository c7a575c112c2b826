"""Merges all sources of the lexicon options into one table, and collects the forms of lemmas in tables.

`gather` makes the table that `llrnn lexicon` writes, and that priors are built from.

`WordForms` are used for terms and phrases: the forms of lemmas with their analyses. Lemmas and forms may be phrases. A
form may have several analyses under its lemma, each with features. The features of the form are their union.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairseq_llrnn import registry
from fairseq_llrnn.errors import DataError, LLRNNError
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.files.text_lines import form_of, in_form, shown
from fairseq_llrnn.lexicon.casing import is_lower
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.held_out import HeldOut
from fairseq_llrnn.lexicon.language_check import words_in_both
from fairseq_llrnn.lexicon.languages.findings import ask_packages
from fairseq_llrnn.lexicon.languages.language_source import Spelling
from fairseq_llrnn.lexicon.languages.names import language_code
from fairseq_llrnn.lexicon.lemmas import BY_ENDING, Lemmas
from fairseq_llrnn.lexicon.lexicon_table import GUESS, ReadRequest, Row, Table, as_features
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers import SOURCES
from fairseq_llrnn.lexicon.segments import morpheme_rows
from fairseq_llrnn.lexicon.unknown_word_features import TextWords, complete
from fairseq_llrnn.settings import file_of

PYTHON = "python"  # the source of mappings and lexicons from Python


def gather(options: LexiconOptions, text: TextWords | None = None, all_lemmas: bool = False) -> Table:
    """Read all sources of the options, and guess features of a text's words that they lack.

    Args:
        text: its words (None: read all words, and guess nothing).
        all_lemmas: whether to add the lemmas that packages list of other words.

    Raises:
        OptionError: options that exclude each other or lack another one.
        DataError: a file is missing or malformed.
    """
    options.check()
    code = None if options.language is None else language_code(options.language)
    table, shown = Table(), [] if text is None else text.shown
    words = None if text is None else list(dict.fromkeys((*text.counts, *text.others)))
    request = ReadRequest(options.spelling, words, table.notes, HeldOut() if text is None else text.held_out)
    for name, source in SOURCES.items():
        for place in places(options, name):
            forms = set()
            for row, count in _rows(name, place, request):
                table.add(row, count)
                if row.is_word:
                    forms.add(row.form)
            if text is not None:
                table.notes.update(words_in_both(place, forms, shown, source.is_lookup))
    if isinstance(options.lexicon, Table):
        for row, count in options.lexicon.rows.items():
            table.add(row, count)
    elif isinstance(options.lexicon, (Lexicon, Mapping)):
        for row in _mapping_rows(options.lexicon, PYTHON):
            table.add(row)
    table.notes.update(_likely_mistakes(table))
    text_words = text or TextWords(dict.fromkeys((row.form for row in table.rows if row.is_word), 0))
    for row in morpheme_rows(options, text_words, text is not None, table.notes):
        table.add(row)
    if code is not None:
        ask_packages(code, text_words, options, table, all_lemmas)
    if text is not None:
        complete(table, text, options.guess)
        if all_lemmas:
            for row in Lemmas.of_table(table).guessed(dict.fromkeys((*text.counts, *text.others))):
                table.add(row)
    return table


def _likely_mistakes(table: Table) -> Counter[str]:
    """Return notes on likely mistakes in tables: a feature in different case."""
    mistakes: Counter[str] = Counter()
    rows_with = Counter(name for row in table.rows for name, _ in row.features)
    usual: dict[str, str] = {}  # the most frequent spelling of a name
    ranked = sorted(rows_with, key=lambda name: (-rows_with[name], name))
    variants = [name for name in ranked if usual.setdefault(name.lower(), name) != name]
    if variants:
        pair = f"{variants[0]} and {usual[variants[0].lower()]}"
        note = f"rows with features in different case, such as {pair}: they are two features; spell them alike"
        mistakes[note] = sum(rows_with[name] for name in variants)
    return mistakes


def places(options: LexiconOptions, name: str) -> list[str]:
    """Return the files, or the analyser, that an option names."""
    value = getattr(options, name)
    return [] if value is None or isinstance(value, (Lexicon, Mapping, Table)) else as_paths(value)


def _rows(name: str, place: str, request: ReadRequest) -> Iterator[tuple[Row, int]]:
    """Yield the rows of a place. `--lexicon NAME:FILE` names a reader of another package."""
    module, file = file_of("--lexicon", place) if name == "lexicon" else (None, place)
    if module is None:
        yield from SOURCES[name].read(place, request)
        return
    spelling, reader = request.spelling, place.partition(":")[0]
    lexicon = _lexicon_of(registry.load(module), reader, file, spelling)
    request.notes.update(lexicon.notes)
    for row in _mapping_rows(lexicon, reader):
        yield row._replace(form=in_form(row.form, spelling.form)), 0


def _lexicon_of(read: Callable[..., object], reader: str, file: str, spelling: Spelling) -> Lexicon:
    """Return the lexicon that a reader of another package returns. Raises DataError with the file for any error."""
    try:
        lexicon = read(file, lowercase=spelling.lowercase, language=spelling.rules)
    except LLRNNError as error:
        if str(error).startswith(file):
            raise
        raise DataError(f"{file}: {error}", path=file) from error
    except Exception as error:  # another package may raise anything
        code = traceback.extract_tb(error.__traceback__)[-1]
        raise DataError(
            f"{file}: the reader {reader} raised {type(error).__name__}: {error} ({Path(code.filename).name}, line "
            f"{code.lineno}); expected a lexicon or DataError; correct the file or the reader",
            path=file,
        ) from error
    if not isinstance(lexicon, Lexicon):
        raise DataError(
            f"{file}: the reader {reader} returned {shown(repr(lexicon))}, expected a fairseq_llrnn.extend.Lexicon; "
            "correct the reader"
        )
    return lexicon


def _mapping_rows(mapping: Lexicon | Mapping[str, Iterable[str]], source: str) -> Iterator[Row]:
    """Yield rows of a lexicon from Python or from a reader of another package. Raises DataError for unsound entries."""
    lexicon = mapping if isinstance(mapping, Lexicon) else Lexicon(mapping)
    for word in lexicon:
        yield Row(word, features=as_features(lexicon.features(word)), source=source)


class WordForms:
    """lemma -> its forms with their analyses, in order of insertion."""

    def __init__(self) -> None:
        self._forms: dict[str, dict[str, list[tuple[str, ...]]]] = {}
        self.notes: Counter[str] = Counter()  # remarks with numbers of words
        self._shared: dict[tuple[str, ...], tuple[str, ...]] = {}  # equal analyses are one object

    def add(self, lemma: str, form: str, features: Iterable[str] = ()) -> None:
        """Add a form, and its analysis unless it has no feature."""
        analyses, names = self._forms.setdefault(lemma, {}).setdefault(form, []), tuple(dict.fromkeys(features))
        if names and names not in analyses:
            analyses.append(self._shared.setdefault(names, names))

    def of(self, lemma: str) -> Mapping[str, Mapping[str, float]]:
        """Return the forms of a lemma, each with the features of all its analyses, or none for an unknown lemma."""
        analyses = self._forms.get(lemma, {})
        return {form: {name: 1.0 for names in sets for name in names} for form, sets in analyses.items()}

    def strings(self, lemma: str) -> Iterable[str]:
        """Return the forms of a lemma without features."""
        return self._forms.get(lemma, {}).keys()

    def analyses(self, lemma: str, form: str) -> Sequence[tuple[str, ...]]:
        """Return the features of each analysis of a form, or none if it is unknown."""
        return self._forms.get(lemma, {}).get(form, ())

    def __iter__(self) -> Iterator[str]:
        return iter(self._forms)

    def __len__(self) -> int:
        return len(self._forms)


def read_word_forms(paths: Sequence[str], words: Collection[str]) -> WordForms:
    """Read the forms of several tables.

    Args:
        words: of the text. They determine the spelling of forms and lemmas.

    Raises:
        DataError: a malformed file, with line.
    """
    word_forms, spelling = WordForms(), Spelling(is_lower(words), form=form_of(words))
    for path in paths:
        form: Any = spelling.form
        options = LexiconOptions(lexicon=path, keep_case=not spelling.lowercase, normalize=form)
        forms = set()
        for row, spelled in ((row, spelling.of_text(row.form)) for row in gather(options).rows):
            forms.update(spelled.split())
            if row.lemma and row.source not in (GUESS, BY_ENDING):
                word_forms.add(spelling.of_text(row.lemma), spelled, (name for name, _ in row.features))
        word_forms.notes.update(words_in_both(path, forms, words))
    return word_forms
