"""The grammar of a hunspell dictionary as plain data for a prior: JSON in UTF-8.

Words, flags and rules are numbers of earlier lists:

    flags        sets of flags
    rules        [is suffix, flag, crosses, strip, add, condition, flags, shortest]
    entries      words, joined by line ends; entry_flags: their sets of flags
    special, conversions, ignored, reversed: of hunspell_affixes.Affixes
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fairseq_llrnn.lexicon.readers.hunspell_affixes import CONVERSIONS, MOST_RULES, SPECIAL, Affixes, Rule
from fairseq_llrnn.open_vocabulary.affix_grammar import MOST_ENTRIES, Grammar


def as_bytes(grammar: Grammar) -> np.ndarray:
    """Return the grammar as bytes, (B,) uint8."""
    affixes, numbers = grammar.affixes, dict[frozenset[str], int]()

    def number(flags: frozenset[str]) -> int:
        return numbers.setdefault(flags, len(numbers))

    tables = (True, affixes.suffixes), (False, affixes.prefixes)
    rules = [
        [is_suffix, flag, rule.crosses, rule.strip, rule.add, rule.condition, number(rule.flags), rule.shortest]
        for is_suffix, table in tables
        for flag, group in table.items()
        for rule in group
    ]
    stored = {
        "rules": rules,
        "entries": "\n".join(word for word, _ in grammar.entries),
        "entry_flags": [number(flags) for _, flags in grammar.entries],
        "flags": [sorted(flags) for flags in numbers],
        "special": {name: sorted(flags) for name, flags in sorted(affixes.special.items())},
        "conversions": [affixes.conversions[name].pairs() for name in CONVERSIONS],
        "ignored": sorted(affixes.ignored),
        "reversed": affixes.is_reversed,
    }
    text = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)


def read_grammar(stored: np.ndarray) -> Grammar:
    """Return the grammar of `as_bytes`.

    Raises:
        ValueError, KeyError, TypeError: other bytes, which are untrusted input.
    """
    try:
        data = json.loads(stored.tobytes().decode("utf-8", "surrogatepass"))
    except RecursionError:
        raise ValueError("the grammar of the spelling lexicon has too many brackets") from None
    if not isinstance(data, dict):
        raise ValueError("the grammar of the spelling lexicon is no object")
    sets = [frozenset(_texts(flags)) for flags in _list(data["flags"])]
    affixes = Affixes(is_reversed=data["reversed"] is True, ignored=dict.fromkeys(map(_number, _list(data["ignored"]))))
    affixes.special = {name: set(_texts(data["special"][name])) for name in {*SPECIAL.values()} & {*data["special"]}}
    for name, pairs in zip(CONVERSIONS, _list(data["conversions"]), strict=True):
        for part, text in map(_texts, _list(pairs)):
            affixes.conversions[name].add(part, text)
    if len(_list(data["rules"])) > MOST_RULES:
        raise ValueError(f"the grammar of the spelling lexicon has more than {MOST_RULES:,} rules")
    for is_suffix, flag, crosses, strip, add, condition, flags, shortest in data["rules"]:
        letters = tuple((negated is True, _texts([text])[0]) for negated, text in _list(condition))
        flag, strip, add = _texts([flag, strip, add])
        of_flag = (affixes.suffixes if is_suffix is True else affixes.prefixes).setdefault(flag, [])
        shortest = max(_number(shortest), len(letters), len(strip))
        of_flag.append(Rule(flag, crosses is True, strip, add, letters, sets[_number(flags)], shortest))
    words, entry_flags = data["entries"].split("\n"), _list(data["entry_flags"])
    if len(words) != len(entry_flags) or len(words) > MOST_ENTRIES or not all(words):
        raise ValueError("the entries of the spelling lexicon do not fit their flags")
    return Grammar(affixes, [(word, sets[_number(flags)]) for word, flags in zip(words, entry_flags, strict=True)])


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"the grammar of the spelling lexicon: expected a list, found {type(value).__name__}")
    return value


def _texts(values: Any) -> list[str]:
    if not all(isinstance(value, str) for value in _list(values)):
        raise ValueError("the grammar of the spelling lexicon: expected text, found another value")
    return list(values)


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"the grammar of the spelling lexicon: expected a number, found {value!r:.40}")
    return value
