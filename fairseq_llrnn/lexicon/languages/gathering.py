"""All that the sources of a language know of the words of a dictionary, and how much of the words that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.language_check import has_letters, words_known
from fairseq_llrnn.lexicon.languages.base import (
    FeatureSource,
    FrequencySource,
    LanguageSource,
    Spelling,
    pip_line,
    sources_of,
)
from fairseq_llrnn.lexicon.languages.names import NAMES

LEMMA_FLOOR = 8  # words that must share a lemma (docs/results/language-packages.md has the numbers of signatures)
KINDS = ("frequencies", "lemmas", "analyses")  # what sources may give


@dataclass(frozen=True)
class Finding:
    """What one source knows of the dictionary's words that hold a letter."""

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
        """Whether the words may be of another language."""
        return words_known(f"{self.source} as {NAMES[self.language]}", self.known, self.words)


@dataclass(frozen=True)
class Gathered:
    """What is known of a language."""

    language: str | None = None
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()  # what pip would have to install for more
    analyses: Lexicon = field(default_factory=Lexicon)
    pooled: Lexicon = field(default_factory=Lexicon)  # features that are not to be guessed: lemmas that words share
    floor: int = LEMMA_FLOOR  # words that share each of them

    @property
    def lacking(self) -> list[str]:
        """Kinds of knowledge that no package has of the language."""
        known = {source.gives for source in sources_of(self.language)} if self.language else set(KINDS)
        return [kind for kind in KINDS if kind not in known]


def gather(
    symbols: Sequence[str],
    counts: np.ndarray,
    others: Sequence[str],
    code: str,
    spelling: Spelling,
    floor: int = LEMMA_FLOOR,
) -> Gathered:
    """Ask all sources of a language.

    Args:
        symbols: ordinary words of the dictionary. counts: (V,) theirs. others: more words that need analyses.
        floor: dictionary words that must share a lemma, or else it is left out.

    Raises:
        OptionError: none of the sources is installed; a floor below 1.
    """
    check_least("--lemma-floor", floor, 1, "words")
    sources = sources_of(code)
    installed = [source for source in sources if not source.missing(code)]
    missing = tuple(dict.fromkeys(name for source in sources for name in source.missing(code)))
    if not installed:
        raise OptionError(
            f"--language {code}: expected a package that knows {NAMES[code]}, found none of {', '.join(missing)}; "
            f"{pip_line(missing)}"
        )
    asked = list(dict.fromkeys((*symbols, *others)))
    analyses, lemmas, findings = Lexicon(), Lexicon(), []
    for source in installed:
        if isinstance(source, FeatureSource):
            found = source.lookup(asked, code, spelling)
            (analyses if source.is_guessable else lemmas).update(found)
            findings.append(_finding(source, code, symbols, counts, [word in found for word in symbols]))
        elif isinstance(source, FrequencySource):
            known = source.frequencies(symbols, code) > 0
            findings.append(_finding(source, code, symbols, counts, known.tolist()))
    return Gathered(code, tuple(findings), missing, analyses, shared(lemmas, symbols, floor), floor)


def shared(lexicon: Lexicon, symbols: Sequence[str], floor: int) -> Lexicon:
    """The features that at least `floor` of the words have; a word without one is no member."""
    reach = Counter(name for word in symbols for name in lexicon.features(word))
    kept = Lexicon()
    for word in lexicon:
        if names := [name for name in lexicon.features(word) if reach[name] >= floor]:
            kept.add(word, names)
    return kept


def frequency_source(code: str, option: str) -> FrequencySource:
    """The one that knows how frequent the words of a language are. Raises OptionError: none does; not installed."""
    for source in sources_of(code):
        if isinstance(source, FrequencySource):
            source.need(code, option)
            return source
    raise OptionError(
        f"{option}: expected a language whose words' frequencies are known, found {NAMES[code]}; leave it out"
    )


def frequency_finding(symbols: Sequence[str], counts: np.ndarray, code: str) -> Finding:
    """What is known of the frequencies alone."""
    source = frequency_source(code, f"--background language:{code}")
    return _finding(source, code, symbols, counts, (source.frequencies(symbols, code) > 0).tolist())


def _finding(
    source: LanguageSource, code: str, symbols: Sequence[str], counts: np.ndarray, known: Sequence[bool]
) -> Finding:
    spelt = np.array(list(map(has_letters, symbols)), dtype=bool)
    has = np.array(known, dtype=bool) & spelt
    tokens = float(counts[spelt].sum())
    return Finding(
        source.name,
        code,
        source.packages(code)[0].version,
        source.gives,
        source.licence(code),
        int(has.sum()),
        int(spelt.sum()),
        float(counts[has].sum()) / tokens if tokens else 0.0,
    )
