"""Masses and best members of signatures if some words have other weights than under a static background.

Sizes: N rows, K roots, V words, S signatures, E entries (listed words), G pairs of a row and a signature with
entries, M queried pairs of a row and a class, F words of the front.

`ListedClasses` are the masses and best members of the signatures with listed words: the changes that `ExplicitWeights`
(class_weights.py) make to their root.

    B(n, σ)  =  exp(constant[n]) · (B_root(σ) − Σ_{x ∈ σ listed} root(x))  +  Σ_{x ∈ σ listed} b(n, x)

The difference is computed as 1 − Σ of shares. If little is left, its digits are lost, and the unlisted members are
summed instead.

`SeveralRoots` finds the best members of classes under a mixture of static backgrounds with different weights in every
row.

    best(n, σ)  =  max over x ∈ σ of  Σ_i exp(α[n, i]) root_i(x)

For any α, a word that another member of its class beats under every root is not the best. The other words are the
front: few words of each class, found once. (It may contain a few beaten words, because only heavy words are compared.)
Listed words have other weights. If a word of the front is listed with a smaller weight, all words of its class are
compared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, ExactBuffers, StaticBackground
from fairseq_llrnn.backgrounds.class_weights import (
    ClassWeights,
    ExplicitWeights,
    SparseUpdates,
    class_log_sums,
    expanded,
    find_sorted,
    log_difference,
)
from fairseq_llrnn.backgrounds.members import Members, best_of, heaviest

LITTLE_LEFT = 0.1  # of a class' mass: a difference in single precision would lose a digit

OutOfReach = Callable[[Tensor, Tensor], Tensor]  # rows (M,), tokens (M,) -> (M,) bool, words that a limit forbids


class ListedClasses:
    """The signatures with listed words of `weights` over the root."""

    def __init__(self, root: StaticBackground, weights: ExplicitWeights) -> None:
        self.root, self.weights = root, weights
        owner = weights.rows * root.num_classes + root.class_of[weights.tokens]
        keys, order = owner.sort(stable=True)
        self.order = order  # entries by row and class, there by token
        # shape: (G,), ascending keys row · S + class; (E,), the pair of each entry in that order
        self.keys, self.group, sizes = torch.unique_consecutive(keys, return_inverse=True, return_counts=True)
        self.sizes = functional.pad(sizes, (0, 1))  # shape: (G + 1,), padded in case of G = 0
        self.rows, self.classes = self.keys // root.num_classes, self.keys % root.num_classes
        self.tokens, self.log_weights = weights.tokens[order], weights.log_weights[order]

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

    # ---- masses -----------------------------------------------------------------------------------------------------

    @cached_property
    def mass(self) -> Tensor:
        """log B(n, σ) of the pairs with entries: (G,)."""
        if len(self.keys) == 0:
            return self.log_weights
        of_entries = class_log_sums(self.log_weights.unsqueeze(0), self.group, len(self.keys)).squeeze(0)
        if not self.is_rooted:
            return of_entries
        rest = self.weights.constant[self.rows] + self.root.class_log_mass[self.classes] + self._rest()
        rest = self._where_rooted(rest, self.rows)
        nothing = rest.isneginf() & of_entries.isneginf()  # its gradient would be NaN
        return torch.logaddexp(rest.masked_fill(nothing, 0.0), of_entries).masked_fill(nothing, NEGATIVE_INFINITY)

    def _rest(self) -> Tensor:
        """Return the log share in the root of the unlisted members of each pair's class: (G,)."""
        log_share = self.root.word_log_share[self.tokens]
        zeros = torch.zeros(len(self.keys), dtype=torch.float64, device=log_share.device)
        listed = zeros.index_add(0, self.group, log_share.double().exp())
        counts = zeros.index_add(0, self.group, (~log_share.isneginf()).double())
        unlisted = counts < self.root.class_support[self.classes]
        left = torch.where(unlisted, (1.0 - listed).clamp_min(0.0), 0.0)
        little = (unlisted & (left < min(LITTLE_LEFT, 1e6 * torch.finfo(log_share.dtype).eps))).nonzero().squeeze(1)
        if len(little) > 0:
            left[little] = self._sum_of_rest(little)
        return left.log().to(log_share.dtype)

    def _sum_of_rest(self, groups: Tensor) -> Tensor:
        """Return the shares of the unlisted members, summed one by one: (groups,) float64."""
        classes = self.classes[groups]
        index, places = expanded(self.root.class_starts[classes], self.root.class_support[classes])
        words = self.root.ranked_members[places]
        listed = self.weights.find(self.rows[groups][index] * self.weights.num_words + words)[1]
        shares = self.root.word_log_share[words].double().exp().masked_fill(listed, 0.0)
        return shares.new_zeros(len(groups)).index_add(0, index, shares)

    def find(self, rows: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Return the places of M pairs among the pairs with entries, and whether they exist: (M,), (M,) bool."""
        return find_sorted(self.keys, rows * self.root.num_classes + classes)

    def mass_at(self, rows: Tensor, classes: Tensor) -> Tensor:
        """Return log B(n, σ): (M,), (M,) -> (M,)."""
        by_root = self._where_rooted(self.weights.constant[rows] + self.root.class_log_mass[classes], rows)
        places, mask = self.find(rows, classes)
        return torch.where(mask, self.mass[places], by_root) if len(self.keys) else by_root

    def class_weights(self) -> ClassWeights:
        """Return the masses of all rows and classes."""
        shared = self.root.class_log_mass
        has_mass = shared[self.classes].isfinite()  # a class without weight in the root has no mass
        rows, classes = self.rows[has_mass], self.classes[has_mass]
        constant = self.weights.constant
        entries = SparseUpdates(
            rows=rows,
            classes=classes,
            added=self.mass[has_mass] - constant[rows] - shared[classes],
            sparse_row_mask=None if self.weights.rooted is None else ~self.weights.rooted,
            constant=constant,
        )
        return ClassWeights(shared.unsqueeze(0), len(constant), entries)

    # ---- best members -----------------------------------------------------------------------------------------------

    def best_share(self, forbidden: OutOfReach | None = None) -> Tensor:
        """Return the log share of the best member of every class: (N, S).

        Args:
            forbidden: excludes words that have mass; only if no row is rooted.
        """
        num_rows = len(self.weights.constant)
        best = self.root.best_share(self.keys).expand(num_rows, -1).clone()
        best = self._where_rooted(best, torch.arange(num_rows, device=best.device))
        if len(self.keys) == 0:
            return best
        weights = self.log_weights
        if forbidden is not None:
            weights = weights.masked_fill(forbidden(self.rows[self.group], self.tokens), NEGATIVE_INFINITY)
        of_listed = weights.new_full(self.keys.shape, NEGATIVE_INFINITY)
        of_listed = of_listed.scatter_reduce(0, self.group, weights, reduce="amax")
        if self.is_rooted:
            of_listed = torch.maximum(of_listed, heaviest([self._rooted(self.rows, self.classes)]))
        return best.flatten().index_copy(0, self.keys, log_difference(of_listed, self.mass)).view_as(best)

    def _rooted(self, rows: Tensor, classes: Tensor) -> Members:
        """Return the unlisted members of classes in rows: (M,) each."""
        root, weights = self.root, self.weights
        counts = root.class_support[classes]
        counts = counts if weights.rooted is None else counts.masked_fill(~weights.rooted[rows], 0)

        def listed(index: Any, words: Tensor) -> Tensor:
            return weights.find(rows[index].unsqueeze(1) * weights.num_words + words)[1]

        begin, cost = root.class_starts[classes], weights.constant[rows]
        return Members(begin, counts, cost, root.ranked_members.__getitem__, root.ranked_weights, listed)

    def best_members(
        self, rows: Tensor, classes: Tensor, k: int, forbidden: OutOfReach | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the k members with the largest shares: (M,), (M,) -> log shares and tokens (M, k), padded with
        −inf and 0.
        """
        groups, mask = self.find(rows, classes)
        counts = torch.where(mask, self.sizes[groups], 0)
        begin, cost = self.sizes.cumsum(0)[groups] - counts, self.log_weights.new_zeros(counts.shape)
        tables = self.tokens.__getitem__, self.log_weights.__getitem__
        lists = Members(begin, counts, cost, *tables, ranked=False), self._rooted(rows, classes)
        limit = None if forbidden is None else lambda index, tokens: forbidden(rows[index], tokens)
        return best_of(lists, self.mass_at(rows, classes), k, limit)


WeightsAt = Callable[[Tensor, Tensor], Tensor]  # rows (M,), tokens (M,) -> log weights (M,)


class SeveralRoots(ExactBuffers):
    """The roots of a mixture's parts, by class."""

    class_of: Tensor  # (V,)
    roots: Tensor  # (K, V) log weights
    front: Tensor  # (F,) words
    place: Tensor  # (V,) place of a word in the front; −1 for others
    by_class: Tensor  # (V,) words by class
    class_starts: Tensor  # (S + 1,) offsets of the classes in by_class

    def __init__(self, class_of: Tensor, num_classes: int, roots: Tensor) -> None:
        """class_of: (V,). roots: log weights (K, V)."""
        super().__init__()
        self.num_classes = num_classes
        front = _front(class_of, num_classes, roots)
        sizes = torch.bincount(class_of, minlength=num_classes)
        self.keep(
            class_of=class_of,
            roots=roots,
            front=front,
            place=torch.full_like(class_of, -1).index_copy(0, front, torch.arange(len(front))),
            by_class=class_of.argsort(stable=True),
            class_starts=torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]),
        )

    def best(self, log_alpha: Tensor, keys: Tensor, listed: Tensor, weights_at: WeightsAt) -> Tensor:
        """Return the log weight of the best member of every class: (N, S).

        Args:
            log_alpha: (N, K), −inf if a root has no weight in a row. keys: row · V + token of listed words, (E,).
            listed: their log weights, (E,). weights_at: the log weights of any words.
        """
        num_words, rows = len(self.class_of), keys // len(self.class_of)
        tokens = keys % num_words
        values = torch.full((len(log_alpha), len(self.front)), NEGATIVE_INFINITY, dtype=listed.dtype).to(listed.device)
        for i, root in enumerate(self.roots[:, self.front]):
            values = torch.logaddexp(values, log_alpha[:, i : i + 1] + root)
        in_front = self.place[tokens] >= 0
        place = rows[in_front] * len(self.front) + self.place[tokens[in_front]]
        lighter = listed[in_front] < values.flatten()[place]
        values = values.flatten().index_copy(0, place, listed[in_front]).view_as(values)
        best = values.new_full((len(log_alpha), self.num_classes), NEGATIVE_INFINITY)
        best = best.scatter_reduce(1, self.class_of[self.front].expand_as(values), values, reduce="amax")
        pairs = rows * self.num_classes + self.class_of[tokens]
        best = best.flatten().scatter_reduce(0, pairs, listed, reduce="amax")
        stale = pairs[in_front][lighter].unique()
        row, classes = stale // self.num_classes, stale % self.num_classes
        index, words = self.members(classes)
        of_words = weights_at(row[index], words)
        fresh = best.new_full(stale.shape, NEGATIVE_INFINITY).scatter_reduce(0, index, of_words, reduce="amax")
        return best.index_copy(0, stale, fresh).view(len(log_alpha), self.num_classes)

    def members(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Return all words of classes (M,), and the index of each word's class."""
        begins = self.class_starts[classes]
        index, places = expanded(begins, self.class_starts[classes + 1] - begins)
        return index, self.by_class[places]

    def best_members(self, rows: Tensor, classes: Tensor, k: int, weights_at: WeightsAt) -> tuple[Tensor, Tensor]:
        """Return the k heaviest members: rows (M,), classes (M,) -> log weights and tokens (M, k), padded with
        −inf and 0.
        """
        index, words = self.members(classes)
        sizes = self.class_starts[classes + 1] - self.class_starts[classes]
        column = torch.arange(len(index), device=index.device) - (sizes.cumsum(0) - sizes)[index]
        shape = len(classes), max(k, int(sizes.max()) if len(sizes) else 0)
        of_words = weights_at(rows[index], words)
        weights = of_words.new_full(shape, NEGATIVE_INFINITY).index_put((index, column), of_words)
        values, best = weights.topk(k, dim=1)
        tokens = words.new_zeros(shape).index_put((index, column), words).gather(1, best)
        return values, tokens.masked_fill(values.isneginf(), 0)


def _front(class_of: Tensor, num_classes: int, roots: Tensor) -> Tensor:
    """Return the words that no heavy member of their class beats: (F,)."""
    num_words = len(class_of)
    words = torch.arange(num_words, device=class_of.device)
    in_front = ~roots.isneginf().all(0)
    for weights in (*roots, roots.clamp_min(-1e4).mean(0)):
        # the first of the heaviest members of each class
        top = weights.new_full((num_classes,), NEGATIVE_INFINITY).scatter_reduce(0, class_of, weights, reduce="amax")
        heaviest = words.masked_fill(weights < top[class_of], num_words)
        first = class_of.new_full((num_classes,), num_words).scatter_reduce(0, class_of, heaviest, reduce="amin")
        rival = first[class_of]  # shape: (V,)
        of_rival = roots[:, rival]
        beaten = (roots <= of_rival).all(0) & ((roots < of_rival).any(0) | (rival < words))
        in_front &= ~beaten
    return in_front.nonzero().squeeze(1)
