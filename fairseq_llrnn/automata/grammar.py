"""Context-free grammars, bounded in depth or length, as automata.

    # comments
    %depth 8                        at most so many nonterminals on a path of the tree, the first one included
    %length 30                      at most so many words
    S -> "a" X "b" | Y              a rule; the first one's left side is the start
    X -> 'x' [0.7] | [0.3]          weights, for all rules or none; an alternative may be empty
       | "several words"            a line that goes on with the rule above

A language without weights is a set. With weights, a string has the sum over its trees of the products of the rules'
weights, divided by that of all strings within the bounds, so that the automaton gives each step a distribution.

X at depth d with l words to go, followed by a continuation k, is one node (shared_nodes.py): it is built once for all
trees that go on alike. Continuations are nodes themselves, so equal ones count once, however they came about. A
nonterminal that cannot nest has the same node at all depths. What must be remembered of open brackets grows as the
number of ways to open them does: rules with two arguments of many types multiply states at every level.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.shared_nodes import MOST_NODES, NOWHERE, SharedNodes, Weighted
from fairseq_llrnn.automata.symbols import Symbols
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import iter_lines, place, shown

PIECE = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|(\|)|\[\s*([^\]]*?)\s*\]|([^\s"'|\[\]]+))""")
ARROW = re.compile(r"\s*([^\s\"'|\[\]]+)\s*(?:->|→)")
BOUND = re.compile(r"%(depth|length)\s+(\d{1,6})")
NO_LIMIT = sys.maxsize
MOST_FRAMES = 50_000  # of Python, for grammars that nest deeply

Item = int | str  # a symbol of the dictionary, or a nonterminal


@dataclass(frozen=True)
class Alternative:
    """One way to write a nonterminal."""

    items: tuple[Item, ...]
    log_weight: float = 0.0


@dataclass
class Grammar:
    """Rules over symbols of the dictionary, and the bounds."""

    start: str
    rules: dict[str, list[Alternative]] = field(default_factory=dict)
    depth: int | None = None
    length: int | None = None
    weighted: bool = False


def read_grammar(path: Path | str, symbols: Symbols) -> Automaton:
    """The automaton of a grammar file (module docstring).

    Raises:
        DataError: a bad line, an unknown symbol, a nonterminal without rules, with file and line.
        ValueError: as `grammar_automaton`.
    """
    return grammar_automaton(parse_grammar(path, symbols), len(symbols))


# ---- reading --------------------------------------------------------------------------------------------------------


def parse_grammar(path: Path | str, symbols: Symbols) -> Grammar:
    """The rules of a grammar file. Raises DataError."""
    grammar, left = Grammar(""), ""
    used: dict[str, str] = {}  # nonterminal -> where it is first used
    plain = 0  # alternatives without weights
    for number, line in iter_lines(path):
        text, where = line.strip(), place(path, number)
        if not text or text.startswith("#"):
            continue
        if text.startswith("%"):
            _read_bound(grammar, text, where)
            continue
        arrow = ARROW.match(line)
        if arrow is not None:
            left, right = arrow.group(1), line[arrow.end() :]
            grammar.start = grammar.start or left
        elif left and text.startswith("|"):
            right = text[1:]
        else:
            raise DataError(f"{where}: expected `X -> …`, found {shown(text)}; fix the line")
        rules = grammar.rules.setdefault(left, [])
        for items, weight in _alternatives(right, where):
            found = _items(items, symbols, where, used)
            grammar.weighted |= weight is not None
            plain += weight is None
            if found is not None:
                rules.append(Alternative(found, math.log(1.0 if weight is None else weight)))
    symbols.refuse_unknown()
    if not grammar.rules:
        raise DataError(f"{path}: expected rules `X -> …`, found none; is it the right file?")
    for name, where in used.items():
        if name not in grammar.rules:
            raise DataError(f"{where}: {shown(name)} has no rule; add one, or put quotes around it if it is a word")
    if grammar.weighted and plain:
        raise DataError(f"{path}: expected a weight [w] behind every alternative, or none, found {plain:,} without one")
    return grammar


