"""The lemmas of words of either side, for translations between lemmas (translations.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fairseq_llrnn.alignment.translation_table import is_word
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.lexicon.casing import is_lower
from fairseq_llrnn.lexicon.completion import TextWords
from fairseq_llrnn.lexicon.gather import gather, places
from fairseq_llrnn.lexicon.lemmas import Lemmas
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers import READERS
from fairseq_llrnn.lexicon.table import Table
from fairseq_llrnn.lexicon.word_forms import check_table
from fairseq_llrnn.prior.recipe import Recipe

OPTION = "translations.units=lemma"
SOURCE_OPTION = "translations.source_lexicon"


def check_units(options: Recipe) -> None:
    """Raise OptionError for options that do not go together."""
    if options.translations is None:
        return
    paths = as_paths(options.translations.source_lexicon)
    if options.pieces is not None and (paths or options.translations.units == "lemma"):
        raise OptionError(
            f"{SOURCE_OPTION if paths else OPTION}: lemmas are of whole words, found --pieces {options.pieces} beside "
            "it; preprocess words, or leave one of them out"
        )
    for path in paths:
        check_table(path, SOURCE_OPTION)


def between_lemmas(options: Recipe) -> bool:
    """Whether translations are between lemmas."""
    return options.translations is not None and options.translations.units == "lemma"


def lemmas_of(options: Recipe, words: WordList, table: Table) -> list[Sequence[str]] | None:
    """The lemmas of every word (V,), guessed where no source has a word; None where translations are between words.

    Raises:
        OptionError: nothing lists lemmas.
    """
    if not between_lemmas(options):
        return None
    named = [place for name in READERS for place in places(options.words, name)]
    lemmas = Lemmas.of_table(table).check(OPTION, named)
    return [() if special else lemmas.of(word) for word, special in zip(words.symbols, words.specials, strict=True)]


def source_lemmas_of(options: Recipe, notes: Counter[str]) -> list[Sequence[str]] | None:
    """The lemmas of every source word (U,), guessed where no table has it; None where nobody asks for them.

    Args:
        notes: takes in what a user should know.

    Raises:
        OptionError: tables without lemmas. DataError: as the reader does.
    """
    if options.translations is None or not options.translations.source_lexicon:
        return None
    symbols, paths = options.translations.parallel.source_symbols, as_paths(options.translations.source_lexicon)
    asked, spelled = is_word(symbols), is_lower(symbols)  # keep_case is of the target
    known = LexiconOptions(lexicon=paths, guess="off", keep_case=not spelled, normalize=options.words.normalize)
    text = TextWords(dict.fromkeys((symbol for symbol, word in zip(symbols, asked, strict=True) if word), 1))
    table = gather(known, text)
    lemmas = Lemmas.of_table(table).check(SOURCE_OPTION, paths, "give tables of `llrnn lexicon`")
    notes.update({note.replace("--lexicon ", f"{SOURCE_OPTION} "): count for note, count in table.notes.items()})
    return [lemmas.of(symbol) if word else () for symbol, word in zip(symbols, asked, strict=True)]
