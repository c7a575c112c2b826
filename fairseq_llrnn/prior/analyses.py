"""The lexicon that a prior is built from: the analyses of words, and numbers that users give beside them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np

from fairseq_llrnn import registry
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.features.subwords import PieceText
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.files.text_lines import in_form
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.language_check import words_in_both, words_known
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers import (
    read_apertium,
    read_conllu,
    read_tsv_lexicon,
    read_unimorph,
    read_values,
)
from fairseq_llrnn.prior.guessing import Completed, complete
from fairseq_llrnn.prior.recipe import Recipe

READERS: Mapping[str, Callable[..., Lexicon]] = {  # by the option that names their files
    "conllu": read_conllu,
    "lexicon": read_tsv_lexicon,
    "unimorph": read_unimorph,
}


def read_analyses(options: LexiconOptions, ordinary: Collection[str], shown: Collection[str]) -> Lexicon:
    """The features of words that treebanks, lexicons and analysers have.

    Args:
        ordinary: words of the dictionary, or, where it holds pieces, of the text. shown: those that the text has.
    """
    lexicon = Lexicon()
    given, spelling = options.lexicon, options.spelling
    lowercase, language = spelling.lowercase, spelling.rules
    for option, path in options.word_files:
        reader, file = _reader(option, path)
        read = reader(file, lowercase=lowercase, language=language, form=spelling.form)
        read.notes.update(words_in_both(f"--{option} {path}", read, shown))
        lexicon.update(read)
    if isinstance(given, Lexicon):
        lexicon.update(given)
    elif isinstance(given, Mapping):
        for word, features in given.items():
            lexicon.add(word, features)
    if options.apertium is not None:
        read = read_apertium(ordinary, analyser=options.apertium, lowercase=lowercase, language=language)
        read.notes.update(words_known(f"--apertium {options.apertium}", len(read), len(ordinary)))
        lexicon.update(read)
    return lexicon


def _reader(option: str, path: str) -> tuple[Callable[..., Lexicon], str]:
    """Who reads a file, and which: `--lexicon NAME:FILE` names a reader of another package (registry.py)."""
    name, _, file = path.partition(":")
    place = registry.names("readers").get(name) if option == "lexicon" and file else None
    if place is None:
        return READERS[option], path
    read = registry.load(place)

    def in_its_form(file: str, *, lowercase: bool, language: str | None, form: str | None) -> Lexicon:
        theirs, found = read(file, lowercase=lowercase, language=language), Lexicon()
        for word in theirs:
            found.add(in_form(word, form), theirs.features(word))
        found.notes.update(theirs.notes)
        return found

    return in_its_form, file


def complete_analyses(
    analyses: Lexicon,
    options: Recipe,
    words: WordList,
    counts: np.ndarray,
    all_counts: Mapping[str, int],
    text: PieceText | None,
    package: Lexicon,
) -> Completed:
    """The lexicon with guesses; over pieces, of the words of the text, since pieces have no analyses of their own.

    Args:
        package: the analyses of --language.
        counts: (V,). all_counts: of words outside the dictionary as well, where an open vocabulary needs them.
    """
    mode = options.words.guess
    if options.pieces is not None:
        nothing = np.zeros(len(words), dtype=bool)
        return complete(analyses, words, counts, nothing, mode, () if text is None else text.words(), package)
    return complete(analyses, words, counts, ~words.specials, mode, all_counts, package)


def read_numbers(options: LexiconOptions, shown: Collection[str] = ()) -> Lexicon:
    """The features of --values. shown: the words of the text."""
    lexicon, spelling = Lexicon(), options.spelling
    for path in as_paths(options.values):
        read = read_values(path, lowercase=spelling.lowercase, language=spelling.rules, form=spelling.form)
        read.notes.update(words_in_both(f"--values {path}", read, shown))
        lexicon.update(read)
    return lexicon


def with_values(lexicon: Lexicon, *never_guessed: Lexicon) -> Lexicon:
    """A lexicon's features and those that are never guessed; the lexicon itself stays as it is."""
    if not any(map(len, never_guessed)):
        return lexicon
    united = Lexicon()
    for one in (lexicon, *never_guessed):
        united.update(one)
    return united
