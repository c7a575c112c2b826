"""Views of words whose weight differs from a static background, the root (`ExplicitWeights`, class_weights.py).

Sizes: N rows, V words, S signatures, E entries (listed words), G pairs of a row and a signature with entries, M queried
pairs.

    B(n, σ)  =  exp(constant[n]) · (B_root(σ) − Σ_{x ∈ σ listed} root(x))  +  Σ_{x ∈ σ listed} b(n, x)

The difference is computed as 1 − Σ of shares. If little is left, its digits are lost, and the unlisted members are
summed instead. Cost: O(E log E) for masses, shares and best members. `log_weights`, `log_shares` and, near a limit of
length, the best members of rooted rows cost O(V).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import BoundBackground, StaticBackground, View
from fairseq_llrnn.backgrounds.cached import cached_property
from fairseq_llrnn.backgrounds.class_weights import (
    NEGATIVE_INFINITY,
    ClassWeights,
    ExplicitWeights,
    SparseUpdates,
    class_log_sums,
    expanded,
    find_sorted,
    log_difference,
    row_numbers,
)
from fairseq_llrnn.backgrounds.members import Members, best_of, heaviest
from fairseq_llrnn.backgrounds.states import States

LITTLE_LEFT = 0.1  # of a class' mass: a difference in single precision would lose a digit


class ListedView(View):
    """The listed words of N rows. Pairs with entries are sorted by row and class."""

    def __init__(
        self, bound: BoundBackground, states: States, weights: ExplicitWeights, remaining: int | None = None
    ) -> None:
        """bound: with a root. weights: of N rows."""
        super().__init__(bound, states, None, remaining)
        assert bound.root is not None
        self.root: StaticBackground = bound.root
        self.weights = weights
        owner = weights.rows * self.num_classes + self.class_of[weights.tokens]
        keys, order = owner.sort(stable=True)
        # shape: (G,), ascending keys row · S + class; (E,), the pair of each entry in that order
        self.keys, self.group, sizes = torch.unique_consecutive(keys, return_inverse=True, return_counts=True)
        self.sizes = functional.pad(sizes, (0, 1))  # shape: (G + 1,), padded in case of G = 0
        self.tokens, self.of_listed = weights.tokens[order], weights.log_weights[order]  # shape: (E,)

    @property
    def listed(self) -> ExplicitWeights:
        return self.weights

    @cached_property
    def is_rooted(self) -> bool:
        """Whether unlisted words have weight in any row."""
        return self.weights.rooted is None or bool(self.weights.rooted.any())

    def _where_rooted(self, values: Tensor, rows: Tensor) -> Tensor:
        """Set `values` (M, …) to −inf in rows (M,) whose unlisted words have no weight."""
        if self.weights.rooted is None:
            return values
        closed = ~self.weights.rooted[rows]
        return values.masked_fill(closed.view(-1, *[1] * (values.dim() - 1)), NEGATIVE_INFINITY)

    # ---- weights and masses -----------------------------------------------------------------------------------------

    @cached_property
    def log_weights(self) -> Tensor:
        return self.weights.dense(self.root.word_log_weight)

    def weights_at(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        return self.weights.at(self._rows(tokens, rows) * len(self.class_of) + tokens, self.root.word_log_weight)

    @cached_property
    def of_pairs(self) -> Tensor:
        """log B(n, σ) of the pairs with entries: (G,)."""
        if len(self.keys) == 0:
            return self.of_listed
        of_entries = class_log_sums(self.of_listed.unsqueeze(0), self.group, len(self.keys)).squeeze(0)
        if not self.is_rooted:
            return of_entries
        rows, classes = self.keys // self.num_classes, self.keys % self.num_classes
        rest = self.weights.constant[rows] + self.root.class_log_mass[classes] + self._rest(rows, classes)
        rest = self._where_rooted(rest, rows)
        nothing = rest.isneginf() & of_entries.isneginf()  # its gradient would be NaN
        return torch.logaddexp(rest.masked_fill(nothing, 0.0), of_entries).masked_fill(nothing, NEGATIVE_INFINITY)

    def _rest(self, rows: Tensor, classes: Tensor) -> Tensor:
        """Return the log share in the root of the unlisted members of each pair's class: (G,)."""
        log_share = self.root.word_log_share[self.tokens]
        zeros = torch.zeros(len(self.keys), dtype=torch.float64, device=log_share.device)
        listed = zeros.index_add(0, self.group, log_share.double().exp())
        counts = zeros.index_add(0, self.group, (~log_share.isneginf()).double())
        unlisted = counts < self.root.class_support[classes]
        left = torch.where(unlisted, (1.0 - listed).clamp_min(0.0), 0.0)
        little = (unlisted & (left < min(LITTLE_LEFT, 1e6 * torch.finfo(log_share.dtype).eps))).nonzero().squeeze(1)
        if len(little) > 0:
            left[little] = self._sum_of_rest(rows[little], classes[little])
        return left.log().to(log_share.dtype)

    def _sum_of_rest(self, rows: Tensor, classes: Tensor) -> Tensor:
        """Return the shares of the unlisted members of pairs, summed one by one: (M,) float64."""
        index, places = expanded(self.root.class_starts[classes], self.root.class_support[classes])
        words = self.root.ranked_members[places]
        listed = self.weights.find(rows[index] * len(self.class_of) + words)[1]
        shares = self.root.word_log_share[words].double().exp().masked_fill(listed, 0.0)
        return shares.new_zeros(len(rows)).index_add(0, index, shares)

    @cached_property
    def class_mass(self) -> ClassWeights:
        shared, constant = self.root.class_log_mass, self.weights.constant
        has_mass = shared[self.keys % self.num_classes].isfinite()  # a class without weight in the root has no mass
        rows, classes = self.keys[has_mass] // self.num_classes, self.keys[has_mass] % self.num_classes
        entries = SparseUpdates(
            rows=rows,
            classes=classes,
            added=self.of_pairs[has_mass] - constant[rows] - shared[classes],
            sparse_row_mask=None if self.weights.rooted is None else ~self.weights.rooted,
            constant=constant,
        )
        return ClassWeights(shared.unsqueeze(0), len(constant), entries)

    def mass_at(self, classes: Tensor, rows: Tensor | None = None) -> Tensor:
        rows = self._rows(classes, rows)
        by_root = self._where_rooted(self.weights.constant[rows] + self.root.class_log_mass[classes], rows)
        places, mask = find_sorted(self.keys, rows * self.num_classes + classes)
        return torch.where(mask, self.of_pairs[places], by_root) if len(self.keys) else by_root

    def mass_without(self, words: Tensor, taken: Tensor) -> Tensor:
        rows = row_numbers(words)
        keys = torch.unique((rows * len(self.class_of) + words)[taken])
        left = ListedView(self.bound, self.states, self.weights.forbid(keys))
        return left.mass_at(self.class_of[words].flatten(), rows.flatten()).view_as(words)

    # ---- the best words (search) ------------------------------------------------------------------------------------

    @cached_property
    def best_share(self) -> Tensor:
        if self.remaining is not None and self.is_rooted:
            return self.best_of_all_words()  # rare: few steps are near a limit
        every_row = torch.arange(self.num_rows, device=self.class_of.device)
        best = self._where_rooted(self.root.best_of_class.expand(self.num_rows, -1).clone(), every_row)
        if len(self.keys) == 0:
            return best
        weights, rows = self.of_listed, self.keys // self.num_classes
        if self.remaining is not None:
            lost = self.out_of_reach(self.tokens, rows[self.group])
            weights = weights.masked_fill(lost, NEGATIVE_INFINITY)
        of_listed = weights.new_full(self.keys.shape, NEGATIVE_INFINITY)
        of_listed = of_listed.scatter_reduce(0, self.group, weights, reduce="amax")
        if self.is_rooted:
            of_listed = torch.maximum(of_listed, heaviest([self._unlisted(rows, self.keys % self.num_classes)]))
        return best.flatten().index_copy(0, self.keys, log_difference(of_listed, self.of_pairs)).view_as(best)

    def _unlisted(self, rows: Tensor, classes: Tensor) -> Members:
        """Return the unlisted members of classes in rows: (M,) each."""
        root, weights = self.root, self.weights
        counts = root.class_support[classes]
        counts = counts if weights.rooted is None else counts.masked_fill(~weights.rooted[rows], 0)

        def listed(index: Any, words: Tensor) -> Tensor:
            return weights.find(rows[index].unsqueeze(1) * len(self.class_of) + words)[1]

        begin, cost = root.class_starts[classes], weights.constant[rows]
        return Members(begin, counts, cost, root.ranked_members.__getitem__, root.ranked_weights, listed)

    def best(self, classes: Tensor, k: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        rows = self._rows(classes, rows)
        groups, mask = find_sorted(self.keys, rows * self.num_classes + classes)
        counts = torch.where(mask, self.sizes[groups], 0)
        begin, cost = self.sizes.cumsum(0)[groups] - counts, self.of_listed.new_zeros(counts.shape)
        tables = self.tokens.__getitem__, self.of_listed.__getitem__
        lists = Members(begin, counts, cost, *tables, ranked=False), self._unlisted(rows, classes)
        forbidden = None
        if self.remaining is not None:
            forbidden = lambda index, tokens: self.out_of_reach(tokens, rows[index])  # noqa: E731
        return best_of(lists, self.mass_at(classes, rows), k, forbidden)
