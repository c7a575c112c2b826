"""A slow and simple reader of grammars, which checks whether a grammar derives a string.

It reads the rules of automata/grammar_file.py, without weights: `A -> "word" B | "word"`, comments after `#`. The left
side of the first rule derives the strings. Bounds (`%depth`) are ignored. It checks GeoQuery's forms (funql_prepare.py)
and the automaton of the searches (tests).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import iter_lines, place

Rules = Mapping[str, list[tuple[str, ...]]]  # in the order of the file; a terminal keeps its first quotation mark
SYMBOL = re.compile(r'\s*("[^"\s]+"|[A-Za-z][A-Za-z0-9_]*)')


def read_rules(path: Path) -> Rules:
    """Read rules. Raises DataError: an invalid line, or a nonterminal without rules."""
    rules: dict[str, list[tuple[str, ...]]] = {}
    used: dict[str, int] = {}
    for number, line in iter_lines(path):
        if not line.strip() or line.lstrip().startswith(("#", "%")):
            continue
        left, arrow, right = line.partition("->")
        for alternative in right.split("|"):
            symbols = [symbol.rstrip('"') for symbol in SYMBOL.findall(alternative)]
            if not arrow or not symbols or SYMBOL.sub("", alternative).strip() or not left.strip().isidentifier():
                raise DataError(
                    f'{place(path, number)}: expected a rule like A -> "word" B | "word", found {line!r}; fix the line'
                )
            rules.setdefault(left.strip(), []).append(tuple(symbols))
            used |= {symbol: number for symbol in symbols if not symbol.startswith('"')}
    for symbol, number in used.items():
        if symbol not in rules:
            raise DataError(f"{place(path, number)}: expected rules for {symbol}, found none; add some, or quote it")
    return rules


def terminals(rules: Rules) -> set[str]:
    """Return all words of the language."""
    alternatives = (alternative for several in rules.values() for alternative in several)
    return {symbol[1:] for alternative in alternatives for symbol in alternative if symbol.startswith('"')}


def derives(rules: Rules, string: Sequence[str]) -> bool:
    """Return whether the first rule's left side derives the string. The rules must not be left-recursive."""

    @cache
    def ends(symbol: str, start: int) -> frozenset[int]:
        """Return the possible ends of a string that the symbol derives from `start`."""
        if symbol.startswith('"'):
            found = start < len(string) and string[start] == symbol[1:]
            return frozenset({start + 1} if found else ())
        result: set[int] = set()
        for alternative in rules[symbol]:
            places = {start}
            for part in alternative:
                places = {end for begin in places for end in ends(part, begin)}
            result |= places
        return frozenset(result)

    return len(string) in ends(next(iter(rules)), 0)
