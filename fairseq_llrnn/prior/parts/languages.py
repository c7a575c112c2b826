"""The packages with data of a prior's language (lexicon/languages), and their licences.

Sizes: V words of the dictionary.

The part is for people and makes no background. `with_codes` adds the language's code to `language` in an expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.lexicon.languages.findings import findings_of, frequency_finding, frequency_source
from fairseq_llrnn.lexicon.languages.language_source import Finding
from fairseq_llrnn.lexicon.languages.names import language_code
from fairseq_llrnn.lexicon.lexicon_table import Table
from fairseq_llrnn.prior.expression import Atom, Expression, atoms, with_atoms
from fairseq_llrnn.prior.part import Part, PriorView, SavedPart, register_part
from fairseq_llrnn.prior.parts.static import LANGUAGE

TYPES = {"known": int, "words": int, "share": float}  # of a finding's fields; all others are text


@register_part("languages")
@dataclass(frozen=True)
class LanguagesPart(Part):
    """The packages that were used, one finding each."""

    findings: tuple[Finding, ...]

    def description(self) -> dict[str, Any]:
        return {"sources": [dict(vars(finding)) for finding in self.findings]}

    @classmethod
    def read(cls, saved: SavedPart) -> LanguagesPart:
        sources = saved.description["sources"]
        if not isinstance(sources, list) or not all(map(_is_finding, sources)):
            raise ValueError("languages: expected a list of packages with their findings and licences")
        return cls(tuple(Finding(**source) for source in sources))

    @property
    def identity(self) -> str:
        return ""  # a model depends only on features and weights

    def lines(self, prior: PriorView) -> list[str]:
        lines: list[str] = []
        for finding in self.findings:
            words = f"{finding.known:,} words ({finding.language})"
            lines.append(f"{finding.source} {finding.version}: {finding.gives} of {words}")
            first, *others = finding.licence.split("; ")
            lines += [f"licence {first}", *others]
        return lines


def _is_finding(source: object) -> bool:
    names = {field.name for field in fields(Finding)}
    return (
        isinstance(source, dict)
        and source.keys() == names
        and all(type(value) is TYPES.get(name, str) for name, value in source.items())
    )


def with_codes(background: Expression, code: str | None) -> Expression:
    """Return the expression with a code in every atom `language`: language:uk.

    Args:
        code: the code of --language.

    Raises:
        OptionError: the language is missing or unknown, no package has its frequencies, or the package is not
            installed.
    """

    def with_code(atom: Atom) -> Atom:
        kind, colon, named = atom.text.partition(":")
        if kind != LANGUAGE:
            return atom
        atom_code = language_code(named, f"--background {atom.text}") if colon else code
        if atom_code is None:
            raise OptionError("--background language needs --language CODE; add it, or write language:CODE")
        frequency_source(atom_code, f"--background {LANGUAGE}:{atom_code}")
        return replace(atom, text=f"{LANGUAGE}:{atom_code}")

    return with_atoms(background, with_code)


def part_of(
    table: Table, background: Expression, words: WordList, counts: np.ndarray, lexicon: Sequence[str] = ()
) -> LanguagesPart | None:
    """Return the packages that the prior was made from, with their licences, or None if there are none.

    Args:
        counts: (V,).
        lexicon: places of the spelling lexicon.
    """
    ordinary = np.flatnonzero(~words.specials)
    symbols, ordinary_counts = [words.symbols[i] for i in ordinary], counts[ordinary]
    findings = [] if table.packages is None else list(table.packages.findings)
    findings = [finding for finding in findings if finding.gives != "frequencies" and finding.known]
    findings += findings_of(table, symbols, ordinary_counts, [(found.source, found.language) for found in findings])
    texts = (*(atom.text for atom in atoms(background)), *lexicon)
    names = (text.partition(":")[2] for text in texts if text.startswith(f"{LANGUAGE}:"))
    codes = dict.fromkeys(map(language_code, names))
    findings += [frequency_finding(symbols, ordinary_counts, code) for code in codes]
    return LanguagesPart(tuple(findings)) if findings else None
