"""Sources of word features: the options of every command that reads treebanks and lexicons.

    LexiconOptions(conllu=["fr.conllu"], language="fr")

Files are given by one or several paths.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge
from typing_extensions import Doc

from fairseq_llrnn import defaults
from fairseq_llrnn.errors import OptionError, from_checkout
from fairseq_llrnn.files.reading import as_paths, check_there
from fairseq_llrnn.lexicon.casing import language_of
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.guessing import MORPHEME_FLOOR
from fairseq_llrnn.lexicon.languages.base import Spelling
from fairseq_llrnn.lexicon.languages.findings import LEMMA_FLOOR, installed_sources
from fairseq_llrnn.lexicon.languages.names import language_code
from fairseq_llrnn.lexicon.readers.apertium import find_analyser, find_program
from fairseq_llrnn.lexicon.readers.hunspell import rules_of
from fairseq_llrnn.lexicon.table import Table
from fairseq_llrnn.settings import OBJECT, Option, PathOrName, Paths, Places, Settings, check_needs

MORFESSOR = defaults.MORFESSOR
GROUP = "sources of word features"


@dataclass(frozen=True)
class LexiconOptions(Settings):
    """Files and packages with features of words, and the spelling of the text."""

    conllu: Annotated[Paths, Option("--conllu", GROUP, "FILE"), Doc("treebanks (CoNLL-U, .gz too)")] = ()
    lexicon: Annotated[
        Places | Annotated[Table, OBJECT] | Annotated[Lexicon, OBJECT] | Mapping[str, Any],
        Option("--lexicon", GROUP, "FILE"),
        Doc("tables of `llrnn lexicon`, and lexicons: form, lemma, UPOS, FEATS (TSV, .gz too)"),
    ] = ()
    unimorph: Annotated[
        Paths, Doc("lexicons of UniMorph: lemma, form, tags such as N;ACC;PL (TSV, .gz too)")
    ] = ()
    hunspell: Annotated[
        Paths,
        Doc(
            "dictionaries of hunspell, FILE.dic with FILE.aff beside it, whose words are lemmas of the forms that "
            "their affix rules make (of a prior: for translations between lemmas)"
        ),
    ] = ()
    apertium: Annotated[
        PathOrName | None,
        Doc(
            "a morphological analyser for the words of the dictionary, through lt-proc: an installed mode, e.g. "
            "fra-cat, or the path of an *.automorf.bin"
        ),
    ] = None
    language: Annotated[
        str | None,
        Option("--language", GROUP, "CODE"),
        Doc(
            "what packages know of the words of this language, e.g. uk, ukr or Ukrainian: analyses and lemmas as "
            "features, and frequencies for the background `language`; `--language list` prints the languages and their "
            "packages (extra `languages`; docs/guides/features-and-lexicons.md)"
        ),
    ] = None
    lemma_floor: Annotated[
        int, Ge(1), Doc("of `language`: how many words of the dictionary must share a lemma, for it to be a feature")
    ] = LEMMA_FLOOR
    values: Annotated[Paths, Doc("real-valued features of words (TSV: word, Group:Value, number)")] = ()
    morphemes: Annotated[
        PathOrName | Mapping[str, Sequence[str]] | None,
        Doc(
            f"add morphemes with their place (Prefix:un, Stem:happy, Ending:ness): `{MORFESSOR}` learns them from the "
            "words and their counts (it needs the extra `morphemes`); a FILE has words cut into segments by any tool "
            "(word, tab, segments with blanks between; or the segments alone)"
        ),
    ] = None
    morpheme_floor: Annotated[
        int, Ge(1), Doc("how many word types of the counted text must share a morpheme, for it to be a feature")
    ] = MORPHEME_FLOOR
    guess: Annotated[
        Literal["auto", "on", "off"],
        Doc(
            "guess the features of words that treebanks, lexicons and analysers lack, from the endings of the words "
            "that they have, and as often in training as in use; auto: where they cover the words of the counted text "
            "better than the dictionary's others"
        ),
    ] = "auto"
    keep_case: Annotated[
        bool,
        Doc(
            "the text has capitals: do not lower-case the forms of treebanks and lexicons, and give Apertium the words "
            "as they are (without this, `lyon` is looked up as Lyon and LYON, too)"
        ),
    ] = False
    lower: Annotated[
        str | None,
        Doc(
            "the text was lower-cased by the rules of this language: tr or az (İ becomes i, I becomes ı), lt; so are "
            "the words of these files then (all other languages need none)"
        ),
    ] = None
    normalize: Annotated[
        Literal["nfc", "nfd"] | None,
        Doc(
            "the text is in this Unicode form; so are the words of these files then: nfc (é is one character) or nfd "
            "(e with a mark behind it), which look alike (default: as they are)"
        ),
    ] = None

    def check(self, option_name: Callable[[str], str] = str) -> None:
        """Check options before any file is read.

        Args:
            option_name: as in `settings.checked`.

        Raises:
            OptionError: options that exclude each other, or that need a package which is not installed.
            DataError: a program, an analyser or a file is missing.
        """
        language_of(self.lower, option_name("lower"))
        if self.lower is not None and self.keep_case:
            raise OptionError(
                f"{option_name('lower')} {self.lower}: found {option_name('keep_case')} beside it; "
                "leave one of them out"
            )
        check_needs(self, {"lemma_floor": "language", "morpheme_floor": "morphemes"}, option_name)
        if self.language is not None:
            installed_sources(language_code(self.language))
        if self.apertium is not None:
            find_program()
            find_analyser(self.apertium, option_name("apertium"))
        for path in as_paths(self.hunspell):
            rules_of(path, option_name("hunspell"))
        if isinstance(self.morphemes, (str, Path)):
            _check_segmenter(self.morphemes, option_name("morphemes"))

    @property
    def spelling(self) -> Spelling:
        """The spelling of words in the text."""
        return Spelling(not self.keep_case, language_of(self.lower), self.normalize)


def _check_segmenter(segmenter: str | Path, option_name: str) -> None:
    """Raise OptionError if Morfessor is not installed or is misspelt, DataError for a missing file."""
    if segmenter == MORFESSOR:
        if find_spec("morfessor") is None:
            raise OptionError(
                f"{option_name} {MORFESSOR}: expected the package Morfessor, found none; {from_checkout('morphemes')}, "
                "or give a FILE of words cut into segments"
            )
        return
    if not os.path.exists(segmenter) and get_close_matches(Path(segmenter).name, [MORFESSOR]):
        raise OptionError(
            f"{option_name} {segmenter}: expected {MORFESSOR} or a file, found neither; did you mean {MORFESSOR}?"
        )
    check_there(option_name, segmenter)
