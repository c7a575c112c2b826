"""Automata as people and programs write them, with several arcs on one symbol and empty ones, and how they become ours.

A `Paths` without weights is a set of strings: it says of each whether it belongs. One with weights gives a string the
sum of its paths' weights. Weights are natural logarithms; EMPTY is the symbol of an arc that reads nothing.

Determinisation is the subset construction, with what is left over of every path's weight (Mohri 1997, "Finite-State
Transducers in Language and Speech Processing", §3.4, in the log semiring). Its result can be exponentially larger, and
with weights infinite: it stops at a limit and says so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from fairseq_llrnn.automata.automaton import END, Automaton
from fairseq_llrnn.automata.mass import check_mass
from fairseq_llrnn.automata.trimming import trim

EMPTY = -1
MOST_STATES = 500_000
MOST_ARCS = 20_000_000
DIGITS = 9  # of what is left over of a weight, by which subsets are told apart

Subset = tuple[tuple[int, float], ...]  # states and what is left over of their paths' log weights


@dataclass
class Paths:
    """Arcs (from, symbol, to, log weight) and final states with log weights. The start is state 0."""

    num_states: int = 1
    arcs: list[tuple[int, int, int, float]] = field(default_factory=list)
    finals: dict[int, float] = field(default_factory=dict)
    weighted: bool = False

    def new_state(self) -> int:
        self.num_states += 1
        return self.num_states - 1

    def add(self, origin: int, symbol: int, target: int, log_weight: float = 0.0) -> None:
        self.arcs.append((origin, symbol, target, log_weight))

    @property
    def deterministic(self) -> bool:
        pairs = {(origin, symbol) for origin, symbol, _, _ in self.arcs}
        return len(pairs) == len(self.arcs) and all(symbol != EMPTY for _, symbol, _, _ in self.arcs)


def to_automaton(paths: Paths, num_symbols: int, limit: int | None = None) -> Automaton:
    """The deterministic automaton of the same language, trimmed.

    Raises:
        ValueError: more than `limit` (MOST_STATES) states; a cycle of empty arcs with weights; no string; strings of
        infinite mass (InfiniteMassError).
    """
    if not paths.deterministic:
        paths = determinize(paths, limit)
    return finish(paths, num_symbols)


def finish(paths: Paths, num_symbols: int) -> Automaton:
    """The automaton of paths that are deterministic: trimmed, of finite mass. Raises as `to_automaton`."""
    automaton = trim(untrimmed(paths, num_symbols))
    if paths.weighted:
        check_mass(automaton)
    return automaton


def untrimmed(paths: Paths, num_symbols: int) -> Automaton:
    """The arcs of paths that are deterministic, and </s> in final states."""
    arcs = [*paths.arcs, *((state, END, 0, weight) for state, weight in paths.finals.items())]
    columns: list[tuple[float, ...]] = list(zip(*arcs, strict=True)) if arcs else [()] * 4
    states, tokens, nexts = (np.array(column, dtype=np.int64) for column in columns[:3])
    weights = np.array(columns[3], dtype=np.float64)
    return Automaton.from_arcs(num_symbols, paths.num_states, 0, states, tokens, nexts, weights)


def determinize(paths: Paths, limit: int | None = None) -> Paths:
    """Paths of the same strings with the same weights, no two of them with the same symbols, none empty.

    Raises:
        ValueError: more than `limit` (MOST_STATES) states or MOST_ARCS arcs; a cycle of empty arcs with weights.
    """
    limit = MOST_STATES if limit is None else limit
    after: list[list[tuple[int, int, float]]] = [[] for _ in range(paths.num_states)]
    empty: list[list[tuple[int, float]]] = [[] for _ in range(paths.num_states)]
    for origin, symbol, target, weight in paths.arcs:
        if symbol == EMPTY:
            empty[origin].append((target, weight))
        else:
            after[origin].append((symbol, target, weight))
    closures = _Closures(empty, paths.weighted)
    result = Paths(num_states=0, weighted=paths.weighted)
    index: dict[Subset, int] = {}
    waiting: list[Subset] = []

    def number(subset: Subset) -> int:
        found = index.get(subset)
        if found is None:
            if result.num_states >= limit:
                raise ValueError(
                    f"the automaton has more than {limit:,} states when no two paths may have the same words "
                    f"({paths.num_states:,} before)"
                )
            found = index[subset] = result.num_states
            result.num_states += 1
            waiting.append(subset)
        return found

    start, left = closures.subset([(0, 0.0)])
    number(start)
    first = left  # what all strings have in common, given to the arcs of the first state below
    while waiting:
        subset = waiting.pop()
        origin = index[subset]
        by_symbol: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for state, rest in subset:
            for symbol, target, weight in after[state]:
                by_symbol[symbol].append((target, rest + weight))
        for symbol in sorted(by_symbol):
            target_subset, weight = closures.subset(by_symbol[symbol])
            result.add(origin, symbol, number(target_subset), weight)
        if len(result.arcs) > MOST_ARCS:
            raise ValueError(
                f"the automaton has more than {MOST_ARCS:,} arcs when no two paths may have the same words "
                f"({len(paths.arcs):,} before)"
            )
        ends = [rest + paths.finals[state] for state, rest in subset if state in paths.finals]
        if ends:
            result.finals[origin] = log_sum(ends) if paths.weighted else 0.0
    if first != 0.0:
        _scale_strings(result, first)
    return result


def _scale_strings(paths: Paths, log_weight: float) -> None:
    """Give every string a factor, at its end: the start may be come back to."""
    for state in paths.finals:
        paths.finals[state] += log_weight


class _Closures:
    """States that empty arcs lead to."""

    def __init__(self, empty: list[list[tuple[int, float]]], weighted: bool) -> None:
        self.empty, self.weighted = empty, weighted
        self.known: dict[int, list[tuple[int, float]]] = {}

    def subset(self, members: Iterable[tuple[int, float]]) -> tuple[Subset, float]:
        """The states that members lead to, and the log weight that they have in common."""
        if not self.weighted:
            reached: set[int] = set()
            for state, _ in members:
                if state not in reached:
                    reached.update(target for target, _ in self.of(state))
            return tuple((state, 0.0) for state in sorted(reached)), 0.0
        weights: dict[int, list[float]] = defaultdict(list)
        for state, weight in members:
            for target, further in self.of(state):
                weights[target].append(weight + further)
        sums = {state: log_sum(parts) for state, parts in weights.items()}
        total = log_sum(sums.values())
        return tuple((state, round(sums[state] - total, DIGITS)) for state in sorted(sums)), total

    def of(self, state: int) -> list[tuple[int, float]]:
        found = self.known.get(state)
        if found is None:
            found = self.known[state] = self._weigh(state) if self.weighted else self._reach(state)
        return found

    def _reach(self, state: int) -> list[tuple[int, float]]:
        seen, waiting = {state}, [state]
        while waiting:
            for target, _ in self.empty[waiting.pop()]:
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        return [(target, 0.0) for target in seen]

    def _weigh(self, state: int) -> list[tuple[int, float]]:
        """Sums over empty paths, in an order in which each state comes after all that lead to it."""
        order: list[int] = []
        on_path, done = set(), set()
        stack = [(state, iter(self.empty[state]))]
        on_path.add(state)
        while stack:
            here, targets = stack[-1]
            for target, _ in targets:
                if target in on_path:
                    raise ValueError("the automaton has a cycle of empty arcs (<eps>) with weights; remove it")
                if target not in done:
                    on_path.add(target)
                    stack.append((target, iter(self.empty[target])))
                    break
            else:
                stack.pop()
                on_path.discard(here)
                done.add(here)
                order.append(here)
        parts: dict[int, list[float]] = defaultdict(list)
        parts[state].append(0.0)
        result = []
        for here in reversed(order):
            weight = log_sum(parts[here])
            result.append((here, weight))
            for target, further in self.empty[here]:
                parts[target].append(weight + further)
        return result


def log_sum(log_weights: Iterable[float]) -> float:
    """log Σ exp of some finite numbers."""
    numbers = list(log_weights)
    top = max(numbers)
    return top if len(numbers) == 1 else top + math.log(math.fsum(math.exp(number - top) for number in numbers))
