"""The arrays of an automaton as buffers, and their changes to the masses of signatures.

Sizes: V words, S signatures, Q states, D steps of the longest chain of failures, A arcs, E entries (pairs of a state
and a class of one of its own arcs), N rows, M queried pairs. Weights are natural logarithms in float64.

The changes of each state to the masses are one sparse row, computed once (automata/automaton.py defines b(q, x)). With
β_q the cost of failing, and f the failure state of q,

    B_q(σ)  =  β_q B_f(σ) + Σ_{arcs x ∈ σ} (b(q, x) − β_q b(f, x))        if the chain ends in ROOT
    B_q(σ)  =  Σ_{arcs x ∈ σ} b(q, x)                                      if it ends in NOTHING

Each entry stores the number to add to log B_f(σ) + log β_q, or to log B₀(σ). The shares s = b(f, x) / B_f(σ) of the
words on arcs are summed, and 1 − Σ s is the share of the other members. If little is left, its digits are lost, and
the members without an arc are summed instead.

`AutomatonTables` look up arcs, steps, masses and shares. A word is looked up in all states of its chain at once, by
one binary search over the keys state · V + token. A class is looked up by the keys state · S + class.

The next state of a word does not depend on its weight. An arc of weight −inf, for a word that a factor forbids,
counts in no mass. But the word may come from another part of a mixture, or from a slot. If a state's chain ends in
NOTHING, no string of the language continues with a word without an arc. Such a word leads to the last state, which has
no weight until the sentence ends.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.automata.automaton import END, ROOT, Automaton
from fairseq_llrnn.automata.trimming import NO_END, steps_to_end, with_arcs
from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, Background, StaticBackground
from fairseq_llrnn.backgrounds.class_weights import class_log_sums, expanded
from fairseq_llrnn.features.dictionary import PAD, SPECIALS

PADDING = SPECIALS.index(PAD)
LITTLE = 1e-4  # smaller shares are summed from their members: 1 − Σ would lose four of its sixteen digits
AT_ONCE = 1 << 22  # entries, or members that are summed, in one chunk


def _chains(automaton: Automaton) -> tuple[np.ndarray, np.ndarray]:
    """Return `chain` and `costs`, without the state of no weight."""
    steps = int(automaton.depth.max())
    chain = np.full((automaton.num_states, steps), -1, dtype=np.int64)
    costs = np.zeros((automaton.num_states, steps + 1))
    state = np.arange(automaton.num_states)
    for step in range(steps):
        exists = state >= 0
        chain[exists, step] = state[exists]
        costs[:, step + 1] = costs[:, step] + np.where(exists, automaton.back_off[state], 0.0)
        state = np.where(exists, automaton.fail[state], state)
    return chain, costs


LAST_KEY = np.iinfo(np.int64).max  # after all keys, so that missing keys have a place


class AutomatonTables(Background):
    """b(q, x) of an automaton over the static weights b₀. All tables are float64.

    The Q states are those of the automaton and, unless all are rooted, the state of no weight as the last one.
    """

    chain: Tensor  # (Q, D) the state, its failure state, …; padded with −1
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
    entry_arcs: Tensor  # (E + 2,) offsets of the entries' arcs in by_class
    by_class: Tensor  # (A + 1,) arcs by state and class, the heaviest first
    steps: Tensor  # (Q,) words to the nearest end

    def __init__(self, class_of: Tensor, num_classes: int, log_weights: Tensor, automaton: Automaton) -> None:
        """class_of, log_weights: (V,) as in StaticBackground, log b₀. automaton: checked by `Automaton.check`."""
        super().__init__(class_of, num_classes)
        exact = log_weights.double().cpu().numpy()
        allowed = np.isfinite(automaton.log_weights)
        weighed = automaton if allowed.all() else with_arcs(automaton, allowed)
        chain, costs = _chains(automaton)
        owner = weighed.arc_states * np.int64(num_classes) + class_of.cpu().numpy()[weighed.tokens]
        by_class = np.lexsort((-weighed.log_weights, owner))
        entry_keys, entry_arcs = np.unique(owner[by_class], return_index=True)
        self.static = StaticBackground(class_of, num_classes, log_weights)
        self.memory, self.block_size = automaton.memory, automaton.block_size
        steps = steps_to_end(weighed, exact)
        if steps[automaton.starts[0]] == NO_END and weighed is not automaton:  # only slots reach an end
            steps = steps_to_end(automaton, exact)
        self.forbids = weighed is not automaton  # whether an arc has no weight
        root_next = np.where(automaton.root_next >= 0, automaton.root_next, automaton.starts[0])
        rooted = automaton.chain_end == ROOT
        self.all_rooted = bool(rooted.all())
        more = 0 if self.all_rooted else 1
        chain = np.pad(chain, ((0, more), (0, 0)), constant_values=-1)
        chain[automaton.num_states :, 0] = automaton.num_states
        arrays = {
            "chain": chain,
            "costs": np.pad(costs, ((0, more), (0, 0))),
            "rooted": np.pad(rooted, (0, more)),
            "starts": automaton.starts.copy(),
            "arc_keys": np.append(automaton.keys, LAST_KEY),
            "arc_tokens": np.append(automaton.tokens, 0),
            "arc_weights": np.append(automaton.log_weights, 0.0),
            "arc_nexts": np.append(automaton.nexts, 0),
            "arc_offsets": np.pad(automaton.offsets, (0, more), mode="edge"),
            "root_next": root_next,
            "entry_keys": np.append(entry_keys, LAST_KEY),
            "entry_classes": np.append(entry_keys % num_classes, 0),
            "added": np.zeros(len(entry_keys) + 1),
            "entry_offsets": np.searchsorted(entry_keys, np.arange(len(chain) + 1) * np.int64(num_classes)),
            "entry_arcs": np.append(entry_arcs, [len(owner)] * 2),
            "by_class": np.append(np.flatnonzero(allowed)[by_class], automaton.num_arcs),
            "steps": np.pad(steps, (0, more), constant_values=NO_END),
        }
        self.keep(**{name: torch.from_numpy(array) for name, array in arrays.items()})
        self.most_steps = int(steps.max())
        if len(entry_keys):
            self._fill_added()

    @property
    def root(self) -> StaticBackground:
        return self.static

    # ---- values of entries ------------------------------------------------------------------------------------------

    def _fill_added(self) -> None:
        """Compute `added`, which is 0 at first, by ascending length of the states' chains (module docstring)."""
        states, classes, arcs = self.entry_keys[:-1] // self.num_classes, self.entry_classes[:-1], self._arcs_of_entries
        entry = torch.arange(len(arcs)).repeat_interleave(arcs)
        of_arcs = class_log_sums(self.arc_weights[self.by_class[:-1]].unsqueeze(0), entry, len(arcs)).squeeze(0)
        rooted = self.rooted[states]
        self.added[:-1][~rooted] = (of_arcs - self.static.class_log_mass[classes])[~rooted]
        depth = (self.chain[states] >= 0).sum(1).masked_fill(~rooted, 0)
        for level in range(1, self.chain.size(1) + 1):
            for chunk in (depth == level).nonzero().squeeze(1).split(AT_ONCE):
                state, of_class = states[chunk], classes[chunk]
                failing = self.costs[state, 1]
                below = self.mass(state, of_class) - failing  # log B_f, while `added` of the entry is 0
                rest = self._rest(chunk, state, of_class, below)
                self.added[chunk] = torch.logaddexp(rest, of_arcs[chunk] - failing - below)

    @property
    def _arcs_of_entries(self) -> Tensor:
        """The number of arcs of each entry: (E,)."""
        return self.entry_arcs[:-1].diff()

    def _rest(self, entries: Tensor, states: Tensor, classes: Tensor, below: Tensor) -> Tensor:
        """Return the log share in B_f of the members without an arc in the state itself: (M,) each -> (M,)."""
        counts = self._arcs_of_entries[entries]
        index, places = expanded(self.entry_arcs[entries], counts)
        words = self.arc_tokens[self.by_class[places]]
        shares = (self._failing_weight(states[index], words) - below[index]).exp()
        rest = 1.0 - shares.new_zeros(len(entries)).index_add(0, index, shares)
        others = counts < self.static.class_support[classes]
        little = (others & (rest < LITTLE)).nonzero().squeeze(1)
        for part in little.tensor_split(1 + int(self.static.class_support[classes[little]].sum()) // AT_ONCE):
            rest[part] = self._sum_of_rest(states[part], classes[part], below[part])
        return rest.clamp_min(0.0).log().masked_fill(~others, NEGATIVE_INFINITY)

    def _sum_of_rest(self, states: Tensor, classes: Tensor, below: Tensor) -> Tensor:
        """Return the share in B_f of the members without an arc, summed one by one."""
        index, places = expanded(self.static.class_starts[classes], self.static.class_support[classes])
        words = self.static.ranked_members[places]
        shares = (self._failing_weight(states[index], words) - below[index]).exp()
        on_arc = self.find_arcs(states[index], words)[1]
        return shares.new_zeros(len(states)).index_add(0, index, shares.masked_fill(on_arc, 0.0))

    def _failing_weight(self, states: Tensor, tokens: Tensor) -> Tensor:
        """Return log b(f, x) in the failure states of states: (M,), (M,) -> (M,)."""
        return self.look_up(states, tokens, failing=True)[0] - self.costs[states, 1]

    # ---- queries --------------------------------------------------------------------------------------------------

    def find_arcs(self, chain: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return the arc of each state (…) for its token, and whether it exists; a state below 0 has none."""
        return _find(self.arc_keys, chain * len(self.class_of) + tokens)

    def find_entries(self, chain: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Return the entry of each state (…) for its class, and whether it exists."""
        return _find(self.entry_keys, chain * self.num_classes + classes)

    def step(self, states: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return log b(q, x), and the next state: (M,), (M,) -> (M,), (M,)."""
        weight, arc, has_arc = self.look_up(states, tokens)
        return weight, torch.where(has_arc, self.arc_nexts[arc], self.after_no_arc(states, tokens))

    def look_up(self, states: Tensor, tokens: Tensor, failing: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Return log b(q, x), the arc of this weight, and whether there is one: (M,) each.

        Args:
            failing: whether to ignore the states' own arcs: then the weight is β_q b(f, x).
        """
        arcs, has_arc = self.find_arcs(self.chain[states], tokens.unsqueeze(1))  # shape: (M, D)
        if failing:
            has_arc[:, 0] = False
        first = has_arc.long().argmax(1, keepdim=True)
        has_any, arc = has_arc.any(1), arcs.gather(1, first).squeeze(1)
        by_arc = self.costs[states].gather(1, first).squeeze(1) + self.arc_weights[arc]
        by_root = self.static.word_log_weight[tokens] + self.costs[states, -1]
        by_root = by_root.masked_fill(~self.rooted[states], NEGATIVE_INFINITY)
        return torch.where(has_any, by_arc, by_root), arc, has_any

    def after_no_arc(self, states: Tensor, tokens: Tensor) -> Tensor:
        """Return the states after words without an arc: (…), (…) -> (…).

        A word of the root stays in the same of the F models. Any other word leads to the state of no weight. After </s>
        and padding, a new sentence begins, even if </s> is forbidden.
        """
        block = states // self.block_size * self.block_size
        by_root = self.root_next[tokens] + block.masked_fill(tokens == END, 0)
        begins = (tokens == END) | (tokens == PADDING)
        closed = torch.where(begins, self.starts[0], len(self.chain) - 1)
        return torch.where(self.rooted[states], by_root, closed)

    def mass(self, states: Tensor, classes: Tensor) -> Tensor:
        """Return log B_q(σ) of pairs: (M,), (M,) -> (M,)."""
        entries, has_entry = self.find_entries(self.chain[states], classes.unsqueeze(1))
        added = self.added[entries].masked_fill(~has_entry, 0.0).sum(1)
        mass = self.static.class_log_mass[classes] + self.costs[states, -1] + added
        return mass.masked_fill(~(self.rooted[states] | has_entry.any(1)), NEGATIVE_INFINITY)

    def expand(self, states: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """Return all items of states (N, D): the row of each, and its place, given `offsets`. States below 0
        have none.
        """
        index = states.clamp_min(0)
        counts = (offsets[index + 1] - offsets[index]).masked_fill(states < 0, 0)
        owner, places = expanded(offsets[index].flatten(), counts.flatten())
        return owner // states.size(1), places


def _find(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    places = torch.searchsorted(keys, wanted.contiguous())
    return places, keys[places] == wanted
