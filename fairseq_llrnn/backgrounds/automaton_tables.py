"""The arrays of an automaton as buffers, and what it changes of the masses of signatures.

Sizes: V words, S signatures, Q states, D steps of the longest chain of failures, A arcs, E entries (pairs of a state
and a class that one of its own arcs is in), N rows, M pairs looked up. Weights are natural logarithms in float64.

`ClassTables` say what each state (automata/automaton.py defines b(q, x)) changes of the masses: one sparse row per
state, computed once.

With β_q the cost of failing, and f what q fails to,

    B_q(σ)  =  β_q B_f(σ) + Σ_{arcs x ∈ σ} (b(q, x) − β_q b(f, x))        where the chain ends in ROOT
    B_q(σ)  =  Σ_{arcs x ∈ σ} b(q, x)                                      where it ends in NOTHING

Kept is what is to be added to log B_f(σ) + log β_q, or to log B₀(σ): a number for each entry, none for other classes.
The shares s = b(f, x) / B_f(σ) of the words on arcs are summed, and 1 − Σ s is the share of those that are not. Where
little is left of it, its digits are gone, and the members without an arc are summed themselves.

`AutomatonTables` look up arcs, steps, masses and shares. A word is looked up in all states of its chain at once, by
one binary search over the keys state · V + token; a class likewise, over the keys state · S + class.

Where a word leads does not depend on its weight: an arc of weight −inf, of a word that a factor forbids in every state,
counts in no mass, but the word may come by another part of a mixture, or as a slot. A word that neither an arc nor the
root has leads to the start of the same of the F models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.automata.automaton import END, ROOT, Automaton, ranges
from fairseq_llrnn.automata.trimming import NO_END, steps_to_end, with_arcs
from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background, StaticBackground

LITTLE = 1e-4  # a share that is summed from its members: as 1 − Σ it would have lost four of its sixteen digits
AT_ONCE = 1 << 22  # members that are summed in one go


@dataclass(frozen=True)
class ClassTables:
    """An automaton by classes (module docstring)."""

    chain: np.ndarray  # (Q, D) int64: the state, what it fails to, what that fails to, …; −1 behind the last state
    costs: np.ndarray  # (Q, D + 1): what the failures before each of them cost together; the last one: all of them
    rooted: np.ndarray  # (Q,) bool: whether the chain ends in ROOT
    arc_keys: np.ndarray  # (A,) state · V + token, rising
    by_class: np.ndarray  # (A,) arcs by state, class, weight: the heaviest first
    entry_keys: np.ndarray  # (E,) state · S + class, rising
    entry_arcs: np.ndarray  # (E + 1,) where the arcs of an entry begin in by_class
    entry_offsets: np.ndarray  # (Q + 1,) where the entries of a state begin
    added: np.ndarray  # (E,) what an entry adds to the log mass of its class


def class_tables(
    automaton: Automaton, class_of: np.ndarray, num_classes: int, log_weights: np.ndarray
) -> ClassTables:
    """The tables of an automaton that stands on the static weights log b₀ (V,); class_of: (V,)."""
    chain, costs = _chains(automaton)
    states = automaton.arc_states
    owner = states * np.int64(num_classes) + class_of[automaton.tokens]
    by_class = np.lexsort((-automaton.log_weights, owner))
    entry_keys, entry_arcs = np.unique(owner[by_class], return_index=True)
    entry_arcs = np.append(entry_arcs, len(owner))
    tables = ClassTables(
        chain=chain,
        costs=costs,
        rooted=automaton.chain_end == ROOT,
        arc_keys=automaton.keys,
        by_class=by_class,
        entry_keys=entry_keys,
        entry_arcs=entry_arcs,
        entry_offsets=np.searchsorted(entry_keys, np.arange(automaton.num_states + 1) * np.int64(num_classes)),
        added=np.zeros(len(entry_keys)),
    )
    if len(entry_keys):
        _Masses(automaton, tables, class_of, num_classes, log_weights).fill()
    return tables


def _chains(automaton: Automaton) -> tuple[np.ndarray, np.ndarray]:
    steps = int(automaton.depth.max())
    chain = np.full((automaton.num_states, steps), -1, dtype=np.int64)
    costs = np.zeros((automaton.num_states, steps + 1))
    here = np.arange(automaton.num_states)
    for step in range(steps):
        there = here >= 0
        chain[there, step] = here[there]
        costs[:, step + 1] = costs[:, step] + np.where(there, automaton.back_off[here], 0.0)
        here = np.where(there, automaton.fail[here], here)
    return chain, costs


class _Masses:
    """Fills `added`, the states with the shortest chains first."""

    def __init__(
        self,
        automaton: Automaton,
        tables: ClassTables,
        class_of: np.ndarray,
        num_classes: int,
        log_weights: np.ndarray,
    ) -> None:
        self.automaton, self.tables, self.class_of, self.num_classes = automaton, tables, class_of, num_classes
        self.root = log_weights.astype(np.float64)
        self.by_word = np.argsort(class_of, kind="stable")  # words by class
        self.class_offsets = np.concatenate([[0], np.bincount(class_of, minlength=num_classes).cumsum()])
        weighty = np.isfinite(self.root)
        top = np.full(num_classes, -np.inf)
        np.maximum.at(top, class_of[weighty], self.root[weighty])
        scaled = np.exp(self.root[weighty] - top[class_of[weighty]])
        with np.errstate(divide="ignore"):
            self.mass = np.log(np.bincount(class_of[weighty], scaled, num_classes)) + top
        self.support = np.bincount(class_of[weighty], minlength=num_classes)

    def fill(self) -> None:
        tables, automaton = self.tables, self.automaton
        weights = automaton.log_weights[tables.by_class]
        begin = tables.entry_arcs[:-1]
        top = weights[begin]  # the heaviest
        many = np.diff(tables.entry_arcs)
        of_arcs = np.log(np.add.reduceat(np.exp(weights - np.repeat(top, many)), begin)) + top  # shape: (E,)
        states, classes = np.divmod(tables.entry_keys, self.num_classes)
        explicit = ~tables.rooted[states]
        tables.added[explicit] = (of_arcs - self.mass[classes])[explicit]
        depth = (tables.chain >= 0).sum(1)[states]
        for step in range(1, tables.chain.shape[1] + 1):
            these = np.flatnonzero(~explicit & (depth == step))
            if len(these) == 0:
                continue
            below = self._mass(states[these], classes[these])  # shape: (entries,), log B_f
            rest = self._rest(these, states[these], classes[these], below)
            of_these = of_arcs[these] - automaton.back_off[states[these]] - below
            tables.added[these] = np.logaddexp(rest, of_these)

    def _rest(self, these: np.ndarray, states: np.ndarray, classes: np.ndarray, below: np.ndarray) -> np.ndarray:
        """The log share in B_f of the members that are on no arc of the state itself."""
        tables = self.tables
        many = np.diff(tables.entry_arcs)[these]
        arcs = tables.by_class[ranges(tables.entry_arcs[these], many)]
        shares = np.exp(self._weight(np.repeat(states, many), self.automaton.tokens[arcs]) - np.repeat(below, many))
        begins = np.concatenate([[0], many.cumsum()[:-1]])
        rest = 1.0 - np.add.reduceat(shares, begins)
        some = many < self.support[classes]
        little = np.flatnonzero(some & (rest < LITTLE))
        for part in np.array_split(little, self._parts(classes[little])):
            rest[part] = self._sum_rest(states[part], classes[part], below[part])
        with np.errstate(divide="ignore"):
            return np.where(some, np.log(np.maximum(rest, 0.0)), -np.inf)

    def _parts(self, classes: np.ndarray) -> int:
        """In how many goes the members of these classes are summed."""
        return 1 + int(np.diff(self.class_offsets)[classes].sum()) // AT_ONCE

    def _sum_rest(self, states: np.ndarray, classes: np.ndarray, below: np.ndarray) -> np.ndarray:
        """The share in B_f of the members without an arc, summed one by one."""
        many = np.diff(self.class_offsets)[classes]
        words = self.by_word[ranges(self.class_offsets[classes], many)]
        entry = np.repeat(np.arange(len(states)), many)
        _, on_arc = self._find(states[entry], words)
        entry, words = entry[~on_arc], words[~on_arc]
        shares = np.exp(self._weight(states[entry], words) - below[entry])
        return np.bincount(entry, shares, len(states))

    # ---- what the state that a state fails to says ------------------------------------------------------------------

    def _find(self, states: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _look_up(self.tables.arc_keys, states * np.int64(len(self.class_of)) + words)

    def _weight(self, states: np.ndarray, words: np.ndarray) -> np.ndarray:
        """log b(fail[q], x): (N,), (N,) -> (N,)."""
        chain, costs = self.tables.chain, self.tables.costs
        result = self.root[words] + costs[states, -1]
        for step in reversed(range(1, chain.shape[1])):
            here = chain[states, step]
            arcs, on_arc = self._find(here, words)
            on_arc &= here >= 0
            result = np.where(on_arc, costs[states, step] + self.automaton.log_weights[arcs], result)
        return result - self.automaton.back_off[states]

    def _mass(self, states: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """log B_fail[q](σ): (N,), (N,) -> (N,)."""
        tables = self.tables
        result = self.mass[classes] + tables.costs[states, -1] - self.automaton.back_off[states]
        for step in range(1, tables.chain.shape[1]):
            here = tables.chain[states, step]
            entries, has_entry = _look_up(tables.entry_keys, here * np.int64(self.num_classes) + classes)
            result += np.where(has_entry & (here >= 0), tables.added[entries], 0.0)
        return result


def _look_up(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where in rising keys (not none) each wanted one stands, and whether it does."""
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return places, keys[places] == wanted


