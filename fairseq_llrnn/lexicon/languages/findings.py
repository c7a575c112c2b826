"""Adds the data of all packages of a language to a table, and measures how many of a dictionary's words they cover."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.language_check import has_letters
from fairseq_llrnn.lexicon.languages.language_source import (
    SOURCES,
    FeatureSource,
    Finding,
    FrequencySource,
    Gathered,
    LanguageSource,
    Spelling,
    installed_sources,
    is_installed,
    sources_of,
)
from fairseq_llrnn.lexicon.languages.names import NAMES
from fairseq_llrnn.lexicon.lexicon_table import Row, Table, as_features

if TYPE_CHECKING:
    from fairseq_llrnn.lexicon.options import LexiconOptions
    from fairseq_llrnn.lexicon.unknown_word_features import TextWords


def ask_packages(code: str, text: TextWords, options: LexiconOptions, table: Table, all_lemmas: bool) -> None:
    """Add the data of all packages of a language on a text's words to a table.

    Args:
        all_lemmas: whether to add listed lemmas of other words.

    Raises:
        OptionError: as `installed_sources`.
    """
    spelling, symbols = options.spelling, list(text.counts or text.others)
    installed, missing = installed_sources(code)
    words = list(dict.fromkeys((*symbols, *text.others)))
    counts = np.array([text.counts.get(word, 0) for word in symbols], dtype=np.int64)
    findings, pooled = [], set[str]()
    for source in installed:
        listed = listed_lemmas(source, code, spelling) if all_lemmas else {}
        if isinstance(source, FeatureSource):
            lexicon = source.lookup(words, code, spelling)
            features = lexicon if source.is_guessable else shared(lexicon, symbols, options.lemma_floor)
            pooled |= set() if source.is_guessable else set(features)
            for word in lexicon:
                row = Row(word, source=f"{source.name}:{code}")
                if source.is_guessable:
                    table.add(row._replace(features=as_features(lexicon.features(word))))
                    continue
                for name in lexicon.features(word):
                    lemma, values = name.partition(":")[2], as_features(features.features(word))
                    is_guessed = bool(listed) and (word, lemma) not in listed
                    table.add(row._replace(lemma=lemma, guessed=is_guessed, values=values))
                    listed.pop((word, lemma), None)
            findings.append(_finding(source, code, symbols, counts, [word in lexicon for word in symbols]))
        elif isinstance(source, FrequencySource):
            is_listed = source.frequencies(symbols, code) > 0
            findings.append(_finding(source, code, symbols, counts, is_listed.tolist()))
        for form, lemma in listed:
            table.add(Row(form, lemma, source=f"{source.name}:{code}"))
    table.packages = Gathered(code, tuple(findings), missing, len(pooled), options.lemma_floor)
    for finding in findings:
        table.notes.update(finding.notes)


def listed_lemmas(source: LanguageSource, code: str, spelling: Spelling) -> dict[tuple[str, str], None]:
    """Return pairs of forms and lemmas in the spelling of a text."""
    return {(spelling.of_text(form), spelling.of_text(lemma)): None for form, lemma in source.listed(code)}


def shared(lexicon: Lexicon, symbols: Sequence[str], floor: int) -> Lexicon:
    """Return only the features that at least `floor` of the words have, and only words with such a feature."""
    num_words = Counter(name for word in symbols for name in lexicon.features(word))
    frequent = Lexicon()
    for word in lexicon:
        if names := [name for name in lexicon.features(word) if num_words[name] >= floor]:
            frequent.add(word, names)
    return frequent


def findings_of(
    table: Table, symbols: Sequence[str], counts: np.ndarray, reported: Collection[tuple[str, str]]
) -> list[Finding]:
    """Return findings for the packages that a table's rows come from.

    Args:
        symbols, counts: the words of a dictionary.
        reported: names and languages of packages that have a finding already.
    """
    forms: dict[tuple[str, str], set[str]] = {}
    for row in table.rows:
        name, _, code = row.source.partition(":")
        if name in SOURCES and code in SOURCES[name].codes and (name, code) not in reported:
            forms.setdefault((name, code), set()).add(row.form)
    return [
        _finding(SOURCES[name], code, symbols, counts, [word in listed for word in symbols])
        for (name, code), listed in forms.items()
    ]


def frequency_source(code: str, option: str) -> FrequencySource:
    """Return the source of a language's word frequencies. Raises OptionError if there is none, or it is not
    installed.
    """
    for source in sources_of(code):
        if isinstance(source, FrequencySource):
            source.need(code, option)
            return source
    raise OptionError(f"{option}: no package has word frequencies of {NAMES[code]}; leave it out")


def frequency_finding(symbols: Sequence[str], counts: np.ndarray, code: str) -> Finding:
    """Return the finding of a language's word frequencies."""
    source = frequency_source(code, f"--background language:{code}")
    return _finding(source, code, symbols, counts, (source.frequencies(symbols, code) > 0).tolist())


def _finding(
    source: LanguageSource, code: str, symbols: Sequence[str], counts: np.ndarray, listed: Sequence[bool]
) -> Finding:
    has_letter = np.array(list(map(has_letters, symbols)), dtype=bool)
    is_covered = np.array(listed, dtype=bool) & has_letter
    tokens, package = float(counts[has_letter].sum()), source.packages(code)[0]
    return Finding(
        source.name,
        code,
        importlib.metadata.version(package) if is_installed(package) else "of another installation",
        source.gives,
        source.licence(code),
        int(is_covered.sum()),
        int(has_letter.sum()),
        float(counts[is_covered].sum()) / tokens if tokens else 0.0,
    )
