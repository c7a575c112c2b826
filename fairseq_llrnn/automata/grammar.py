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
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.budget import Budget, TooMuchWorkError
from fairseq_llrnn.automata.grammar_bounds import (
    NO_LIMIT,
    Item,
    derives_itself,
    least_depth,
    least_words,
    most,
    names_in,
)
from fairseq_llrnn.automata.shared_nodes import NOWHERE, SharedNodes, Weighted
from fairseq_llrnn.automata.symbols import Symbols
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_WEIGHT, LEAST_WEIGHT, is_weight
from fairseq_llrnn.files.text_lines import iter_lines, place, shown

PIECE = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|(\|)|\[\s*([^\]]*?)\s*\]|([^\s"'|\[\]]+))""")
ARROW = re.compile(r"\s*([^\s\"'|\[\]]+)\s*(?:->|→)")
BOUND = re.compile(r"%(depth|length)\s+(\d{1,6})")
MOST_FRAMES = 50_000  # of Python, for grammars that nest deeply


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
    lines: dict[str, int] = field(default_factory=dict)  # where each nonterminal's first rule stands


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
        grammar.lines.setdefault(left, number)
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
    if not is_weight(weight):
        expected = "a weight > 0 in brackets"
        if 0 < weight < math.inf:
            expected += f", from {LEAST_WEIGHT:g} to {LARGEST_WEIGHT:g}"
        raise DataError(f"{where}: expected {expected}, found {shown(text)}; fix the line")
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


def grammar_automaton(grammar: Grammar, num_symbols: int, budget: Budget | None = None) -> Automaton:
    """The minimal deterministic automaton of a grammar within its bounds.

    Raises:
        ValueError: a grammar that nests without a bound, a nonterminal that derives itself and no word more, no string,
            more work than the budget has.
    """
    with _deep_recursion():
        return _Building(grammar, num_symbols, Budget() if budget is None else budget).automaton()


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
    def __init__(self, grammar: Grammar, num_symbols: int, budget: Budget) -> None:
        self.grammar, self.num_symbols, self.budget = grammar, num_symbols, budget
        self.rules = grammar.rules
        self.nodes = SharedNodes(grammar.weighted, grammar.length, budget)
        items = {name: [each.items for each in alternatives] for name, alternatives in self.rules.items()}
        self.least_words, self.least_depth = least_words(items), least_depth(items)
        self.most_depth, self.most_words = most(items)
        self.endless = derives_itself(items, self.least_words)
        # those that can be the cause of too much work; of the others, only the words differ
        self.branching = {name for name in self.rules if any(map(names_in, items[name]))}
        self.known: dict[tuple[str, int, int, int], Weighted] = {}
        self.work: Counter[str] = Counter()  # steps for each nonterminal itself, in all contexts
        self.contexts: Counter[str] = Counter()
        self.path = [grammar.start]
        self.counted = 0  # steps that `work` has

    def automaton(self) -> Automaton:
        grammar = self.grammar
        if self.endless is not None:
            raise ValueError(
                f"the grammar's {shown(self.endless)}{self._place(self.endless)} derives itself and no word more; "
                "remove that rule"
            )
        if grammar.depth is None and grammar.length is None and self.most_depth[grammar.start] == NO_LIMIT:
            raise ValueError("the grammar nests without a bound; give it `%depth N` or `%length N`")
        depth = NO_LIMIT if grammar.depth is None else grammar.depth
        words = NO_LIMIT if grammar.length is None else grammar.length
        try:
            start, _ = self.node(grammar.start, depth, words, (self.nodes.end, 0.0))
        except TooMuchWorkError as error:
            raise ValueError(f"{error}, {self._costly()}") from None
        if start == NOWHERE:
            raise ValueError("the grammar has no string within its bounds")
        return self.nodes.automaton(start, self.num_symbols)

    def _place(self, name: str) -> str:
        line = self.grammar.lines.get(name)
        return "" if line is None else f" (line {line:,})"

    def _costly(self) -> str:
        """Which rule took most of the work, and what to do."""
        self._count()
        name, _ = self.work.most_common(1)[0]
        return (
            f"most for {shown(name)}{self._place(name)} before {self.contexts[name]:,} different continuations: "
            "put fewer nonterminals behind each other in its rule, or give the grammar a smaller %depth or %length"
        )

    def _count(self) -> None:
        self.work[self.path[-1]] += self.budget.spent - self.counted
        self.counted = self.budget.spent

    def node(self, name: str, depth: int, words: int, rest: Weighted) -> Weighted:
        """What the nonterminal derives, so deep and with so many words at most, before the strings of `rest`."""
        if rest[0] == NOWHERE or self.least_depth[name] > depth or self.least_words[name] > words:
            return NOWHERE, 0.0
        key = name, min(depth, self.most_depth[name]), min(words, self.most_words[name]), rest[0]
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._made(name, depth, words, rest[0])
        return found[0], found[1] + rest[1]

    def _made(self, name: str, depth: int, words: int, rest: int) -> Weighted:
        branching = name in self.branching
        if branching:
            self._count()
            self.path.append(name)
            self.contexts[name] += 1
        inner = depth if depth == NO_LIMIT else depth - 1
        result = self.nodes.union([self._sequence(each, inner, words, rest) for each in self.rules[name]])
        if branching:
            self._count()
            self.path.pop()
        return result

    def _sequence(self, alternative: Alternative, depth: int, words: int, rest: int) -> Weighted:
        self.budget.spend(1 + len(alternative.items))
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
