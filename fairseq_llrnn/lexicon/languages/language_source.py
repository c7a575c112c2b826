"""The interface of a source of data about languages: a package that ships its data.

A source declares its languages, the packages to install for them, and the licence of its data:

    @register_source
    class Lemmas(FeatureSource):
        name = "simplemma"
        gives = "lemmas"
        codes = {"hu": "hu", …}

        def licence(self, code): return "MIT; …"
        def read(self, words, code, spelling): …

A source of features yields words with theirs (`FeatureSource.read`), a source of frequencies returns weights
(`FrequencySource.frequencies`). Its package is imported only when words are looked up. Another source is one file here,
listed in __init__.py.
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from fairseq_llrnn.errors import OptionError, from_checkout
from fairseq_llrnn.files.text_lines import ReadCount, in_form
from fairseq_llrnn.lexicon.casing import lower
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.language_check import few_words_remark
from fairseq_llrnn.lexicon.languages.names import NAMES

LEMMA_FLOOR = 8  # least number of words that share a lemma (docs/results/language-models.md)
KINDS = ("frequencies", "lemmas", "analyses")  # kinds of data
LONGEST_WORD = 100  # some analysers take too long for longer strings
TOO_LONG, UNKNOWN = f"of more than {LONGEST_WORD} letters", "that it lacks"


def is_installed(package: str) -> bool:
    """Return whether a package is installed. `package`: its name for pip."""
    return importlib.util.find_spec(package.replace("-", "_")) is not None


@dataclass(frozen=True)
class Spelling:
    """The spelling of words in a text."""

    lowercase: bool  # whether the text is lower-cased
    # the language of the rules for lower-casing, if it has its own (casing.py)
    rules: str | None = None

    form: str | None = None  # Unicode form (files/text_lines.py); None: unchanged

    def cased(self, word: str) -> str:
        """Return a word of a source in the case of the text."""
        return lower(word, self.rules) if self.lowercase else word

    def of_text(self, word: str) -> str:
        """Return a word of a source in the case and Unicode form of the text."""
        return self.cased(in_form(word, self.form))


class LanguageSource(ABC):
    """A package and its languages (module docstring)."""

    name: ClassVar[str]  # of the package
    gives: ClassVar[str]  # its kind of data, as in "simplemma (lemmas)"
    codes: ClassVar[Mapping[str, str]]  # codes of names.py -> codes of the package

    def packages(self, code: str) -> Sequence[str]:
        """Return the packages to install for a language, by their names for pip. The version is that of the first."""
        return (self.name,)

    @abstractmethod
    def licence(self, code: str) -> str:
        """Return the licences of program and data: `MIT; data: OpenCorpora (CC BY-SA 3.0)`. Semicolons separate output
        lines.
        """

    def listed(self, code: str) -> Iterator[tuple[str, str]]:
        """Yield all listed pairs of a form and its lemma, in the spelling of the source. By default there are none."""
        yield from ()

    def missing(self, code: str) -> list[str]:
        """Return the packages that are not installed."""
        return [package for package in self.packages(code) if not is_installed(package)]

    def need(self, code: str, option: str) -> None:
        """Raise OptionError with the pip command if a package is not installed."""
        if missing := self.missing(code):
            raise OptionError(f"{option}: the package {missing[0]} is not installed; {pip_line(missing)}")


class FeatureSource(LanguageSource):
    """A source of features of words."""

    is_guessable: ClassVar[bool] = True  # whether features of other words can be guessed from their spelling

    @abstractmethod
    def read(self, words: Sequence[str], code: str, spelling: Spelling) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield the words that the source has, with features. A word may come several times."""

    def lookup(self, words: Sequence[str], code: str, spelling: Spelling) -> Lexicon:
        """Return the features of words in any Unicode form (packages use NFC). Too long words are left out."""
        count, lexicon = ReadCount(self.name, "words", None, len(words)), Lexicon()
        normalized = {word: in_form(word, "nfc") for word in words if len(word) <= LONGEST_WORD}
        count.left_out[TOO_LONG] += len(words) - len(normalized)
        answers = Lexicon()
        for word, features in self.read(list(dict.fromkeys(normalized.values())), code, spelling):
            answers.add(word, features)
        for word, spelled in normalized.items():
            if spelled in answers:
                lexicon.add(word, answers.features(spelled))
                count.read += 1
            else:
                count.left_out[UNKNOWN] += 1
        count.done()
        return lexicon


class FrequencySource(LanguageSource):
    """A source of word frequencies."""

    @abstractmethod
    def frequencies(self, words: Sequence[str], code: str) -> np.ndarray:
        """Return relative frequencies of words in the source's texts: (n,), between 0 and 1; 0 for an unknown word."""

    @abstractmethod
    def all_frequencies(self, code: str) -> Mapping[str, float]:
        """Return all words of the source, in its spelling, with their frequencies."""

    def spelled(self, word: str, code: str) -> str:
        """Return a word in the spelling of the source, in lower case if it lists no capitals."""
        return word

    @abstractmethod
    def least(self, code: str) -> float:
        """Return the frequency of the rarest listed word."""


SOURCES: dict[str, LanguageSource] = {}
SourceType = TypeVar("SourceType", bound=type[LanguageSource])


def register_source(source: SourceType) -> SourceType:
    """Register a source by its name."""
    SOURCES[source.name] = source()
    return source


def sources_of(code: str) -> list[LanguageSource]:
    """Return the sources of a language, in the order of registration."""
    return [source for source in SOURCES.values() if code in source.codes]


def pip_line(distributions: Sequence[str]) -> str:
    """Return the command that installs the packages, as text."""
    return f"install it with pip install {' '.join(distributions)} (all of them: {from_checkout('languages')})"


@dataclass(frozen=True)
class Finding:
    """The coverage of the dictionary's words with a letter by one source."""

    source: str
    language: str
    version: str
    gives: str
    licence: str
    known: int
    words: int
    share: float  # of their tokens in the counted text, from 0 to 1

    @property
    def notes(self) -> Counter[str]:
        """A remark if the words may be of another language."""
        return few_words_remark(f"{self.source} as {NAMES[self.language]}", self.known, self.words)


@dataclass(frozen=True)
class Gathered:
    """The data of a language."""

    language: str
    findings: tuple[Finding, ...]
    missing: tuple[str, ...]  # packages to install for more data
    pooled: int = 0  # words with a lemma that at least `floor` words share
    floor: int = LEMMA_FLOOR

    @property
    def lacking(self) -> list[str]:
        """The kinds of data that no package has of the language."""
        kinds = {source.gives for source in sources_of(self.language)}
        return [kind for kind in KINDS if kind not in kinds]


def installed_sources(code: str) -> tuple[list[LanguageSource], tuple[str, ...]]:
    """Return the installed sources of a language, and the packages to install for more. Raises OptionError without
    any.
    """
    sources = sources_of(code)
    installed = [source for source in sources if not source.missing(code)]
    missing = tuple(dict.fromkeys(name for source in sources for name in source.missing(code)))
    if not installed:
        raise OptionError(
            f"--language {code}: expected an installed package for {NAMES[code]}, found none of {', '.join(missing)}; "
            f"{pip_line(missing)}"
        )
    return installed, missing