def _read_bound(grammar: Grammar, text: str, where: str) -> None:
    found = BOUND.fullmatch(text)
    if found is None or int(found.group(2)) == 0:
        raise DataError(f"{where}: expected `%depth N` or `%length N` with N ≥ 1, found {shown(text)}; fix the line")
    setattr(grammar, found.group(1), int(found.group(2)))


def _alternatives(text: str, where: str) -> Iterator[tuple[list[tuple[str, bool]], float | None]]:
    """Each alternative: names and whether they are words, and the weight."""
    items: list[tuple[str, bool]] = []
    weight: float | None = None
    at = 0
    while at < len(text.rstrip()):
        piece = PIECE.match(text, at)
        if piece is None:
            raise DataError(f"{where}: expected words in quotes, names and |, found {shown(text[at:].strip())}")
        at = piece.end()
        double, single, bar, number, name = piece.groups()
        if bar:
            yield items, weight
            items, weight = [], None
        elif weight is not None:
            found = shown(piece.group().strip())
            raise DataError(f"{where}: expected nothing behind the weight of an alternative, found {found}")
        elif number is not None:
            weight = _weight(number, where)
        elif name is not None:
            items.append((name, False))
        else:
            items.extend((word, True) for word in (double if double is not None else single).split())
    yield items, weight


def _weight(text: str, where: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight > 0):
        raise DataError(f"{where}: expected a weight > 0 in brackets, found {shown(text)}; fix the line")
    return weight


def _items(
    names: list[tuple[str, bool]], symbols: Symbols, where: str, used: dict[str, str]
) -> tuple[Item, ...] | None:
    """Symbols and nonterminals; None where a symbol is unknown, and the alternative goes with it."""
    items: list[Item | None] = []
    for name, is_word in names:
        if is_word:
            items.append(symbols.find(name, where))
        else:
            used.setdefault(name, where)
            items.append(name)
    found = tuple(item for item in items if item is not None)
    return found if len(found) == len(items) else None


# ---- building -------------------------------------------------------------------------------------------------------


def grammar_automaton(grammar: Grammar, num_symbols: int, limit: int = MOST_NODES) -> Automaton:
    """The minimal deterministic automaton of a grammar within its bounds.

    Raises:
        ValueError: a grammar that nests without a bound, a nonterminal that derives itself and no word more, no string,
            more than `limit` states.
    """
    with _deep_recursion():
        return _Building(grammar, num_symbols, limit).automaton()


@contextmanager
def _deep_recursion() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, MOST_FRAMES))
    try:
        yield
    except RecursionError:
        raise ValueError("the grammar's strings are too long or too deep; bound them more tightly") from None
    finally:
        sys.setrecursionlimit(before)


