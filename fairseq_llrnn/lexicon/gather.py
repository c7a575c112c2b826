"""All that the options of a lexicon name, in one table: what `llrnn lexicon` writes, and priors are built from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fairseq_llrnn import registry
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.files.text_lines import in_form
from fairseq_llrnn.lexicon.completion import TextWords, complete
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.language_check import words_in_both
from fairseq_llrnn.lexicon.languages import language_code
from fairseq_llrnn.lexicon.languages.findings import ask_packages
from fairseq_llrnn.lexicon.lemmas import Lemmas
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers import ANSWERING, READERS
from fairseq_llrnn.lexicon.segments import morpheme_rows
from fairseq_llrnn.lexicon.table import Asked, Row, Table, as_features
from fairseq_llrnn.settings import file_of

PYTHON = "python"  # the source of what a program gives


def gather(options: LexiconOptions, text: TextWords | None = None, all_lemmas: bool = False) -> Table:
    """Read and ask all that is named, and guess what a text needs and nobody knows.

    Args:
        text: its words; None: all that is listed, and nothing is guessed.
        all_lemmas: whether lemmas that packages list of other words are wanted, too.

    Raises:
        OptionError, DataError: options that do not go together, files that are not what they should be.
    """
    options.check()
    code = None if options.language is None else language_code(options.language)
    table, shown = Table(), [] if text is None else text.shown
    words = None if text is None else list(text.counts or text.others)
    asked = Asked(options.spelling, words, table.notes)
    for name in READERS:
        for place in places(options, name):
            forms = set()
            for row, count in _rows(name, place, asked):
                table.add(row, count)
                if row.is_word:
                    forms.add(row.form)
            if text is not None:
                table.notes.update(words_in_both(place, forms, shown, name in ANSWERING))
    if isinstance(options.lexicon, Table):
        for row, count in options.lexicon.rows.items():
            table.add(row, count)
    elif isinstance(options.lexicon, (Lexicon, Mapping)):
        for row in _of_mapping(options.lexicon, PYTHON):
            table.add(row)
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


def places(options: LexiconOptions, name: str) -> list[str]:
    """What an option of a reader names: files, an analyser."""
    value = getattr(options, name)
    return [] if value is None or isinstance(value, (Lexicon, Mapping, Table)) else as_paths(value)


def _rows(name: str, place: str, asked: Asked) -> Iterator[tuple[Row, int]]:
    """`--lexicon NAME:FILE` names a reader of another package."""
    theirs, file = file_of("--lexicon", place) if name == "lexicon" else (None, place)
    if theirs is None:
        yield from READERS[name](place, asked)
        return
    spelling = asked.spelling
    lexicon: Lexicon = registry.load(theirs)(file, lowercase=spelling.lowercase, language=spelling.rules)
    asked.notes.update(lexicon.notes)
    for row in _of_mapping(lexicon, place.partition(":")[0]):
        yield row._replace(form=in_form(row.form, spelling.form)), 0


def _of_mapping(mapping: Lexicon | Mapping[str, Iterable[str]], source: str) -> Iterator[Row]:
    """What a program, or a reader of another package, knows of words. Raises DataError for what no lexicon has."""
    if isinstance(mapping, Lexicon):
        lexicon = mapping
    else:
        lexicon = Lexicon()
        for word, features in mapping.items():
            lexicon.add(word, features)
    for word in lexicon:
        yield Row(word, features=as_features(lexicon.features(word)), source=source)
