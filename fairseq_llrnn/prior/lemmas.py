"""The lemmas of a dictionary's words, for translations between lemmas (translations.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.casing import language_of
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.features.lemmas import Lemmas, LemmaSources
from fairseq_llrnn.features.lexicon import Lexicon
from fairseq_llrnn.prior.options import PriorOptions, as_paths

OPTION = "--lexical-units lemma"


def check_units(options: PriorOptions) -> None:
    """Raise OptionError for options that do not go together."""
    if options.translations is not None and options.translations.units == "lemma" and options.pieces is not None:
        raise OptionError(
            f"{OPTION}: lemmas are of whole words, found --pieces {options.pieces} beside it; preprocess words, or "
            "leave one of them out"
        )


def lemmas_of(options: PriorOptions, words: WordList, code: str | None) -> list[Sequence[str]] | None:
    """The lemmas of every word (V,), guessed where no source has a word; None where translations are between words.

    Args:
        code: of --language.

    Raises:
        OptionError: nothing lists lemmas. DataError: as the readers do.
    """
    if options.translations is None or options.translations.units != "lemma":
        return None
    lexicon = options.lexicon
    files = [
        *(("conllu", path) for path in as_paths(options.conllu)),
        *(("lexicon", path) for path in ([] if isinstance(lexicon, (Lexicon, Mapping)) else as_paths(lexicon))),
        *(("unimorph", path) for path in as_paths(options.unimorph)),
    ]
    lemmas = Lemmas.read(LemmaSources(files, code, not options.keep_case, language_of(options.lower)), OPTION)
    return [() if special else lemmas.of(word) for word, special in zip(words.symbols, words.specials, strict=True)]