class _Building:
    def __init__(self, grammar: Grammar, num_symbols: int, limit: int) -> None:
        self.grammar, self.num_symbols = grammar, num_symbols
        self.rules = grammar.rules
        self.nodes = SharedNodes(grammar.weighted, grammar.length, limit)
        self.least_words = self._least(lambda items, known: sum(1 if isinstance(i, int) else known[i] for i in items))
        self.least_depth = self._least(
            lambda items, known: 1 + max((known[i] for i in items if isinstance(i, str)), default=0)
        )
        self.most_depth, self.most_words = self._most()
        self.known: dict[tuple[str, int, int, int], Weighted] = {}

    def automaton(self) -> Automaton:
        grammar = self.grammar
        self._refuse_cycles()
        if grammar.depth is None and grammar.length is None and self.most_depth[grammar.start] == NO_LIMIT:
            raise ValueError("the grammar nests without a bound; give it `%depth N` or `%length N`")
        depth = NO_LIMIT if grammar.depth is None else grammar.depth
        words = NO_LIMIT if grammar.length is None else grammar.length
        start, _ = self.node(grammar.start, depth, words, (self.nodes.end, 0.0))
        if start == NOWHERE:
            raise ValueError("the grammar has no string within its bounds")
        return self.nodes.automaton(start, self.num_symbols)

    def node(self, name: str, depth: int, words: int, rest: Weighted) -> Weighted:
        """What the nonterminal derives, so deep and with so many words at most, before the strings of `rest`."""
        if rest[0] == NOWHERE or self.least_depth[name] > depth or self.least_words[name] > words:
            return NOWHERE, 0.0
        key = name, min(depth, self.most_depth[name]), min(words, self.most_words[name]), rest[0]
        found = self.known.get(key)
        if found is None:
            inner = depth if depth == NO_LIMIT else depth - 1
            parts = [self._sequence(each, inner, words, rest[0]) for each in self.rules[name]]
            found = self.known[key] = self.nodes.union(parts)
        return found[0], found[1] + rest[1]

    def _sequence(self, alternative: Alternative, depth: int, words: int, rest: int) -> Weighted:
        result = rest, alternative.log_weight
        least = [1 if isinstance(item, int) else self.least_words[item] for item in alternative.items]
        spare = NO_LIMIT if words == NO_LIMIT else words - sum(least)
        if spare < 0:
            return NOWHERE, 0.0
        # from the last to the first; each may have all of the words that the others can do without
        for item, own in zip(reversed(alternative.items), reversed(least), strict=True):
            if isinstance(item, int):
                result = self.nodes.after(item, result)
            else:
                result = self.node(item, depth, NO_LIMIT if words == NO_LIMIT else own + spare, result)
            if result[0] == NOWHERE:
                return result
        return result

    # ---- what is known of a nonterminal before anything is built -----------------------------------------------------

    def _least(self, measure: Callable[[tuple[Item, ...], dict[str, int]], int]) -> dict[str, int]:
        """The least value over a nonterminal's trees; NO_LIMIT where it has none."""
        known = dict.fromkeys(self.rules, NO_LIMIT)
        changed = True
        while changed:
            changed = False
            for name, alternatives in self.rules.items():
                for each in alternatives:
                    if all(known[item] < NO_LIMIT for item in each.items if isinstance(item, str)):
                        value = measure(each.items, known)
                        if value < known[name]:
                            known[name], changed = value, True
        return known

    def _most(self) -> tuple[dict[str, int], dict[str, int]]:
        """The greatest depth and number of words of each nonterminal's trees; NO_LIMIT where it nests."""
        depth, words = dict.fromkeys(self.rules, NO_LIMIT), dict.fromkeys(self.rules, NO_LIMIT)
        changed = True
        while changed:
            changed = False
            for name, alternatives in self.rules.items():
                inner = {item for each in alternatives for item in each.items if isinstance(item, str)}
                if depth[name] == NO_LIMIT and all(depth[item] < NO_LIMIT for item in inner):
                    depth[name] = 1 + max((depth[item] for item in inner), default=0)
                    words[name] = max(
                        (sum(1 if isinstance(i, int) else words[i] for i in each.items) for each in alternatives),
                        default=0,
                    )
                    changed = True
        return depth, words

    def _refuse_cycles(self) -> None:
        """Raise ValueError for a nonterminal that derives itself and no word more: it has infinitely many trees."""
        after = {
            name: {
                item
                for each in alternatives
                for place, item in enumerate(each.items)
                if isinstance(item, str) and self._may_be_empty(each.items[:place] + each.items[place + 1 :])
            }
            for name, alternatives in self.rules.items()
        }
        for name in self.rules:
            seen, waiting = set(), list(after[name])
            while waiting:
                here = waiting.pop()
                if here == name:
                    raise ValueError(f"the grammar's {name!r} derives itself and no word more; remove that rule")
                if here not in seen:
                    seen.add(here)
                    waiting.extend(after[here])

    def _may_be_empty(self, items: tuple[Item, ...]) -> bool:
        return all(isinstance(item, str) and self.least_words[item] == 0 for item in items)
