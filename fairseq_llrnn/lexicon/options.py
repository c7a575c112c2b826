"""Where knowledge of words comes from: the options of every command that reads treebanks and lexicons.

    LexiconOptions(conllu=["fr.conllu"], language="fr")

Names in capitals with `--` in messages are those of the command line. Files are paths, one or several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_llrnn import defaults
from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.files.reading import Paths
from fairseq_llrnn.files.text_lines import check_form
from fairseq_llrnn.lexicon.casing import check_casing, language_of
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.languages.base import Spelling
from fairseq_llrnn.lexicon.languages.findings import LEMMA_FLOOR
from fairseq_llrnn.lexicon.morphemes import MORPHEME_FLOOR
from fairseq_llrnn.lexicon.table import Table

MORFESSOR = defaults.MORFESSOR


@dataclass(frozen=True)
class LexiconOptions:
    """Files and packages that know words, and how the text spells these."""

    conllu: Paths = ()
    lexicon: Table | Lexicon | Mapping[str, Iterable[str]] | Paths = ()  # tables; form, lemma, UPOS, FEATS
    unimorph: Paths = ()
    hunspell: Paths = ()  # FILE.dic, whose forms have lemmas and no features
    apertium: str | None = None
    language: str | None = None  # whose packages are asked: a code or a name of lexicon/languages/names.py
    lemma_floor: int = LEMMA_FLOOR  # of `language`: dictionary words that must share a lemma
    values: Paths = ()
    morphemes: str | Path | Mapping[str, Sequence[str]] | None = None  # MORFESSOR; a file, or words, cut into segments
    morpheme_floor: int = MORPHEME_FLOOR  # word types of the text that must share a morpheme
    guess: str = defaults.GUESSING[0]  # of GUESSING: words without analyses
    keep_case: bool = False
    lower: str | None = None  # the language by whose rules forms are lower-cased; None: none in particular
    normalize: str | None = None  # the Unicode form of the text, in which the words of files are read

    def check(self) -> None:
        """Raise OptionError for options that are none, or do not go together."""
        check_casing(self.lower, self.keep_case)
        check_form(self.normalize)
        check_least("--morpheme-floor", self.morpheme_floor, 1, "word types")
        if self.guess not in defaults.GUESSING:
            raise OptionError(f"--guess {self.guess}: expected {', '.join(defaults.GUESSING)}; correct the spelling")

    @property
    def spelling(self) -> Spelling:
        """How the text spells words."""
        return Spelling(not self.keep_case, language_of(self.lower), self.normalize)
