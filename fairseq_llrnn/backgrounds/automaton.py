"""The background of a weighted automaton: n-grams, grammars, dictionaries of strings.

Sizes: V words, S signatures, Q states, D steps of the longest chain of failures, A arcs, E entries, N hypotheses,
B batch, T time, M pairs looked up.

automata/automaton.py defines b(q, x), automata/tables.py what a state changes of the masses. A word is
looked up in all states of its chain at once, by one binary search over the keys state · V + token; a class likewise,
over the keys state · S + class. What a hypothesis carries is the number of a state, (N, 1). A word without weight
leads to the start.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.automata.automaton import END, Automaton
from fairseq_llrnn.automata.tables import class_tables
from fairseq_llrnn.automata.trimming import NO_END, steps_to_end
from fairseq_llrnn.backgrounds import automaton_topk as automaton_members
from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background, Corrections
from fairseq_llrnn.backgrounds.static import StaticBackground
from fairseq_llrnn.features.dictionary import PAD, SPECIALS
from fairseq_llrnn.ngrams.folds import folds_along

PADDING = SPECIALS.index(PAD)
LAST_KEY = np.iinfo(np.int64).max  # behind all keys, so that what is looked up and not found has a place


class AutomatonBackground(Background):
    """b(q, x) of an automaton over the static weights b₀. Tables are summed in float64, kept in the weights' dtype."""

    sparse = True
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

    def __init__(
        self,
        class_of: Tensor,
        num_classes: int,
        log_weights: Tensor,
        automaton: Automaton,
        with_folds: bool = False,
    ) -> None:
        """class_of, log_weights: (V,) as in StaticBackground, log b₀.

        Args:
            automaton: one that `Automaton.check` passed.
            with_folds: whether the states of the held-out models are here, too; without, `held_out` makes them when it
                needs them, for they take their time.
        """
        super().__init__(class_of, num_classes)
        self.folds = automaton if len(automaton.starts) > 1 and not with_folds else None
        automaton = automaton if with_folds else automaton.in_use
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
            self.register_buffer(name, torch.from_numpy(numbers).to(log_weights.dtype), persistent=False)
        self.all_rooted = bool(tables.rooted.all())
        self.farthest = int(steps.max())
        self.remaining: int | None = None  # the limit of a search step (`within`)
        self.sentence_starts: Tensor | None = None  # (B, T) of a batch of held-out text (`held_out`)

    # ---- looking up -----------------------------------------------------------------------------------------------

    def find_arcs(self, chain: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The arc of each state (…) on its token, and whether there is one; a state below 0 has none."""
        return _find(self.arc_keys, chain * len(self.class_of) + tokens)

    def find_entries(self, chain: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Likewise, the entry of each state on its class."""
        return _find(self.entry_keys, chain * self.num_classes + classes)

    def step(self, states: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """log b(q, x), and the state after it: (M,), (M,) -> (M,), (M,)."""
        arcs, found = self.find_arcs(self.chain[states], tokens.unsqueeze(1))  # shape: (M, D)
        first = found.long().argmax(1, keepdim=True)
        some, arc = found.any(1), arcs.gather(1, first).squeeze(1)
        by_arc = self.costs[states].gather(1, first).squeeze(1) + self.arc_weights[arc]
        by_root = self.root.word_log_weight[tokens] + self.costs[states, -1]
        by_root = by_root.masked_fill(~self.rooted[states], NEGATIVE_INFINITY)
        weight = torch.where(some, by_arc, by_root)
        after = torch.where(some, self.arc_nexts[arc], self.after_root(states, tokens))
        return weight, torch.where(weight.isneginf(), self.starts[0], after)

    def after_root(self, states: Tensor, tokens: Tensor) -> Tensor:
        """The state after a word that the root gave: in the same of the F models, but behind </s>."""
        block = states // self.block_size * self.block_size
        return self.root_next[tokens] + block.masked_fill(tokens == END, 0)

    def mass(self, states: Tensor, classes: Tensor) -> Tensor:
        """log B_q(σ) of pairs: (M,), (M,) -> (M,)."""
        entries, found = self.find_entries(self.chain[states], classes.unsqueeze(1))
        added = self.added[entries].masked_fill(~found, 0.0).sum(1)
        mass = self.root.class_log_mass[classes] + self.costs[states, -1] + added
        return mass.masked_fill(~(self.rooted[states] | found.any(1)), NEGATIVE_INFINITY)

    def share(self, states: Tensor, tokens: Tensor) -> Tensor:
        """log b(q, x) − log B_q(σ(x)): (M,), (M,) -> (M,)."""
        weight, after = self.step(states, tokens)
        share = automaton_members.log_difference(weight, self.mass(states, self.class_of[tokens]))
        if self.remaining is None:
            return share
        return share.masked_fill(self.out_of_reach(tokens, after), NEGATIVE_INFINITY)

    def out_of_reach(self, tokens: Tensor, after: Tensor) -> Tensor:
        """Whether no end is in reach after a word that leads to the state `after`; any shape."""
        assert self.remaining is not None
        return (tokens != END) & (self.steps[after] >= self.remaining)

    # ---- states -----------------------------------------------------------------------------------------------------

    def start(self, n: int) -> Tensor:
        if self.sentence_starts is not None:
            return self.sentence_starts[:, :1]
        return self.starts[:1].expand(n, 1)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return self.step(state.squeeze(1), tokens)[1].unsqueeze(1)

    def states_along(self, previous: Tensor) -> list[Tensor]:
        return list(self.flat_states(previous).view(*previous.shape, 1).unbind(1))

    def flat_states(self, previous: Tensor) -> Tensor:
        batch, time = previous.shape
        ends = previous == END
        ends[:, 0] = True  # the start symbol, whichever it is
        starts = self.starts[:1].expand(batch, time)
        if self.sentence_starts is not None:
            starts = self.sentence_starts[:, :time]
        if self.memory is None:
            states = [starts[:, 0]]
            for t in range(1, time):
                states.append(torch.where(ends[:, t], starts[:, t], self.step(states[-1], previous[:, t])[1]))
            return torch.stack(states, dim=1).view(-1, 1)
        # every position reads its last words, in so many steps for all of them
        place = torch.arange(time, device=previous.device)
        begin = torch.where(ends, place, 0).cummax(1).values  # shape: (B, T), where the position's sentence begins
        here = starts
        for back in reversed(range(self.memory)):
            read = place - back
            after = self.step(here.flatten(), previous[:, read.clamp_min(0)].flatten())[1]
            here = torch.where(read > begin, after.view(batch, time), here)
        return here.reshape(-1, 1)

    # ---- masses and shares ------------------------------------------------------------------------------------------

    def log_mass(self, state: Tensor) -> Tensor:
        return self.corrections(state).dense(len(state))

    def log_mass_along(self, previous: Tensor) -> Tensor:
        return self.log_mass(self.flat_states(previous)).view(*previous.shape, -1)

    def log_share(self, state: Tensor, tokens: Tensor) -> Tensor:
        return self.share(state.squeeze(1), tokens)

    def log_share_along(self, previous: Tensor, targets: Tensor) -> Tensor:
        return self.share(self.flat_states(previous).squeeze(1), targets.flatten()).view_as(targets)

    def corrections(self, state: Tensor) -> Corrections:
        states = state.squeeze(1)
        rows, entries = self.expand(self.chain[states], self.entry_offsets)
        return Corrections(
            shared=self.root.class_log_mass.unsqueeze(0),
            rows=rows,
            classes=self.entry_classes[entries],
            added=self.added[entries],
            only=None if self.all_rooted else ~self.rooted[states],
            constant=self.costs[states, -1],
        )

    def expand(self, states: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """All that states (N, D) own, by row: the row of each, and its place from `offsets` on; none below 0."""
        own = states.clamp_min(0)
        many = (offsets[own + 1] - offsets[own]).masked_fill(states < 0, 0).flatten()
        total = many.cumsum(0)
        row = torch.arange(len(states), device=many.device).repeat_interleave(states.size(1))
        # the k-th of all is the (k − those before its owner)-th of its owner
        shift = (offsets[own].flatten() - total + many).repeat_interleave(many)
        return row.repeat_interleave(many), shift.add_(torch.arange(len(shift), device=many.device))

    # ---- all words (only where asked for) ---------------------------------------------------------------------------

    def log_weights(self, state: Tensor) -> Tensor:
        return self._whole(state.squeeze(1))[0]

    def log_shares(self, state: Tensor) -> Tensor:
        weights, after = self._whole(state.squeeze(1))
        shares = automaton_members.log_difference(weights, self.log_mass(state)[:, self.class_of])
        if self.remaining is None:
            return shares
        words = torch.arange(len(self.class_of), device=shares.device)
        return shares.masked_fill(self.out_of_reach(words, after), NEGATIVE_INFINITY)

    def log_shares_along(self, previous: Tensor) -> Tensor:
        return self.log_shares(self.flat_states(previous)).view(*previous.shape, -1)

    def _whole(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """log b(q, x) of all words, and the states after them: (N, V) each."""
        weights = self.root.word_log_weight + self.costs[states, -1:]
        weights = weights.masked_fill(~self.rooted[states].unsqueeze(1), NEGATIVE_INFINITY)
        words = torch.arange(weights.size(1), device=weights.device)
        after = self.after_root(states.unsqueeze(1), words).clone()
        for level in reversed(range(self.chain.size(1))):  # what fails less comes later, and stays
            rows, arcs = self.expand(self.chain[states, level : level + 1], self.arc_offsets)
            words = self.arc_tokens[arcs]
            weights[rows, words] = self.costs[states[rows], level] + self.arc_weights[arcs]
            after[rows, words] = self.arc_nexts[arcs]
        return weights, torch.where(weights.isneginf(), self.starts[0], after)

    # ---- members of classes (search, slots) -------------------------------------------------------------------------

    def best_share(self, state: Tensor) -> Tensor:
        if self.remaining is not None:
            return automaton_members.best_share_within(self, state)
        return automaton_members.best_share(self, state.squeeze(1), self._best_of_entry)

    @cached_property
    def _best_of_entry(self) -> Tensor:
        """(E + 1,) the largest log share in the class of every entry."""
        return automaton_members.best_of_entries(self)

    def best_members(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        each = state.expand_as(classes).flatten()
        values, tokens = automaton_members.best_of(self, each, classes.flatten(), k)
        return values.view(*classes.shape, k), tokens.view(*classes.shape, k)

    def log_mass_without(self, state: Tensor, words: Tensor, taken: Tensor) -> Tensor:
        return automaton_members.log_mass_without(self, state, words, taken)

    # ---- limits, training -------------------------------------------------------------------------------------------

    def steps_to_end(self, state: Tensor) -> Tensor:
        return self.steps[state.squeeze(1)]

    def held_out(self, tokens: Tensor) -> Background:
        """Every sentence is read from the start of the fold that it is in; tokens: (B, T) as in the contract."""
        if self.folds is None:
            return self
        text = functional.pad(tokens[:, 1:], (0, 1), value=END)
        folds = folds_along(text, END, PADDING, len(self.folds.starts) - 1)
        held_out = copy.copy(self._all_models)
        held_out.sentence_starts = held_out.starts[1 + folds]
        return held_out

    @cached_property
    def _all_models(self) -> AutomatonBackground:
        """This background with the models of all folds."""
        assert self.folds is not None
        weights = self.root.word_log_weight.cpu()
        made = AutomatonBackground(self.class_of.cpu(), self.num_classes, weights, self.folds, with_folds=True)
        return made.to(self.class_of.device)

    def within(self, remaining: int) -> Background:
        if remaining > self.farthest and self.farthest < NO_END:
            return self
        limited = copy.copy(self)
        limited.remaining = remaining
        return limited

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Background:
        for name in ("_best_of_entry", "_all_models"):
            self.__dict__.pop(name, None)  # they live where the buffers live
        return super()._apply(fn, recurse)


def _find(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    places = torch.searchsorted(keys, wanted.contiguous())
    return places, keys[places] == wanted
