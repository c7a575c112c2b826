"""The background of a weighted automaton: n-grams, grammars, dictionaries of strings.

Sizes: V words, S signatures, Q states, D steps of the longest chain of failures, E entries, N hypotheses, B batch, T
time, F cross-fitted models, M pairs of state and class.

What a hypothesis carries is the number of a state, (N, 1); automaton_tables.py looks up what the state says.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.automata.automaton import END, Automaton
from fairseq_llrnn.automata.trimming import NO_END
from fairseq_llrnn.backgrounds.automaton_tables import PADDING, AutomatonTables
from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background, Masses
from fairseq_llrnn.backgrounds.masses import Entries, ExplicitWeights, log_difference
from fairseq_llrnn.backgrounds.members import Members, best_of, candidates, heaviest
from fairseq_llrnn.ngrams.folds import folds_per_position

LITTLE_LEFT = 0.1  # of a class' mass: as a difference it would lose a digit


class AutomatonBackground(AutomatonTables):
    """b(q, x): the contract over the tables."""

    sparse = True
    of_buffers = ("_only_member", "_best_of_entry", "_all_models")

    def __init__(
        self,
        class_of: Tensor,
        num_classes: int,
        log_weights: Tensor,
        automaton: Automaton,
        with_folds: bool = False,
    ) -> None:
        """class_of, log_weights, automaton: as in AutomatonTables.

        Args:
            with_folds: whether the states of the cross-fitted models are here, too; without, `cross_fitted` makes them
                when it needs them, for they take their time.
        """
        super().__init__(class_of, num_classes, log_weights, automaton if with_folds else automaton.in_use)
        self.automaton = automaton  # as given, the cross-fitted models included
        self.folds = automaton if len(automaton.starts) > 1 and not with_folds else None
        self.lists_all = not bool(self.rooted.any())
        self.sentence_starts: Tensor | None = None  # (B, T) of a batch of cross-fitted text (`cross_fitted`)

    # ---- states -----------------------------------------------------------------------------------------------------

    def start(self, n: int) -> Tensor:
        if self.sentence_starts is not None:
            return self.sentence_starts[:, :1]
        return self.starts[:1].expand(n, 1)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return self.step(state.squeeze(1), tokens)[1].unsqueeze(1)

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
        return self.masses(state).dense()

    def log_mass_of(self, state: Tensor, classes: Tensor) -> Tensor:
        return self.mass(state.squeeze(1), classes)

    def log_share(self, state: Tensor, tokens: Tensor) -> Tensor:
        return self.share(state.squeeze(1), tokens)

    def masses(self, state: Tensor) -> Masses:
        states = state.squeeze(1)
        rows, entries = self.expand(self.chain[states], self.entry_offsets)
        of_rows = Entries(
            rows=rows,
            classes=self.entry_classes[entries],
            added=self.added[entries],
            only=None if self.all_rooted else ~self.rooted[states],
            constant=self.costs[states, -1],
        )
        return Masses(self.root.class_log_mass.unsqueeze(0), len(states), of_rows)

    # ---- words that it lists ----------------------------------------------------------------------------------------

    def root_log_weights(self) -> Tensor | None:
        return self.root.word_log_weight

    def explicit(self, state: Tensor) -> ExplicitWeights | None:
        states = state.squeeze(1)
        keys, weights = [], []
        for level in range(self.chain.size(1)):
            rows, arcs = self.expand(self.chain[states, level : level + 1], self.arc_offsets)
            keys.append(rows * len(self.class_of) + self.arc_tokens[arcs])
            weights.append(self.costs[states, level][rows] + self.arc_weights[arcs])
        if len(keys) == 1:
            (all_keys,), (log_weights,) = keys, weights
        else:
            all_keys, order = torch.cat(keys).sort(stable=True)
            first = all_keys.diff(prepend=all_keys[:1] - 1) > 0  # what fails less comes first, and overrules
            all_keys, log_weights = all_keys[first], torch.cat(weights)[order[first]]
        if self.forbids:
            allowed = ~log_weights.isneginf()
            all_keys, log_weights = all_keys[allowed], log_weights[allowed]
        rooted = None if self.all_rooted else self.rooted[states]
        return ExplicitWeights(len(self.class_of), all_keys, log_weights, self.costs[states, -1], rooted)

    def log_weights_at(self, state: Tensor, rows: Tensor, tokens: Tensor) -> Tensor:
        return self._look_up(state.squeeze(1)[rows], tokens)[0]

    # ---- all words (only where asked for) ---------------------------------------------------------------------------

    def log_weights(self, state: Tensor) -> Tensor:
        return self._all_weights(state.squeeze(1))

    def log_shares(self, state: Tensor) -> Tensor:
        states = state.squeeze(1)
        shares = log_difference(self._all_weights(states), self.log_mass(state)[:, self.class_of])
        if self.remaining is None:
            return shares
        words = torch.arange(len(self.class_of), device=shares.device)
        return shares.masked_fill(self.out_of_reach(words, self._all_nexts(states)), NEGATIVE_INFINITY)

    def _all_weights(self, states: Tensor) -> Tensor:
        """log b(q, x) of all words: (N, V)."""
        weights = self.root.word_log_weight + self.costs[states, -1:]
        if not self.all_rooted:
            weights.masked_fill_(~self.rooted[states].unsqueeze(1), NEGATIVE_INFINITY)
        for level in reversed(range(self.chain.size(1))):  # what fails less comes later, and stays
            rows, arcs = self.expand(self.chain[states, level : level + 1], self.arc_offsets)
            weights[rows, self.arc_tokens[arcs]] = self.costs[states[rows], level] + self.arc_weights[arcs]
        return weights

    def _all_nexts(self, states: Tensor) -> Tensor:
        """The states after all words, somewhere for those that neither an arc nor the root has: (N, V)."""
        words = torch.arange(len(self.class_of), device=states.device)
        after = self.after_no_arc(states.unsqueeze(1), words)
        for level in reversed(range(self.chain.size(1))):
            rows, arcs = self.expand(self.chain[states, level : level + 1], self.arc_offsets)
            after[rows, self.arc_tokens[arcs]] = self.arc_nexts[arcs]
        return after

    # ---- members of classes (search, slots) -------------------------------------------------------------------------

    def best_share(self, state: Tensor) -> Tensor:
        if self.remaining is not None:
            return self._best_share_within(state)
        states = state.squeeze(1)
        # a class has the shares of the first state in the chain that changes it, or those of the root
        best = self.root.best_share(state).repeat(len(states), 1)
        if not self.all_rooted:
            best.masked_fill_(~self.rooted[states].unsqueeze(1), NEGATIVE_INFINITY)
        for level in reversed(range(self.chain.size(1))):
            rows, entries = self.expand(self.chain[states, level : level + 1], self.entry_offsets)
            place = rows.mul_(self.num_classes).add_(self.entry_classes[entries])
            best.view(-1).scatter_(0, place, self._best_of_entry[entries])
        return best

    @cached_property
    def _best_of_entry(self) -> Tensor:
        """(E + 1,) the largest log share in the class of every entry; the last one has no meaning."""
        states, classes = self.entry_keys[:-1] // self.num_classes, self.entry_classes[:-1]
        best = heaviest(self._lists(states, classes)) - self.mass(states, classes)
        return functional.pad(best.clamp_max(0.0), (0, 1))

    def _best_share_within(self, state: Tensor) -> Tensor:
        """The best shares where a search is at its limit: (N, 1) -> (N, S)."""
        states = state.squeeze(1)
        if self.remaining == 1:  # nothing but </s>
            best = self.root.class_log_mass.new_full((len(states), self.num_classes), NEGATIVE_INFINITY)
            best[:, self.class_of[END]] = self.share(states, torch.full_like(states, END))
            return best
        if bool(self.rooted[states].any()):
            return super().best_share(state)  # all words: few automata mix, and few steps are near a limit
        rows, arcs = self.expand(states.unsqueeze(1), self.arc_offsets)
        words = self.arc_tokens[arcs]
        weight = self.arc_weights[arcs].masked_fill(self.out_of_reach(words, self.arc_nexts[arcs]), NEGATIVE_INFINITY)
        best = weight.new_full((len(states) * self.num_classes,), NEGATIVE_INFINITY)
        best = best.scatter_reduce(0, rows * self.num_classes + self.class_of[words], weight, reduce="amax")
        return log_difference(best.view(len(states), -1), self.log_mass(state))

    def best_members(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        states, of_class = state.expand_as(classes).flatten(), classes.flatten()

        def forbidden(which: Tensor, words: Tensor) -> Tensor:
            return self.out_of_reach(words, self.step(states[which], words)[1])

        limit = None if self.remaining is None else forbidden
        values, tokens = best_of(self._lists(states, of_class), self.mass(states, of_class), k, limit)
        return values.view(*classes.shape, k), tokens.view(*classes.shape, k)

    def log_mass_without(self, state: Tensor, words: Tensor, taken: Tensor) -> Tensor:
        states, classes = state.expand_as(words).flatten(), self.class_of[words]
        mass = self.mass(states, classes.flatten()).view_as(words)
        share = log_difference(self.step(states, words.flatten())[0].view_as(words), mass)
        # shape: (N, J, J), the words taken out of each word's class
        out = (classes.unsqueeze(2) == classes.unsqueeze(1)) & taken.unsqueeze(1)
        left = 1.0 - torch.where(out, share.exp().unsqueeze(1), 0.0).sum(2)
        rest = mass + left.clamp_min(0.0).log()
        row, column = ((left < LITTLE_LEFT) & out.any(2)).nonzero(as_tuple=True)
        if len(row) > 0:
            weights, tokens = candidates(self._lists(state[row].squeeze(1), classes[row, column]), None)
            gone = (tokens.unsqueeze(2) == words.masked_fill(~taken, -1)[row].unsqueeze(1)).any(2)
            rest = rest.index_put((row, column), weights.masked_fill(gone, NEGATIVE_INFINITY).logsumexp(1))
        return rest.masked_fill(mass.isneginf(), NEGATIVE_INFINITY)

    def _lists(self, states: Tensor, classes: Tensor) -> Iterator[Members]:
        """Where members of classes come from in states, (M,) each: the arcs of every state in the chain, and the root.

        A word counts where it comes first; on a later arc, or in the root, it is overruled.
        """
        chain, root = self.chain[states], self.root  # shape: (M, D)

        def words(places: Tensor) -> Tensor:
            return self.arc_tokens[self.by_class[places]]

        def weights(places: Tensor) -> Tensor:
            return self.arc_weights[self.by_class[places]]

        def has_arc(levels: int, which: Any, tokens: Tensor) -> Tensor:
            """Whether one of the first states in the chain has an arc on each word."""
            some = torch.zeros_like(tokens, dtype=torch.bool)
            for level in range(levels):
                some |= self.find_arcs(chain[which, level : level + 1], tokens)[1]
            return some

        for level in range(chain.size(1)):
            entries, has_entry = self.find_entries(chain[:, level], classes)
            begin = self.entry_arcs[entries]
            many = torch.where(has_entry, self.entry_arcs[entries + 1] - begin, 0)
            yield Members(begin, many, self.costs[states, level], words, weights, partial(has_arc, level))
        many = torch.where(self.rooted[states], root.class_support[classes], 0)
        of_root = root.ranked_members.__getitem__, root.ranked_weights, partial(has_arc, chain.size(1))
        yield Members(root.class_starts[classes], many, self.costs[states, -1], *of_root)

    # ---- limits, training -------------------------------------------------------------------------------------------

    def steps_to_end(self, state: Tensor) -> Tensor:
        return self.steps[state.squeeze(1)]

    def cross_fitted(self, tokens: Tensor) -> Background:
        """Every sentence is read from the start of the fold that it is in; tokens: (B, T) as in the contract."""
        if self.folds is None:
            return self
        text = functional.pad(tokens[:, 1:], (0, 1), value=END)
        folds = folds_per_position(text, END, PADDING, len(self.folds.starts) - 1)
        cross_fitted = copy.copy(self._all_models)
        cross_fitted.sentence_starts = cross_fitted.starts[1 + folds]
        return cross_fitted

    @cached_property
    def _all_models(self) -> AutomatonBackground:
        """This background with the models of all folds."""
        assert self.folds is not None
        weights = self.root.word_log_weight.cpu()
        background = AutomatonBackground(self.class_of.cpu(), self.num_classes, weights, self.folds, with_folds=True)
        return background.to(self.class_of.device)

    def within(self, remaining: int) -> Background:
        if remaining > self.farthest and self.farthest < NO_END:
            return self
        limited = copy.copy(self)
        limited.remaining = remaining
        return limited