LAST_KEY = np.iinfo(np.int64).max  # behind all keys, so that what is looked up and not found has a place


class AutomatonTables(Background):
    """b(q, x) of an automaton over the static weights b₀. All tables are float64."""

    chain: Tensor  # (Q, D) the state, what it fails to, …; −1 behind the last
    costs: Tensor  # (Q, D + 1) log cost of the failures before each, and of all
    rooted: Tensor  # (Q,) bool
    starts: Tensor  # (F,)
    arc_keys: Tensor  # (A + 1,)
    arc_tokens: Tensor  # (A + 1,)
    arc_weights: Tensor  # (A + 1,)
    arc_nexts: Tensor  # (A + 1,)
    arc_offsets: Tensor  # (Q + 1,)
    root_next: Tensor  # (V,)
    entry_keys: Tensor  # (E + 1,)
    entry_classes: Tensor  # (E + 1,)
    added: Tensor  # (E + 1,)
    entry_offsets: Tensor  # (Q + 1,)
    entry_arcs: Tensor  # (E + 2,) where the arcs of an entry begin in by_class
    by_class: Tensor  # (A + 1,) arcs by state and class, the heaviest first
    steps: Tensor  # (Q,) words to the nearest end

    def __init__(self, class_of: Tensor, num_classes: int, log_weights: Tensor, automaton: Automaton) -> None:
        """class_of, log_weights: (V,) as in StaticBackground, log b₀. automaton: one that `Automaton.check` passed."""
        super().__init__(class_of, num_classes)
        exact = log_weights.double().cpu().numpy()
        allowed = np.isfinite(automaton.log_weights)
        weighed = automaton if allowed.all() else with_arcs(automaton, allowed)
        tables = class_tables(weighed, class_of.cpu().numpy(), num_classes, exact)
        self.root = StaticBackground(class_of, num_classes, log_weights)
        self.memory, self.block_size = automaton.memory, automaton.block_size
        steps = steps_to_end(weighed, exact)
        if steps[automaton.starts[0]] == NO_END and weighed is not automaton:  # only by slots is an end in reach
            steps = steps_to_end(automaton, exact)
        self.forbids = weighed is not automaton  # whether an arc has no weight
        root_next = np.where(automaton.root_next >= 0, automaton.root_next, automaton.starts[0])
        ints = {
            "chain": tables.chain,
            "starts": automaton.starts,
            "arc_keys": np.append(automaton.keys, LAST_KEY),
            "arc_tokens": np.append(automaton.tokens, 0),
            "arc_nexts": np.append(automaton.nexts, 0),
            "arc_offsets": automaton.offsets,
            "root_next": root_next,
            "entry_keys": np.append(tables.entry_keys, LAST_KEY),
            "entry_classes": np.append(tables.entry_keys % num_classes, 0),
            "entry_offsets": tables.entry_offsets,
            "entry_arcs": np.append(tables.entry_arcs, tables.entry_arcs[-1:]),
            "by_class": np.append(np.flatnonzero(allowed)[tables.by_class], automaton.num_arcs),
            "steps": steps,
        }
        for name, integers in ints.items():
            self.register_buffer(name, torch.from_numpy(integers.astype(np.int64)), persistent=False)
        self.register_buffer("rooted", torch.from_numpy(tables.rooted), persistent=False)
        floats = {
            "costs": tables.costs,
            "arc_weights": np.append(automaton.log_weights, 0.0),
            "added": np.append(tables.added, 0.0),
        }
        for name, numbers in floats.items():
            self.register_buffer(name, torch.from_numpy(numbers), persistent=False)
        self.all_rooted = bool(tables.rooted.all())
        self.farthest = int(steps.max())
        self.remaining: int | None = None  # the limit of a search step (`within`)

    # ---- looking up -----------------------------------------------------------------------------------------------

    def find_arcs(self, chain: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The arc of each state (…) on its token, and whether there is one; a state below 0 has none."""
        return _find(self.arc_keys, chain * len(self.class_of) + tokens)

    def find_entries(self, chain: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Likewise, the entry of each state on its class."""
        return _find(self.entry_keys, chain * self.num_classes + classes)

    def weight(self, states: Tensor, tokens: Tensor) -> Tensor:
        """log b(q, x) of pairs: (M,), (M,) -> (M,)."""
        return self._look_up(states, tokens)[0]

    def step(self, states: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """log b(q, x), and the state after it: (M,), (M,) -> (M,), (M,)."""
        weight, arc, some = self._look_up(states, tokens)
        begin = self.starts[states // self.block_size]
        after = torch.where(self.rooted[states], self.after_root(states, tokens), begin)
        return weight, torch.where(some, self.arc_nexts[arc], after)

    def _look_up(self, states: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log b(q, x), the arc that says so, and whether there is one: (M,) each."""
        arcs, has_arc = self.find_arcs(self.chain[states], tokens.unsqueeze(1))  # shape: (M, D)
        first = has_arc.long().argmax(1, keepdim=True)
        some, arc = has_arc.any(1), arcs.gather(1, first).squeeze(1)
        by_arc = self.costs[states].gather(1, first).squeeze(1) + self.arc_weights[arc]
        by_root = self.root.word_log_weight[tokens] + self.costs[states, -1]
        by_root = by_root.masked_fill(~self.rooted[states], NEGATIVE_INFINITY)
        return torch.where(some, by_arc, by_root), arc, some

    def after_root(self, states: Tensor, tokens: Tensor) -> Tensor:
        """The state after a word that the root gave: in the same of the F models, but behind </s>."""
        block = states // self.block_size * self.block_size
        return self.root_next[tokens] + block.masked_fill(tokens == END, 0)

    def mass(self, states: Tensor, classes: Tensor) -> Tensor:
        """log B_q(σ) of pairs: (M,), (M,) -> (M,)."""
        entries, has_entry = self.find_entries(self.chain[states], classes.unsqueeze(1))
        added = self.added[entries].masked_fill(~has_entry, 0.0).sum(1)
        mass = self.root.class_log_mass[classes] + self.costs[states, -1] + added
        return mass.masked_fill(~(self.rooted[states] | has_entry.any(1)), NEGATIVE_INFINITY)

    def share(self, states: Tensor, tokens: Tensor) -> Tensor:
        """log b(q, x) − log B_q(σ(x)): (M,), (M,) -> (M,)."""
        weight, after = self.step(states, tokens)
        share = log_difference(weight, self.mass(states, self.class_of[tokens]))
        if self.remaining is None:
            return share
        return share.masked_fill(self.out_of_reach(tokens, after), NEGATIVE_INFINITY)

    def out_of_reach(self, tokens: Tensor, after: Tensor) -> Tensor:
        """Whether no end is in reach after a word that leads to the state `after`; any shape."""
        assert self.remaining is not None
        return (tokens != END) & (self.steps[after] >= self.remaining)

    def expand(self, states: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """All that states (N, D) own, by row: the row of each, and its place from `offsets` on; none below 0."""
        index = states.clamp_min(0)
        many = (offsets[index + 1] - offsets[index]).masked_fill(states < 0, 0).flatten()
        total = many.cumsum(0)
        row = torch.arange(len(states), device=many.device).repeat_interleave(states.size(1))
        # the k-th of all is the (k − those before its owner)-th of its owner
        shift = (offsets[index].flatten() - total + many).repeat_interleave(many)
        return row.repeat_interleave(many), shift.add_(torch.arange(len(shift), device=many.device))


def log_difference(weight: Tensor, mass: Tensor) -> Tensor:
    """The log share of a weight in a mass, at most 0; −inf for a word without weight."""
    return (weight - mass).clamp_max(0.0).masked_fill(weight.isneginf(), NEGATIVE_INFINITY)


def _find(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    places = torch.searchsorted(keys, wanted.contiguous())
    return places, keys[places] == wanted
