"""Acyclic automata built from the end to the beginning, so that equal continuations are one state.

A node is a deterministic state: its row (symbol -> node and log weight), with </s> if a string may end. Two nodes
with equal rows are the same node (Revuz 1992; Daciuk et al. 2000). As a node's successors exist before it, the
automaton is always minimal, and a node that many contexts share is built once.

With weights, a node's strings have the sum one, and their total is moved to the arcs that lead to it (weight pushing,
Mohri 2000): a node always comes with a log weight. Without weights all of them are 0, and a union is a set's.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from fairseq_llrnn.automata.automaton import END, Automaton
from fairseq_llrnn.automata.limits import Budget
from fairseq_llrnn.automata.nondeterministic import log_sum

NOWHERE = -1  # the node of no string at all
DIGITS = 10  # of weights, to compare nodes

Weighted = tuple[int, float]  # a node, and the log weight of the arc that leads to it
Row = tuple[tuple[int, int, float], ...]  # symbol, node, log weight; END's node is 0


class SharedNodes:
    """Nodes without duplicates (module docstring). Node 0 is the end: only the empty string."""

    def __init__(self, weighted: bool, longest: int | None = None, budget: Budget | None = None) -> None:
        """Create the end.

        Args:
            weighted: whether arcs have weights; if not, all log weights are 0.
            longest: the largest number of words of a string; longer ones are left out of every node.
            budget: if it is spent, methods that make nodes raise TooMuchWorkError. None: no limit.
        """
        self.weighted, self.longest, self.budget = weighted, longest, budget or Budget(sys.maxsize)
        self.rows: list[Row] = []
        self.lengths: list[tuple[int, int]] = []  # the fewest and the most words of each node, if `longest` is set
        self._index: dict[Row, int] = {}
        self._unions: dict[tuple[Weighted, ...], Weighted] = {}
        self._shortened: dict[tuple[int, int], Weighted] = {}
        self.end = self._node(((END, 0, 0.0),))

    def after(self, symbol: int, rest: Weighted) -> Weighted:
        """Return the strings of `rest` after a symbol."""
        node, weight = rest
        return rest if node == NOWHERE else self._short(self._node(((symbol, node, 0.0),)), weight)

    def union(self, parts: Iterable[Weighted]) -> Weighted:
        """Return all strings of the parts; a string of several parts has the sum of their weights."""
        left = [part for part in parts if part[0] != NOWHERE]
        left = left if self.weighted else list(set(left))
        if not left:
            return NOWHERE, 0.0
        if len(left) == 1:
            return left[0]
        top = max(weight for _, weight in left)
        key = tuple(sorted((node, round(weight - top, DIGITS)) for node, weight in left))
        self._spend(len(key))
        summed = self._unions.get(key)
        if summed is None:
            self._spend(sum(len(self.rows[node]) for node, _ in key))
            by_symbol: dict[int, list[Weighted]] = defaultdict(list)
            for node, weight in key:
                for symbol, target, further in self.rows[node]:
                    by_symbol[symbol].append((target, weight + further))
            ends = by_symbol.pop(END, None)
            row = {symbol: self.union(targets) for symbol, targets in by_symbol.items()}
            if ends is not None:
                row[END] = self.end, self._total(ends)
            summed = self._unions[key] = self.normalised(row)
        return summed[0], summed[1] + top

    def _spend(self, steps: int) -> None:
        self.budget.spend(2 * steps if self.weighted else steps)

    def _total(self, row: Iterable[Weighted]) -> float:
        return log_sum(weight for _, weight in row) if self.weighted else 0.0

    def normalised(self, row: dict[int, Weighted]) -> Weighted:
        """Return the node of a row, with its strings' weights divided by their sum, and the log sum."""
        alive = {symbol: target for symbol, target in row.items() if target[0] != NOWHERE}
        if not alive:
            return NOWHERE, 0.0
        total = self._total(alive.values())
        return self._node(tuple((x, alive[x][0], round(alive[x][1] - total, DIGITS)) for x in sorted(alive))), total

    def _node(self, row: Row) -> int:
        self.budget.spend(len(row))
        node = self._index.get(row)
        if node is None:
            node = self._index[row] = len(self.rows)
            self.rows.append(row)
            if self.longest is not None:
                # </s> is no word
                lengths = [(0, 0) if x == END else (self.lengths[n][0] + 1, self.lengths[n][1] + 1) for x, n, _ in row]
                self.lengths.append((min(least for least, _ in lengths), max(most for _, most in lengths)))
        return node

    # ---- lengths ----------------------------------------------------------------------------------------------------

    def _short(self, node: int, weight: float) -> Weighted:
        """Return the node's strings that are not too long."""
        if self.longest is None or self.lengths[node][1] <= self.longest:
            return node, weight
        short, lost = self._shorten(node, self.longest)
        return short, weight + lost

    def _shorten(self, node: int, longest: int) -> Weighted:
        least, most = self.lengths[node]
        if most <= longest:
            return node, 0.0
        if least > longest:
            return NOWHERE, 0.0
        key = node, longest
        shortened = self._shortened.get(key)
        if shortened is None:
            self.budget.spend(len(self.rows[node]))
            row = {}
            for symbol, target, weight in self.rows[node]:
                short, lost = (target, 0.0) if symbol == END else self._shorten(target, longest - 1)
                row[symbol] = short, weight + lost
            shortened = self._shortened[key] = self.normalised(row)
        return shortened

    # ---- arrays -----------------------------------------------------------------------------------------------------

    def automaton(self, start: int, num_symbols: int) -> Automaton:
        """Return the automaton of a node's strings.

        Raises:
            ValueError: it has none.
        """
        if start == NOWHERE:
            raise ValueError("the automaton accepts no string")
        order, waiting = {start: 0}, [start]
        while waiting:
            for symbol, target, _ in self.rows[waiting.pop()]:
                if symbol != END and target not in order:
                    order[target] = len(order)
                    waiting.append(target)
        rows = [self.rows[node] for node in order]
        flat = [arc for row in rows for arc in row]
        nexts = [0 if symbol == END else order[node] for symbol, node, _ in flat]
        return Automaton.from_arcs(
            num_symbols,
            len(rows),
            0,
            np.repeat(np.arange(len(rows)), [len(row) for row in rows]),
            np.array([symbol for symbol, _, _ in flat], dtype=np.int64),
            np.array(nexts, dtype=np.int64),
            np.array([weight for _, _, weight in flat]),
        )
