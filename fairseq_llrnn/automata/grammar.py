"""Automata of context-free grammars, bounded in depth or length (grammar_file.py: their files).

A language without weights is a set. With weights, a string has the sum over its trees of the products of the rules'
weights. It is divided by the sum over all strings within the bounds, so that each step has a distribution.

X at depth d with l words left, followed by a continuation k, is one node (shared_nodes.py): it is built once for all
trees with this continuation. Continuations are nodes themselves, so equal ones count once. A nonterminal that cannot
nest has the same node at all depths. The number of states grows with the number of ways to open brackets: rules with
two arguments of many types multiply states at every level.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.grammar_file import (
    NO_LIMIT,
    Alternative,
    Grammar,
    derives_itself,
    least_depth,
    least_words,
    most,
    names_in,
    parse_grammar,
)
from fairseq_llrnn.automata.limits import Budget, TooMuchWorkError
from fairseq_llrnn.automata.shared_nodes import NOWHERE, SharedNodes, Weighted
from fairseq_llrnn.automata.symbols import Symbols
from fairseq_llrnn.files.text_lines import shown

MOST_FRAMES = 50_000  # of Python, for grammars that nest deeply


def read_grammar(path: Path | str, symbols: Symbols) -> Automaton:
    """Read the automaton of a grammar file (grammar_file.py).

    Raises:
        DataError: with file and line: a bad line, an unknown symbol, or a nonterminal without rules.
        ValueError: as `grammar_automaton`.
    """
    return grammar_automaton(parse_grammar(path, symbols), len(symbols))


def grammar_automaton(grammar: Grammar, num_symbols: int, budget: Budget | None = None) -> Automaton:
    """Return the minimal deterministic automaton of a grammar within its bounds.

    Raises:
        ValueError: unbounded nesting, a nonterminal that derives itself without another word, no string, or more work
            than the budget.
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
        items = {name: [alternative.items for alternative in alternatives] for name, alternatives in self.rules.items()}
        self.least_words, self.least_depth = least_words(items), least_depth(items)
        self.most_depth, self.most_words = most(items)
        self.endless = derives_itself(items, self.least_words)
        # nonterminals that can cause too much work; alternatives of the others differ only in words
        self.branching = {name for name in self.rules if any(map(names_in, items[name]))}
        self.memo: dict[tuple[str, int, int, int], Weighted] = {}
        self.contexts: Counter[str] = Counter()  # number of contexts for which each nonterminal was built

    def automaton(self) -> Automaton:
        grammar = self.grammar
        if self.endless is not None:
            raise ValueError(
                f"the grammar's {shown(self.endless)}{self._place(self.endless)} derives itself without another word; "
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
        """Return the rule with about the most work, and advice, for a message."""
        branching = [name for name in self.contexts if name in self.branching]
        name = max(branching, key=lambda name: self.contexts[name] * len(self.rules[name]), default=self.grammar.start)
        return (
            f"most for {shown(name)}{self._place(name)} before {self.contexts[name]:,} different continuations: "
            "use fewer nonterminals in one alternative of its rule, or set a smaller %depth or %length"
        )

    def node(self, name: str, depth: int, words: int, rest: Weighted) -> Weighted:
        """Return the node of the nonterminal with at most this depth and number of words, before the strings of
        `rest`.
        """
        if rest[0] == NOWHERE or self.least_depth[name] > depth or self.least_words[name] > words:
            return NOWHERE, 0.0
        key = name, min(depth, self.most_depth[name]), min(words, self.most_words[name]), rest[0]
        result = self.memo.get(key)
        if result is None:
            result = self.memo[key] = self._build(name, depth, words, rest[0])
        return result[0], result[1] + rest[1]

    def _build(self, name: str, depth: int, words: int, rest: int) -> Weighted:
        self.contexts[name] += 1
        inner = depth if depth == NO_LIMIT else depth - 1
        return self.nodes.union([self._sequence(alternative, inner, words, rest) for alternative in self.rules[name]])

    def _sequence(self, alternative: Alternative, depth: int, words: int, rest: int) -> Weighted:
        self.budget.spend(1 + len(alternative.items))
        result = rest, alternative.log_weight
        least = [1 if isinstance(item, int) else self.least_words[item] for item in alternative.items]
        spare = NO_LIMIT if words == NO_LIMIT else words - sum(least)
        if spare < 0:
            return NOWHERE, 0.0
        # from the last to the first; each may use all words that the others do not need
        for item, shortest in zip(reversed(alternative.items), reversed(least), strict=True):
            if isinstance(item, int):
                result = self.nodes.after(item, result)
            else:
                result = self.node(item, depth, NO_LIMIT if words == NO_LIMIT else shortest + spare, result)
            if result[0] == NOWHERE:
                return result
        return result
