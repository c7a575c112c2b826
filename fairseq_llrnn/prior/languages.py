"""What packages know of a prior's language: features for its lexicon, and static weights (lexicon/languages).

Sizes: V words of the dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.lexicon.languages import language_code
from fairseq_llrnn.lexicon.languages.gathering import Gathered, frequency_finding, frequency_source, gather
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior.expression import Atom, Expression, atoms, with_atoms
from fairseq_llrnn.prior.language_weights import LANGUAGE
from fairseq_llrnn.prior.parts.languages import LanguagesPart


def with_codes(background: Expression, code: str | None) -> Expression:
    """The expression whose atoms `language` say of which language: language:uk.

    Args:
        code: of --language.

    Raises:
        OptionError: no language is told, or it is unknown; nobody knows its frequencies; a package is not installed.
    """

    def told(atom: Atom) -> Atom:
        kind, colon, named = atom.text.partition(":")
        if kind != LANGUAGE:
            return atom
        told_code = language_code(named, f"--background {atom.text}") if colon else code
        if told_code is None:
            raise OptionError(
                "--background language: expected --language CODE beside it, found none; add it, or say language:CODE"
            )
        frequency_source(told_code, f"--background {LANGUAGE}:{told_code}")
        return replace(atom, text=f"{LANGUAGE}:{told_code}")

    return with_atoms(background, told)


def gathered_for(
    code: str | None,
    options: LexiconOptions,
    words: WordList,
    counts: np.ndarray,
    others: Iterable[str],
    whole: Iterable[str] | None,
) -> Gathered:
    """What the packages of --language know; nothing where there is no such option.

    Args:
        code: of --language. counts: (V,). others: words outside the dictionary that need analyses. whole: where the
            dictionary holds pieces, the words that they are of.
    """
    if code is None:
        return Gathered()
    spelling, floor = options.spelling, options.lemma_floor
    if whole is not None:
        symbols = list(whole)
        return gather(symbols, np.zeros(len(symbols)), (), code, spelling, floor)
    ordinary = np.flatnonzero(~words.specials)
    return gather([words.symbols[i] for i in ordinary], counts[ordinary], list(others), code, spelling, floor)


def part_of(gathered: Gathered, background: Expression, words: WordList, counts: np.ndarray) -> LanguagesPart | None:
    """Which sources the prior was made from, with their licences; None where there are none.

    Args:
        counts: (V,).
    """
    used = [finding for finding in gathered.findings if finding.gives != "frequencies" and finding.known]
    texts = dict.fromkeys(atom.text for atom in atoms(background))
    weighed = [text.partition(":")[2] for text in texts if text.startswith(f"{LANGUAGE}:")]
    if weighed:
        ordinary = np.flatnonzero(~words.specials)
        symbols = [words.symbols[i] for i in ordinary]
        used += [frequency_finding(symbols, counts[ordinary], code) for code in weighed]
    return LanguagesPart(tuple(used)) if used else None
