"""Nondeterministic automata of readers, with several arcs for a symbol and empty arcs, and their determinisation.

`Paths` without weights are a set of strings. With weights, a string has the sum of its paths' weights. Weights are
natural logarithms. EMPTY is the symbol of an arc that reads nothing.

Determinisation is the subset construction, with the residual weight of every path (Mohri 1997, "Finite-State
Transducers in Language and Speech Processing", §3.4, in the log semiring). Its result can be exponentially larger, and
with weights infinite: when its budget is spent, it stops with an error.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from heapq import nlargest

import numpy as np

from fairseq_llrnn.automata.automaton import END, Automaton
from fairseq_llrnn.automata.limits import Budget, TooMuchWorkError, check_mass
from fairseq_llrnn.automata.trimming import trim

EMPTY = -1
SUBSETS_LOOKED_AT = 100  # the largest subsets, which a message explains
DIGITS = 9  # of residual weights, to compare subsets

Subset = tuple[tuple[int, float], ...]  # states and residual log weights of their paths


@dataclass(frozen=True)
class Piece:
    """The states of a part of a file, from `first` to `behind` (exclusive), and its name in messages."""

    first: int
    behind: int
    name: str


@dataclass
class Paths:
    """Arcs (from, symbol, to, log weight) and final states with log weights. The start is state 0."""

    num_states: int = 1
    arcs: list[tuple[int, int, int, float]] = field(default_factory=list)
    finals: dict[int, float] = field(default_factory=dict)
    weighted: bool = False
    pieces: list[Piece] = field(default_factory=list)

    def new_state(self) -> int:
        self.num_states += 1
        return self.num_states - 1

    def add(self, origin: int, symbol: int, target: int, log_weight: float = 0.0) -> None:
        self.arcs.append((origin, symbol, target, log_weight))

    @property
    def deterministic(self) -> bool:
        pairs = {(origin, symbol) for origin, symbol, _, _ in self.arcs}
        return len(pairs) == len(self.arcs) and all(symbol != EMPTY for _, symbol, _, _ in self.arcs)


def to_automaton(paths: Paths, num_symbols: int, budget: Budget | None = None) -> Automaton:
    """Return the deterministic automaton of the same language, trimmed.

    Args:
        budget: of the work. None: MOST_STEPS.

    Raises:
        ValueError: too much work; a cycle of empty arcs with weights; no string; strings of infinite mass
            (InfiniteMassError).
    """
    if not paths.deterministic:
        subsets: dict[Subset, int] = {}
        try:
            paths = _determinized(paths, budget or Budget(), subsets)
        except TooMuchWorkError as error:
            raise ValueError(
                f"{error}: of {paths.num_states:,} states, {len(subsets):,} and more{_most_met(paths, subsets)}"
            ) from None
    automaton = trim(untrimmed(paths, num_symbols))
    if paths.weighted:
        check_mass(automaton)
    return automaton


def untrimmed(paths: Paths, num_symbols: int) -> Automaton:
    """Return the automaton of deterministic paths, with arcs for </s> in final states."""
    arcs = [*paths.arcs, *((state, END, 0, weight) for state, weight in paths.finals.items())]
    columns: list[tuple[float, ...]] = list(zip(*arcs, strict=True)) if arcs else [()] * 4
    states, tokens, nexts = (np.array(column, dtype=np.int64) for column in columns[:3])
    weights = np.array(columns[3], dtype=np.float64)
    return Automaton.from_arcs(num_symbols, paths.num_states, 0, states, tokens, nexts, weights)


def _most_met(paths: Paths, subsets: Iterable[Subset]) -> str:
    """Return advice about too many subsets, with the piece of the file that has most members in them, the
    innermost one.
    """
    members = [state for subset in nlargest(SUBSETS_LOOKED_AT, subsets, key=len) for state, _ in subset]
    before = np.concatenate([[0], np.bincount(members, minlength=paths.num_states).cumsum()])
    counts = [int(before[piece.behind] - before[piece.first]) for piece in paths.pieces]
    most = max(counts, default=0)
    if most == 0:
        return "; make it deterministic first, or smaller"
    candidates = [piece for piece, count in zip(paths.pieces, counts, strict=True) if 2 * count >= most]
    inner = min(candidates, key=lambda piece: piece.behind - piece.first)
    return (
        f", most of them for {inner.name}: a string may match it at many places at once; repeat less, or put words "
        "before it that mark its beginning"
    )


def _determinized(paths: Paths, budget: Budget, index: dict[Subset, int]) -> Paths:
    """Return equivalent paths without empty arcs, and with at most one arc per state and symbol.

    Args:
        index: gets the subsets and their indices.
    """
    after: list[list[tuple[int, int, float]]] = [[] for _ in range(paths.num_states)]
    empty: list[list[tuple[int, float]]] = [[] for _ in range(paths.num_states)]
    for origin, symbol, target, weight in paths.arcs:
        if symbol == EMPTY:
            empty[origin].append((target, weight))
        else:
            after[origin].append((symbol, target, weight))
    closures = _Closures(empty, paths.weighted, budget)
    result = Paths(num_states=0, weighted=paths.weighted)
    waiting: list[Subset] = []

    def number(subset: Subset) -> int:
        state = index.get(subset)
        if state is None:
            state = index[subset] = result.num_states
            result.num_states += 1
            budget.check_states(result.num_states)
            waiting.append(subset)
        return state

    start, in_common = closures.subset([(0, 0.0)])
    number(start)
    while waiting:
        subset = waiting.pop()
        origin = index[subset]
        budget.spend(sum(len(after[state]) for state, _ in subset))
        by_symbol: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for state, rest in subset:
            for symbol, target, weight in after[state]:
                by_symbol[symbol].append((target, rest + weight))
        alike: dict[tuple[tuple[int, float], ...], tuple[int, float]] = {}  # members -> arc
        for symbol in sorted(by_symbol):
            members = tuple(by_symbol[symbol])
            arc = alike.get(members)
            if arc is None:
                target_subset, weight = closures.subset(members)
                arc = alike[members] = number(target_subset), weight
            result.add(origin, symbol, *arc)
        ends = [rest + paths.finals[state] for state, rest in subset if state in paths.finals]
        if ends:
            result.finals[origin] = log_sum(ends) if paths.weighted else 0.0
    # at the end of each string, because paths may return to the start
    result.finals = {state: weight + in_common for state, weight in result.finals.items()}
    return result


class _Closures:
    """The states that empty arcs reach."""

    def __init__(self, empty: list[list[tuple[int, float]]], weighted: bool, budget: Budget) -> None:
        self.empty, self.weighted, self.budget = empty, weighted, budget
        self.closures: dict[int, list[tuple[int, float]]] = {}

    def subset(self, members: Iterable[tuple[int, float]]) -> tuple[Subset, float]:
        """Return the subset that members reach, and its common log weight."""
        if not self.weighted:
            reached: set[int] = set()
            for state, _ in members:
                if state not in reached:
                    targets = self.of(state)
                    self.budget.spend(len(targets))
                    reached.update(target for target, _ in targets)
            return tuple((state, 0.0) for state in sorted(reached)), 0.0
        weights: dict[int, list[float]] = defaultdict(list)
        for state, weight in members:
            targets = self.of(state)
            self.budget.spend(2 * len(targets))
            for target, further in targets:
                weights[target].append(weight + further)
        sums = {state: log_sum(parts) for state, parts in weights.items()}
        total = log_sum(sums.values())
        return tuple((state, round(sums[state] - total, DIGITS)) for state in sorted(sums)), total

    def of(self, state: int) -> list[tuple[int, float]]:
        closure = self.closures.get(state)
        if closure is None:
            closure = self.closures[state] = (
                self._weigh(state) if self.weighted else [(target, 0.0) for target in self._reach(state)]
            )
            self.budget.spend(len(closure))
        return closure

    def _reach(self, state: int) -> set[int]:
        seen, waiting = {state}, [state]
        while waiting:
            targets = self.empty[waiting.pop()]
            self.budget.spend(len(targets))
            new = {target for target, _ in targets} - seen
            seen |= new
            waiting += new
        return seen

    def _weigh(self, state: int) -> list[tuple[int, float]]:
        """Return the sums over empty paths, in topological order of the states."""
        before: dict[int, list[int]] = {reached: [] for reached in self._reach(state)}
        for reached in before:
            for target, _ in self.empty[reached]:
                before[target].append(reached)
        try:
            order = list(TopologicalSorter(before).static_order())
        except CycleError:
            raise ValueError("the automaton has a cycle of empty arcs (<eps>) with weights; remove it") from None
        parts: dict[int, list[float]] = defaultdict(list)
        parts[state].append(0.0)
        result = []
        for reached in order:
            weight = log_sum(parts[reached])
            result.append((reached, weight))
            for target, further in self.empty[reached]:
                parts[target].append(weight + further)
        return result


def log_sum(log_weights: Iterable[float]) -> float:
    """Return log Σ exp of finite numbers."""
    numbers = list(log_weights)
    top = max(numbers)
    return top if len(numbers) == 1 else top + math.log(math.fsum(math.exp(number - top) for number in numbers))
