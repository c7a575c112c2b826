"""The contract of a source of knowledge about languages: a package that ships its data.

A source says which languages it knows, what has to be installed for them, and under which licence its data are:

    @register_source
    class Lemmas(LanguageSource):
        name = "simplemma"
        gives = "lemmas"
        codes = {"hu": "hu", …}

        def licence(self, code): return "MIT; …"
        def read(self, words, spelling): …

A source of features gives words with theirs (`FeatureSource.read`), one of frequencies weights
(`FrequencySource.frequencies`). Its package is imported when it is asked for words, not before. A further source is
one file here, named in __init__.py.
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from fairseq_llrnn.errors import OptionError, from_checkout
from fairseq_llrnn.files.text_lines import ReadCount, in_form
from fairseq_llrnn.lexicon.casing import lower
from fairseq_llrnn.lexicon.features import Lexicon

LONGEST_WORD = 100  # some analysers take all too long for what is no word
TOO_LONG, UNKNOWN = f"of more than {LONGEST_WORD} letters", "that it does not know"


def is_installed(package: str) -> bool:
    """Whether a package is there, by the name by which pip knows it."""
    return importlib.util.find_spec(package.replace("-", "_")) is not None


@dataclass(frozen=True)
class Spelling:
    """How the words that are asked for are spelled."""

    lowercase: bool  # whether they come from lower-cased text: names have lost their capitals
    # the language by whose rules it was lower-cased, where it has rules of its own (casing.py)
    rules: str | None = None

    form: str | None = None  # of files/text_lines.py; None: as words are

    def cased(self, word: str) -> str:
        """A word of the source in the case of the text."""
        return lower(word, self.rules) if self.lowercase else word

    def of_text(self, word: str) -> str:
        """A word of the source as the text has it."""
        return self.cased(in_form(word, self.form))


class LanguageSource(ABC):
    """A package, and what it knows of which languages (module docstring)."""

    name: ClassVar[str]  # of the package
    gives: ClassVar[str]  # in "simplemma (lemmas)"
    codes: ClassVar[Mapping[str, str]]  # of names.py -> those of the package

    def packages(self, code: str) -> Sequence[str]:
        """What has to be installed for a language, by the names by which pip knows it; the first has the version."""
        return (self.name,)

    @abstractmethod
    def licence(self, code: str) -> str:
        """Of the program; of its data: `MIT; data: OpenCorpora (CC BY-SA 3.0)`. Semicolons part what fits a line."""

    def listed(self, code: str) -> Iterator[tuple[str, str]]:
        """Pairs of a form and its lemma, all that it lists of a language, spelled as it spells them; most list none."""
        yield from ()

    def missing(self, code: str) -> list[str]:
        """The packages that are not installed."""
        return [package for package in self.packages(code) if not is_installed(package)]

    def need(self, code: str, option: str) -> None:
        """Raise OptionError, with the line for pip, where something is not installed."""
        if missing := self.missing(code):
            raise OptionError(
                f"{option}: expected the package {missing[0]}, found that it is not installed; {pip_line(missing)}"
            )


class FeatureSource(LanguageSource):
    """One that knows features of words."""

    is_guessable: ClassVar[bool] = True  # whether the features of words that it lacks can be guessed from their endings

    @abstractmethod
    def read(self, words: Sequence[str], code: str, spelling: Spelling) -> Iterator[tuple[str, Iterable[str]]]:
        """Those of the words that it knows, each with features, all of them at once or not."""

    def lookup(self, words: Sequence[str], code: str, spelling: Spelling) -> Lexicon:
        """As `read`, of words in any Unicode form, where packages have NFC; far too long ones are left out."""
        count, lexicon = ReadCount(self.name, "words", None, len(words)), Lexicon()
        asked = {word: in_form(word, "nfc") for word in words if len(word) <= LONGEST_WORD}
        count.left_out[TOO_LONG] += len(words) - len(asked)
        answers = Lexicon()
        for word, features in self.read(list(dict.fromkeys(asked.values())), code, spelling):
            answers.add(word, features)
        for word, spelled in asked.items():
            if spelled in answers:
                lexicon.add(word, answers.features(spelled))
                count.read += 1
            else:
                count.left_out[UNKNOWN] += 1
        count.done()
        return lexicon


class FrequencySource(LanguageSource):
    """One that knows how frequent words are."""

    @abstractmethod
    def frequencies(self, words: Sequence[str], code: str) -> np.ndarray:
        """(n,) between 0 and 1, of the words' tokens in its texts; 0 for a word that it lacks."""

    @abstractmethod
    def all_frequencies(self, code: str) -> Mapping[str, float]:
        """All words that it lists, spelled as it spells them, with their frequencies."""

    def spelled(self, word: str, code: str) -> str:
        """A word as it spells it, in lower case if it lists no other."""
        return word

    @abstractmethod
    def least(self, code: str) -> float:
        """The frequency of the rarest word that it lists."""


SOURCES: dict[str, LanguageSource] = {}
SourceType = TypeVar("SourceType", bound=type[LanguageSource])


def register_source(source: SourceType) -> SourceType:
    """Make a source known, by its name."""
    SOURCES[source.name] = source()
    return source


def sources_of(code: str) -> list[LanguageSource]:
    """Those that know a language, in the order of their registration."""
    return [source for source in SOURCES.values() if code in source.codes]


def pip_line(distributions: Sequence[str]) -> str:
    """What a user types."""
    return f"install it with pip install {' '.join(distributions)} (all of them: {from_checkout('languages')})"
