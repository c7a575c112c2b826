"""The background of a weighted automaton: n-grams, grammars, dictionaries of strings.

Sizes: V words, S signatures, Q states, D steps of the longest chain of failures, E entries, N hypotheses, B batch, T
time, F cross-fitted models, M pairs of state and class.

The state of a hypothesis is the index of an automaton state, (N, 1); automaton_tables.py looks up its weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.automata.automaton import END, Automaton
from fairseq_llrnn.automata.trimming import NO_END, steps_to_end, with_arcs
from fairseq_llrnn.backgrounds.automaton_tables import PADDING, AutomatonTables
from fairseq_llrnn.backgrounds.background import BoundBackground, StaticBackground, View
from fairseq_llrnn.backgrounds.cached import cached_property
from fairseq_llrnn.backgrounds.class_weights import (
    NEGATIVE_INFINITY,
    ClassWeights,
    ExplicitWeights,
    SparseUpdates,
    log_difference,
)
from fairseq_llrnn.backgrounds.members import Members, best_of, candidates, heaviest
from fairseq_llrnn.ngrams.folds import folds_per_position

LITTLE_LEFT = 0.1  # of a class' mass: a difference would lose a digit


class BoundAutomaton(BoundBackground):
    """An AutomatonBackground in one batch or search."""

    def __init__(self, tables: AutomatonBackground, sentence_starts: Tensor | None = None) -> None:
        """sentence_starts: (B, T) the first state of the sentence at each position of a cross-fitted text."""
        super().__init__(tables.class_of, tables.num_classes)
        self.tables, self.sentence_starts = tables, sentence_starts
        self.is_exhaustive, self.most_steps = tables.is_exhaustive, tables.most_steps
        self.has_dead_ends = not tables.all_rooted

    @property
    def root(self) -> StaticBackground:
        return self.tables.root

    # ---- states -----------------------------------------------------------------------------------------------------

    def start(self, n: int) -> Tensor:
        if self.sentence_starts is not None:
            return self.sentence_starts[:, :1]
        return self.tables.starts[:1].expand(n, 1)

    def advance(self, states: Tensor, tokens: Tensor) -> Tensor:
        return self.tables.step(states.squeeze(1), tokens)[1].unsqueeze(1)

    def flat_states(self, previous: Tensor) -> Tensor:
        tables = self.tables
        batch, time = previous.shape
        ends = previous == END
        ends[:, 0] = True  # the start symbol, whichever it is
        starts = tables.starts[:1].expand(batch, time)
        if self.sentence_starts is not None:
            starts = self.sentence_starts[:, :time]
        if tables.memory is None:
            states = [starts[:, 0]]
            for t in range(1, time):
                states.append(torch.where(ends[:, t], starts[:, t], tables.step(states[-1], previous[:, t])[1]))
            return torch.stack(states, dim=1).view(-1, 1)
        # every position reads its last words; all positions take each step together
        place = torch.arange(time, device=previous.device)
        begin = torch.where(ends, place, 0).cummax(1).values  # shape: (B, T), where the position's sentence begins
        current = starts
        for back in reversed(range(tables.memory)):
            read = place - back
            after = tables.step(current.flatten(), previous[:, read.clamp_min(0)].flatten())[1]
            current = torch.where(read > begin, after.view(batch, time), current)
        return current.reshape(-1, 1)

    def steps_to_end(self, states: Tensor) -> Tensor:
        return self.tables.steps[states.squeeze(1)]

    # ---- views ------------------------------------------------------------------------------------------------------

    def view(self, states: Tensor, hidden: Tensor | None = None, remaining: int | None = None) -> View:
        return AutomatonView(self, states, remaining)


class AutomatonView(View):
    """The weights in N states of an automaton."""

    bound: BoundAutomaton

    def __init__(self, bound: BoundAutomaton, states: Tensor, remaining: int | None) -> None:
        super().__init__(bound, states, None, remaining)
        self.tables, self.root, self.numbers = bound.tables, bound.root, states.squeeze(1)  # shape: (N,)

    # ---- weights and masses -----------------------------------------------------------------------------------------

    @cached_property
    def log_weights(self) -> Tensor:
        tables, states = self.tables, self.numbers
        weights = self.root.word_log_weight + tables.costs[states, -1:]
        if not tables.all_rooted:
            weights.masked_fill_(~tables.rooted[states].unsqueeze(1), NEGATIVE_INFINITY)
        for level in reversed(range(tables.chain.size(1))):  # arcs after fewer failures come later, and overwrite
            rows, arcs = tables.expand(tables.chain[states, level : level + 1], tables.arc_offsets)
            weights[rows, tables.arc_tokens[arcs]] = tables.costs[states[rows], level] + tables.arc_weights[arcs]
        return weights

    def weights_at(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        return self.tables.look_up(self._states(rows), tokens)[0]

    def _states(self, rows: Tensor | None) -> Tensor:
        """Return the states of rows: (M,)."""
        return self.numbers if rows is None else self.numbers[rows]

    @cached_property
    def listed(self) -> ExplicitWeights:
        tables, states = self.tables, self.numbers
        keys, weights = [], []
        for level in range(tables.chain.size(1)):
            rows, arcs = tables.expand(tables.chain[states, level : level + 1], tables.arc_offsets)
            keys.append(rows * len(self.class_of) + tables.arc_tokens[arcs])
            weights.append(tables.costs[states, level][rows] + tables.arc_weights[arcs])
        if len(keys) == 1:
            (all_keys,), (log_weights,) = keys, weights
        else:
            all_keys, order = torch.cat(keys).sort(stable=True)
            first = all_keys.diff(prepend=all_keys[:1] - 1) > 0  # arcs after fewer failures come first, and overrule
            all_keys, log_weights = all_keys[first], torch.cat(weights)[order[first]]
        if tables.forbids:
            allowed = ~log_weights.isneginf()
            all_keys, log_weights = all_keys[allowed], log_weights[allowed]
        rooted = None if tables.all_rooted else tables.rooted[states]
        return ExplicitWeights(len(self.class_of), all_keys, log_weights, tables.costs[states, -1], rooted)

    @cached_property
    def class_mass(self) -> ClassWeights:
        tables, states = self.tables, self.numbers
        rows, entries = tables.expand(tables.chain[states], tables.entry_offsets)
        updates = SparseUpdates(
            rows=rows,
            classes=tables.entry_classes[entries],
            added=tables.added[entries],
            sparse_row_mask=None if tables.all_rooted else ~tables.rooted[states],
            constant=tables.costs[states, -1],
        )
        return ClassWeights(self.root.class_log_mass.unsqueeze(0), len(states), updates)

    def mass_at(self, classes: Tensor, rows: Tensor | None = None) -> Tensor:
        return self.tables.mass(self._states(rows), classes)

    def mass_without(self, words: Tensor, taken: Tensor) -> Tensor:
        states, classes = self.states.expand_as(words).flatten(), self.class_of[words]
        mass = self.tables.mass(states, classes.flatten()).view_as(words)
        share = log_difference(self.tables.step(states, words.flatten())[0].view_as(words), mass)
        # shape: (N, J, J), the words taken out of each word's class
        out = (classes.unsqueeze(2) == classes.unsqueeze(1)) & taken.unsqueeze(1)
        left = 1.0 - torch.where(out, share.exp().unsqueeze(1), 0.0).sum(2)
        rest = mass + left.clamp_min(0.0).log()
        row, column = ((left < LITTLE_LEFT) & out.any(2)).nonzero(as_tuple=True)
        if len(row) > 0:
            weights, tokens = candidates(self.tables.lists(self.numbers[row], classes[row, column]), None)
            is_taken = (tokens.unsqueeze(2) == words.masked_fill(~taken, -1)[row].unsqueeze(1)).any(2)
            rest = rest.index_put((row, column), weights.masked_fill(is_taken, NEGATIVE_INFINITY).logsumexp(1))
        return rest.masked_fill(mass.isneginf(), NEGATIVE_INFINITY)

    # ---- shares -----------------------------------------------------------------------------------------------------

    def locate(self, tokens: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        classes, states = self.class_of[tokens], self._states(rows)
        weight, after = self.tables.step(states, tokens)
        shares = log_difference(weight, self.tables.mass(states, classes))
        if self.remaining is not None:
            shares = shares.masked_fill(self._is_lost(tokens, after), NEGATIVE_INFINITY)
        return classes, shares

    @cached_property
    def log_shares(self) -> Tensor:
        shares = log_difference(self.log_weights, self.class_mass.dense()[:, self.class_of])
        if self.remaining is None:
            return shares
        words = torch.arange(len(self.class_of), device=shares.device)
        return shares.masked_fill(self._is_lost(words, self._all_nexts()), NEGATIVE_INFINITY)

    def _all_nexts(self) -> Tensor:
        """Return the states after all words, arbitrary for words without an arc or a root weight: (N, V)."""
        tables, states = self.tables, self.numbers
        words = torch.arange(len(self.class_of), device=states.device)
        after = tables.after_no_arc(states.unsqueeze(1), words)
        for level in reversed(range(tables.chain.size(1))):
            rows, arcs = tables.expand(tables.chain[states, level : level + 1], tables.arc_offsets)
            after[rows, tables.arc_tokens[arcs]] = tables.arc_nexts[arcs]
        return after

    def out_of_reach(self, tokens: Tensor, rows: Tensor) -> Tensor:
        return self._is_lost(tokens, self.tables.step(self.numbers[rows], tokens)[1])

    def _is_lost(self, tokens: Tensor, after: Tensor) -> Tensor:
        """Return whether no end is in reach after a word that leads to the state `after`, of any shape."""
        assert self.remaining is not None
        return (tokens != END) & (self.tables.steps[after] >= self.remaining)

    # ---- the best words (search) ------------------------------------------------------------------------------------

    @cached_property
    def best_share(self) -> Tensor:
        tables, states = self.tables, self.numbers
        if self.remaining is not None:
            return self._best_share_within()
        # a class has the shares of the first state in the chain with an entry for it, otherwise of the root
        best = self.root.best_of_class.repeat(len(states), 1)
        if not tables.all_rooted:
            best.masked_fill_(~tables.rooted[states].unsqueeze(1), NEGATIVE_INFINITY)
        for level in reversed(range(tables.chain.size(1))):
            rows, entries = tables.expand(tables.chain[states, level : level + 1], tables.entry_offsets)
            place = rows.mul_(self.num_classes).add_(tables.entry_classes[entries])
            best.view(-1).scatter_(0, place, tables.best_of_entry[entries])
        return best

    def _best_share_within(self) -> Tensor:
        """Return the best shares if a search is near its limit: (N, S)."""
        tables, states = self.tables, self.numbers
        if self.remaining == 1:  # nothing but </s>
            best = self.root.class_log_mass.new_full((len(states), self.num_classes), NEGATIVE_INFINITY)
            best[:, self.class_of[END]] = self.locate(torch.full_like(states, END))[1]
            return best
        if bool(tables.rooted[states].any()):
            return self.best_of_all_words()  # rare, because few steps are near a limit
        rows, arcs = tables.expand(states.unsqueeze(1), tables.arc_offsets)
        words = tables.arc_tokens[arcs]
        lost = self._is_lost(words, tables.arc_nexts[arcs])
        weight = tables.arc_weights[arcs].masked_fill(lost, NEGATIVE_INFINITY)
        best = weight.new_full((len(states) * self.num_classes,), NEGATIVE_INFINITY)
        best = best.scatter_reduce(0, rows * self.num_classes + self.class_of[words], weight, reduce="amax")
        return log_difference(best.view(len(states), -1), self.class_mass.dense())

    def best(self, classes: Tensor, k: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        states = self._states(rows)

        def forbidden(index: Tensor, words: Tensor) -> Tensor:
            return self._is_lost(words, self.tables.step(states[index], words)[1])

        limit = None if self.remaining is None else forbidden
        return best_of(self.tables.lists(states, classes), self.tables.mass(states, classes), k, limit)


class AutomatonBackground(AutomatonTables):
    """b(q, x): the tables, and the tables of the cross-fitted models."""

    of_buffers = ("only_members", "best_of_entry", "_all_models")

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
            with_folds: whether to make the states of the cross-fitted models now. By default, `bind` makes them when
                training needs them, because this takes time.
        """
        super().__init__(class_of, num_classes, log_weights, automaton if with_folds else automaton.in_use)
        self.automaton = automaton  # as given, the cross-fitted models included
        self.has_folds = len(automaton.starts) > 1 and not with_folds
        self.is_exhaustive = not bool(self.rooted.any())

    def avoid(self, words: Tensor) -> None:
        """Measure the steps to an end without the arcs of some words (V,) bool, unless only they lead to an end.

        A product with weights that forbid these words then finds its dead ends. Weights and states do not change.
        """
        automaton, forbidden = self.automaton.in_use, words.cpu().numpy()
        root = np.where(forbidden, NEGATIVE_INFINITY, self.root.word_log_weight.cpu().numpy())
        steps = steps_to_end(with_arcs(automaton, ~forbidden[automaton.tokens]), root)
        if steps[automaton.starts[0]] < NO_END:
            self.steps[: len(steps)] = torch.from_numpy(steps)
            self.most_steps = int(steps.max())

    def bind(self, source: Tensor | None = None, text: Tensor | None = None) -> BoundBackground:
        """In training, read every sentence of the text from the start state of its fold."""
        if text is None or not self.has_folds:
            return BoundAutomaton(self)
        following = functional.pad(text[:, 1:], (0, 1), value=END)
        folds = folds_per_position(following, END, PADDING, len(self.automaton.starts) - 1)
        return BoundAutomaton(self._all_models, self._all_models.starts[1 + folds])

    def train(self, mode: bool = True) -> Self:
        """As torch's, and make the states of the cross-fitted models, which compiled code cannot."""
        if mode and self.has_folds:
            _ = self._all_models
        return super().train(mode)

    @cached_property
    def _all_models(self) -> AutomatonBackground:
        """This background with the models of all folds."""
        class_of, weights = self.class_of.cpu(), self.root.word_log_weight.cpu()
        background = AutomatonBackground(class_of, self.num_classes, weights, self.automaton, with_folds=True)
        return background.to(self.class_of.device)

    @cached_property
    def best_of_entry(self) -> Tensor:
        """The largest log share in the class of every entry: (E + 1,). The last one is padding."""
        states, classes = self.entry_keys[:-1] // self.num_classes, self.entry_classes[:-1]
        best = heaviest(self.lists(states, classes)) - self.mass(states, classes)
        return functional.pad(best.clamp_max(0.0), (0, 1))

    def lists(self, states: Tensor, classes: Tensor) -> Iterator[Members]:
        """Yield the lists of members of classes in states, (M,) each: the arcs of every state in the chain, then the
        root.

        The first occurrence of a word counts. Later arcs and the root are overruled.
        """
        chain, root = self.chain[states], self.root  # shape: (M, D)

        def words(places: Tensor) -> Tensor:
            return self.arc_tokens[self.by_class[places]]

        def weights(places: Tensor) -> Tensor:
            return self.arc_weights[self.by_class[places]]

        def has_arc(levels: int, index: Any, tokens: Tensor) -> Tensor:
            """Return whether one of the first states in the chain has an arc for each word."""
            found = torch.zeros_like(tokens, dtype=torch.bool)
            for level in range(levels):
                found |= self.find_arcs(chain[index, level : level + 1], tokens)[1]
            return found

        for level in range(chain.size(1)):
            entries, has_entry = self.find_entries(chain[:, level], classes)
            begin = self.entry_arcs[entries]
            counts = torch.where(has_entry, self.entry_arcs[entries + 1] - begin, 0)
            yield Members(begin, counts, self.costs[states, level], words, weights, partial(has_arc, level))
        counts = torch.where(self.rooted[states], root.class_support[classes], 0)
        of_root = root.ranked_members.__getitem__, root.ranked_weights, partial(has_arc, chain.size(1))
        yield Members(root.class_starts[classes], counts, self.costs[states, -1], *of_root)
