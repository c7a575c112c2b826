"""The arrays of an automaton as buffers, and what is looked up in them: arcs, steps, masses, shares.

Sizes: V words, S signatures, Q states, D steps of the longest chain of failures, A arcs, E entries, N rows, M pairs
looked up.

automata/automaton.py defines b(q, x), automata/tables.py what a state changes of the masses. A word is looked up in
all states of its chain at once, by one binary search over the keys state · V + token; a class likewise, over the keys
state · S + class. A word without weight leads to the start.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.automata.automaton import END, Automaton
from fairseq_llrnn.automata.tables import class_tables
from fairseq_llrnn.automata.trimming import steps_to_end
from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background, StaticBackground

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
        tables = class_tables(automaton, class_of.cpu().numpy(), num_classes, exact)
        self.root = StaticBackground(class_of, num_classes, log_weights)
        self.memory, self.block_size = automaton.memory, automaton.block_size
        steps = steps_to_end(automaton, exact)
        root_next = np.where(automaton.root_next >= 0, automaton.root_next, automaton.starts[0])
        ints = {
            "chain": tables.chain,
            "starts": automaton.starts,
            "arc_keys": np.append(tables.arc_keys, LAST_KEY),
            "arc_tokens": np.append(automaton.tokens, 0),
            "arc_nexts": np.append(automaton.nexts, 0),
            "arc_offsets": automaton.offsets,
            "root_next": root_next,
            "entry_keys": np.append(tables.entry_keys, LAST_KEY),
            "entry_classes": np.append(tables.entry_keys % num_classes, 0),
            "entry_offsets": tables.entry_offsets,
            "entry_arcs": np.append(tables.entry_arcs, tables.entry_arcs[-1:]),
            "by_class": np.append(tables.by_class, len(tables.by_class)),
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
        after = torch.where(some, self.arc_nexts[arc], self.after_root(states, tokens))
        return weight, torch.where(weight.isneginf(), self.starts[0], after)

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
