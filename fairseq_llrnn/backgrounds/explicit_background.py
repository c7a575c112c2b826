"""Backgrounds that list the words whose weight differs from a static one, the root: all methods use `sparse_weights`.

Sizes: N hypotheses, B batch, T time, V words, S signatures, E words listed in all rows, C queried classes. Cost:
O(E log E) for masses, shares and best members. `log_weights`, `log_shares` and, near a limit of length, the best
members of rooted rows cost O(V).

A combination of parts that cannot list their words has no root. Then the slow defaults of the interface apply.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from fairseq_llrnn.automata.automaton import END
from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, Background, BoundBackground, StaticBackground
from fairseq_llrnn.backgrounds.class_weights import ClassWeights, ExplicitWeights, log_difference, row_numbers
from fairseq_llrnn.backgrounds.listed_classes import ListedClasses, OutOfReach
from fairseq_llrnn.backgrounds.states import States, distinct_runs, select


class ExplicitBackground(Background):
    """A background that lists words. A subclass defines `start`, `advance` and `sparse_weights`."""

    def __init__(self, class_of: Tensor, num_classes: int, root_log_weights: Tensor | None) -> None:
        """root_log_weights: (V,), or None if there is no root."""
        super().__init__(class_of, num_classes)
        self.root = None if root_log_weights is None else StaticBackground(class_of, num_classes, root_log_weights)

    def bind(self, source: Tensor | None = None, text: Tensor | None = None) -> BoundBackground:
        return BoundExplicit(self)


class BoundExplicit(BoundBackground):
    """An ExplicitBackground in one batch or search."""

    def __init__(self, module: ExplicitBackground) -> None:
        super().__init__(module.class_of, module.num_classes)
        self.module, self.root, self.is_context_independent = module, module.root, module.is_context_independent
        self.sparse = self.root is not None
        self.remaining: int | None = None  # the limit of a search step (`with_max_length`)
        self._last: tuple[States, bool, ListedClasses] | None = None  # last states, has gradients, result

    def start(self, n: int) -> States:
        return self.module.start(n)

    def advance(self, state: States, tokens: Tensor) -> States:
        return self.module.advance(state, tokens)

    def flat_states(self, previous: Tensor) -> States:
        return self.module.flat_states(previous)

    def sparse_weights(self, state: States) -> ExplicitWeights | None:
        return self.module.sparse_weights(state)

    def root_log_weights(self) -> Tensor | None:
        return None if self.root is None else self.root.word_log_weight

    def dense_log_weights(self, state: States) -> Tensor:
        """Return log b(K, x) of every word if there is no root: (N, V)."""
        raise NotImplementedError

    def listed(self, state: States) -> ListedClasses | None:
        """Return the listed words of N states, cached for the next call with the same object."""
        if self.root is None:
            return None
        grad = torch.is_grad_enabled()
        if self._last is not None and self._last[0] is state and self._last[1] == grad:
            return self._last[2]
        weights = self.sparse_weights(state)
        assert weights is not None
        answer = ListedClasses(self.root, weights)
        self._last = state, grad, answer
        return answer

    # ---- masses and shares ------------------------------------------------------------------------------------------

    def class_weights(self, state: States) -> ClassWeights:
        listed = self.listed(state) if self.sparse else None
        return super().class_weights(state) if listed is None else listed.class_weights()

    def log_mass(self, state: States) -> Tensor:
        listed = self.listed(state)
        return super().log_mass(state) if listed is None else listed.class_weights().dense()

    def log_mass_of(self, state: States, classes: Tensor) -> Tensor:
        listed = self.listed(state)
        if listed is None:
            return super().log_mass_of(state, classes)
        return listed.mass_at(torch.arange(len(classes), device=classes.device), classes)

    def log_mass_without(self, state: States, words: Tensor, taken: Tensor) -> Tensor:
        listed = self.listed(state)
        if listed is None:
            return super().log_mass_without(state, words, taken)
        rows = row_numbers(words)
        keys = torch.unique((rows * len(self.class_of) + words)[taken])
        left = ListedClasses(listed.root, listed.weights.forbid(keys))
        return left.mass_at(rows.flatten(), self.class_of[words].flatten()).view_as(words)

    def log_weights(self, state: States) -> Tensor:
        listed = self.listed(state)
        if listed is None:
            return self.dense_log_weights(state)
        return listed.weights.dense(listed.root.word_log_weight)

    def log_weights_at(self, state: States, rows: Tensor, tokens: Tensor) -> Tensor:
        listed = self.listed(state)
        if listed is None:
            return super().log_weights_at(state, rows, tokens)
        return listed.weights.at(rows * len(self.class_of) + tokens, listed.root.word_log_weight)

    def log_shares(self, state: States) -> Tensor:
        weights = self.log_weights(state)
        shares = log_difference(weights, self.log_mass(state)[:, self.class_of])
        if self.remaining is None:
            return shares
        tokens = torch.arange(shares.size(1), device=shares.device).expand_as(shares)
        out = self.out_of_reach(state, row_numbers(tokens).flatten(), tokens.flatten()).view_as(shares)
        return shares.masked_fill(out, NEGATIVE_INFINITY)

    def log_share(self, state: States, tokens: Tensor) -> Tensor:
        rows = torch.arange(len(tokens), device=tokens.device)
        if self.is_context_independent and self.remaining is None:  # neighbours in a batch have the same state
            distinct, index = distinct_runs(state)
            mass = self.log_mass(distinct).expand(len(distinct), -1)[index, self.class_of[tokens]]
            return log_difference(self.log_weights_at(distinct, index, tokens), mass)
        share = log_difference(self.log_weights_at(state, rows, tokens), self.log_mass_of(state, self.class_of[tokens]))
        if self.remaining is None:
            return share
        return share.masked_fill(self.out_of_reach(state, rows, tokens), NEGATIVE_INFINITY)

    # ---- best members -----------------------------------------------------------------------------------------------

    def best_share(self, state: States) -> Tensor:
        listed = self.listed(state)
        if listed is None or (self.remaining is not None and listed.is_rooted):
            return super().best_share(state)  # all words, which is rare: few steps are near a limit
        return listed.best_share(self._forbidden(state))

    def best_members(self, state: States, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        listed = self.listed(state)
        if listed is None:
            return super().best_members(state, classes, k)
        rows = row_numbers(classes).flatten()
        values, tokens = listed.best_members(rows, classes.flatten(), k, self._forbidden(state))
        return values.view(*classes.shape, k), tokens.view(*classes.shape, k)

    def _forbidden(self, state: States) -> OutOfReach | None:
        return None if self.remaining is None else partial(self.out_of_reach, state)

    # ---- limits of length -------------------------------------------------------------------------------------------

    def out_of_reach(self, state: States, rows: Tensor, tokens: Tensor) -> Tensor:
        """Return whether no end is within the limit after words: rows (M,) of N states, tokens (M,) -> (M,) bool."""
        assert self.remaining is not None
        after = self.steps_to_end(self.advance(select(state, rows), tokens))
        return (tokens != END) & (after >= self.remaining)
