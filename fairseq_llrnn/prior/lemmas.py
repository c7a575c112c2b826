"""The lemmas of words of either side, for translations between lemmas (translations.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from fairseq_llrnn.alignment.translation_table import is_word
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.casing import is_lower
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.lexicon.languages import language_code
from fairseq_llrnn.lexicon.lemmas import Lemmas, LemmaSources
from fairseq_llrnn.lexicon.named_places import split_place
from fairseq_llrnn.lexicon.word_forms import KINDS
from fairseq_llrnn.prior.recipe import Recipe

OPTION = "--lexical-units lemma"
SOURCE_OPTION = "--lexical-source-lemmas"
# as readers/lemma_rows.py calls them
FILES = {"lexicon": "lexicon", "unimorph": "unimorph", "treebank": "conllu", "hunspell": "hunspell"}
PLACES = {kind: KINDS[kind].shown for kind in FILES} | {"lemmas": "lemmas:CODE (e.g. lemmas:en)"}


def check_units(options: Recipe) -> None:
    """Raise OptionError for options that do not go together."""
    if options.translations is None:
        return
    places = options.translations.source_lemmas
    if options.pieces is not None and (places or options.translations.units == "lemma"):
        raise OptionError(
            f"{SOURCE_OPTION if places else OPTION}: lemmas are of whole words, found --pieces {options.pieces} beside "
            "it; preprocess words, or leave one of them out"
        )
    _sources(places, False)


def lemmas_of(
    options: Recipe, words: WordList, code: str | None, notes: Counter[str]
) -> list[Sequence[str]] | None:
    """The lemmas of every word (V,), guessed where no source has a word; None where translations are between words.

    Args:
        code: of --language. notes: takes in what a user should know.

    Raises:
        OptionError: nothing lists lemmas. DataError: as the readers do.
    """
    if options.translations is None or options.translations.units != "lemma":
        return None
    files = [*options.words.word_files, *(("hunspell", path) for path in as_paths(options.words.hunspell))]
    spelling, known = options.words.spelling, frozenset(words.ordinary)
    sources = LemmaSources(files, code, spelling.lowercase, spelling.rules, spelling.form, known)
    lemmas = Lemmas.read(sources, OPTION)
    told = [f" {path}" for _, path in options.words.word_files]  # features are read of them, too
    notes.update({remark: count for remark, count in lemmas.notes.items() if not any(path in remark for path in told)})
    return [() if special else lemmas.of(word) for word, special in zip(words.symbols, words.specials, strict=True)]


def source_lemmas_of(options: Recipe, notes: Counter[str]) -> list[Sequence[str]] | None:
    """The lemmas of every source word (U,), guessed where no source of lemmas has it; None where nobody asks for them.

    Raises:
        OptionError: places that are none, or list no lemmas. DataError: as the readers do.
    """
    if options.translations is None or not options.translations.source_lemmas:
        return None
    named = f"{SOURCE_OPTION} {' '.join(options.translations.source_lemmas)}"
    advice = "give lexicon:FILE, unimorph:FILE, treebank:FILE or hunspell:FILE.dic, or a package's lemmas:CODE"
    symbols = options.translations.text.source_symbols
    sources = _sources(options.translations.source_lemmas, is_lower(symbols))  # --keep-case is of the target
    sources = replace(sources, form=options.words.normalize, words=frozenset(symbols), option=SOURCE_OPTION)
    lemmas = Lemmas.read(sources, named, advice)
    notes.update(lemmas.notes)
    return [lemmas.of(symbol) if word else () for symbol, word in zip(symbols, is_word(symbols), strict=True)]


def files_of_source_lemmas(options: Recipe) -> list[str]:
    """The files among the places."""
    places = () if options.translations is None else options.translations.source_lemmas
    return [path for _, path in _sources(places, False).files]


def _sources(places: Sequence[str], lowercase: bool) -> LemmaSources:
    """What places name. Raises OptionError for what is none, and for two languages."""
    files, codes = [], []
    for named in places:
        kind, what = split_place(named, SOURCE_OPTION, PLACES)
        if kind == "lemmas":
            codes.append(language_code(what, f"{SOURCE_OPTION} {named}"))
        else:
            files.append((FILES[kind], what))
    if len(codes) > 1:
        raise OptionError(f"{SOURCE_OPTION}: expected one language, found {' and '.join(codes)}; leave one of them out")
    return LemmaSources(files, codes[0] if codes else None, lowercase)
