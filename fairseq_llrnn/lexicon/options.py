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
from fairseq_llrnn.lexicon.languages.language_source import LEMMA_FLOOR, Spelling, installed_sources
from fairseq_llrnn.lexicon.languages.names import language_code
from fairseq_llrnn.lexicon.lexicon_table import Table
from fairseq_llrnn.lexicon.morphemes import MORPHEME_FLOOR
from fairseq_llrnn.lexicon.readers.apertium import find_analyser, find_program
from fairseq_llrnn.lexicon.readers.hunspell import rules_of
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
        Doc(
            "tables of `llrnn lexicon`, and lexicons: form, lemma, UPOS, FEATS (TSV, .gz too); NAME:FILE for a reader "
            "of another package (docs/guides/extending.md)"
        ),
    ] = ()
    unimorph: Annotated[Paths, Doc("UniMorph lexicons: lemma, form, tags such as N;ACC;PL (TSV, .gz too)")] = ()
    hunspell: Annotated[
        Paths,
        Doc(
            "dictionaries of hunspell, FILE.dic with FILE.aff in the same folder: lemmas, and affix rules that make "
            "their forms (in a prior: for translations between lemmas)"
        ),
    ] = ()
    apertium: Annotated[
        PathOrName | None,
        Doc(
            "a morphological analyser of Apertium for the words of the dictionary (it needs lt-proc): an installed "
            "mode, e.g. fra-cat, or the path of an *.automorf.bin"
        ),
    ] = None
    language: Annotated[
        str | None,
        Option("--language", GROUP, "CODE"),
        Doc(
            "use installed packages for this language, e.g. uk, ukr or Ukrainian: analyses and lemmas as features, and "
            "frequencies for the background `language`. `--language list` prints the languages and their packages "
            "(extra `languages`; docs/guides/features-and-lexicons.md)"
        ),
    ] = None
    lemma_floor: Annotated[
        int, Ge(1), Doc("with `language`: least number of dictionary words with a lemma, for it to be a feature")
    ] = LEMMA_FLOOR
    values: Annotated[Paths, Doc("real-valued features of words (TSV: word, Group:Value, number)")] = ()
    morphemes: Annotated[
        PathOrName | Mapping[str, Sequence[str]] | None,
        Doc(
            f"add morphemes with their place (Prefix:un, Stem:happy, Ending:ness): `{MORFESSOR}` learns them from the "
            "words and their counts (it needs the extra `morphemes`); a FILE contains words cut into segments by any "
            "tool (word, tab, segments with blanks between; or only the segments)"
        ),
    ] = None
    morpheme_floor: Annotated[
        int, Ge(1), Doc("least number of word types in the counted text with a morpheme, for it to be a feature")
    ] = MORPHEME_FLOOR
    guess: Annotated[
        Literal["auto", "on", "off"],
        Doc(
            "guess the features of words without an analysis from the spelling of analysed words, as often in training "
            "as in use; auto: if the sources cover the counted text better than the other words of the dictionary"
        ),
    ] = "auto"
    keep_case: Annotated[
        bool,
        Doc(
            "the text has capitals: do not lower-case the forms of treebanks and lexicons, and look words up in "
            "Apertium unchanged (without this, `lyon` is looked up as Lyon and LYON, too)"
        ),
    ] = False
    lower: Annotated[
        str | None,
        Doc(
            "the text was lower-cased by the rules of this language: tr or az (İ becomes i, I becomes ı), lt; lower-"
            "case the words of these files in the same way (all other languages need no code)"
        ),
    ] = None
    normalize: Annotated[
        Literal["nfc", "nfd"] | None,
        Doc(
            "the text is in this Unicode form; convert the words of these files to it: nfc (é is one character) or nfd "
            "(e and a mark), which look alike (default: unchanged)"
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
                f"{option_name('lower')} {self.lower} excludes {option_name('keep_case')}; leave one of them out"
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
