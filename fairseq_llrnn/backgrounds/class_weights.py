"""Log masses of classes in N rows (hypotheses, or positions of a batch), without a tensor of N × S where that can be.

Sizes: N rows (states), G groups of rows, V words, S classes, E entries, C classes of which each row has its own masses.
All weights are natural logarithms, and sums of them are finite in value and gradient as far as the sum is: −inf is no
weight. `ClassWeights` are

    log B(n, σ)  =  of_groups(g, σ) + Σ added[e] over the entries e at (n, σ) + constant(n)       g: the group of row n
    log B(n, σ)  =  −∞     where row n is in `sparse_row_mask` and has no entry at σ
    log B(n, σ)  =  own_weights(n, σ), where σ is one of these classes

A background that is the same everywhere has one group, one that is the same in a sentence has a group for each (in
a search, of its hypotheses), any other a group for each row. Where what was said changes the masses of the same few
classes in all rows, these are apart. An n-gram changes the masses of the few words that its history has seen, and gives
all others the same factor; a grammar allows a few words, and forbids the rest: one group, and entries. So the output
layer adds E numbers to its scores.

`ExplicitWeights` are weights of words in N states as a factor of one static background, the root, and a list of words
that weigh otherwise:

    log b(n, x)  =  log_weights[e]                   where there is an entry e for row n and word x
                    constant[n] + log root(x)        otherwise, in rows that are rooted
                    −∞                               otherwise

A static background has no entries, an automaton the arcs of a state and of those that it fails to, a sentence's lexical
mixture the translations of its source, a cache the last words. Products and mixtures of such are such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

LEAST_LOG_WEIGHT = -1_000.0  # of a part of a mixture: less may be learned, and changes no digit of any sum


def same_tensor(one: Tensor, other: Tensor) -> bool:
    """Whether both hold the same, on one device: a model that was moved to another one asks anew."""
    return one is other or (one.device == other.device and torch.equal(one, other))


def log_odds(logit: Tensor) -> tuple[Tensor, Tensor]:
    """log λ and log (1 − λ) from log λ/(1−λ), in float64, whatever has been learned."""
    exact = logit.double().clamp(LEAST_LOG_WEIGHT, -LEAST_LOG_WEIGHT)
    return functional.logsigmoid(exact), functional.logsigmoid(-exact)


def log_part_weights(logits: Tensor) -> Tensor:
    """log softmax of what has been learned, over the last dimension, in float64."""
    return logits.double().log_softmax(-1).clamp_min(LEAST_LOG_WEIGHT)


def class_log_sums(log_weights: Tensor, class_of: Tensor, num_classes: int) -> Tensor:
    """log Σ_{x∈σ} exp(log_weights[·, x]) for every class: (N, V) -> (N, S) float64; −inf for a class without mass.

    What is summed is relative to the largest weight, in the dtype of the weights. The logarithm itself would lose the
    digits in single precision that the difference to a member's weight, its share, is made of.
    """
    # shape: (N, S), the largest weight of every class, so that no exponential overflows
    index = class_of.expand_as(log_weights)
    top = log_weights.new_full((log_weights.size(0), num_classes), NEGATIVE_INFINITY)
    top = top.scatter_reduce(1, index, log_weights, reduce="amax", include_self=True)
    empty = top == NEGATIVE_INFINITY
    finite_top = top.masked_fill(empty, 0.0).detach()  # the sum does not depend on it
    sums = torch.zeros_like(top).scatter_add(1, index, (log_weights - finite_top.gather(1, index)).exp())
    # the logarithm of an empty class would have the gradient 0 · ∞
    return (sums.masked_fill(empty, 1.0).log() + finite_top.double()).masked_fill(empty, NEGATIVE_INFINITY)


def log_shares(terms: Tensor) -> Tensor:
    """log softmax over the last dimension, −inf without a gradient where all terms are −inf.

    Not `terms - log_sum(terms)`: where terms are large, that has lost the digits which say that shares sum to one.
    """
    nothing = terms.isneginf().all(-1, keepdim=True)
    return terms.masked_fill(nothing, 0.0).log_softmax(-1).masked_fill(nothing, NEGATIVE_INFINITY)


def log_sum(terms: Tensor) -> Tensor:
    """log Σ exp over the last dimension, whose gradient is 0 where all terms are −inf."""
    nothing = terms.isneginf().all(-1, keepdim=True)
    return terms.masked_fill(nothing, 0.0).logsumexp(-1).masked_fill(nothing.squeeze(-1), NEGATIVE_INFINITY)


def log_difference(weights: Tensor, log_mass: Tensor) -> Tensor:
    """The log shares of weights in masses, at most 0; −inf for a word without weight."""
    return (weights - log_mass).clamp_max(0.0).masked_fill(weights.isneginf(), NEGATIVE_INFINITY)


NEGATIVE_INFINITY = float("-inf")


@dataclass(frozen=True)
class SparseUpdates:
    """What the rows have besides (module docstring); then there is one group."""

    rows: Tensor  # (E,) int64
    classes: Tensor  # (E,) int64
    added: Tensor  # (E,) entries of the same place add up; −inf forbids
    sparse_row_mask: Tensor | None  # (N,) bool: rows in which a class without an entry is forbidden; None: no row
    constant: Tensor  # (N,) what all classes of the row have besides; it cancels in p unless there are slots


def broadcast_groups(of_groups: Tensor, num_rows: int) -> Tensor:
    """What has a row for each group, (G, …), of which row g serves the N/G rows from g·N/G on, for each of N rows."""
    if len(of_groups) in (1, num_rows):
        return of_groups.expand(num_rows, *of_groups.shape[1:])
    return of_groups.repeat_interleave(num_rows // len(of_groups), 0)


def in_groups(rows: Tensor, of_groups: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (N, S), and what has a row for each group, (G, S), as they broadcast: (G, N/G, S) and (G, 1, S)."""
    groups = of_groups.size(0)  # not len, which would make a number of torch.export's symbol
    return rows.view(groups, rows.size(0) // groups, -1), of_groups.unsqueeze(1)


def row_numbers(pairs: Tensor) -> Tensor:
    """The row of every element: (N, M) -> (N, M) int64."""
    return torch.arange(len(pairs), device=pairs.device).unsqueeze(1).expand_as(pairs)


def compress_runs(numbers: Tensor) -> Tensor:
    """Numbers (N,) of rows -> (G,), if each of these is that of N/G rows one after the other, else the same."""
    once, many = torch.unique_consecutive(numbers, return_counts=True)
    return once if bool((many * len(once) == len(numbers)).all()) else numbers


@dataclass(frozen=True)
class OwnClassWeights:
    """Log masses that each row has for itself: of a few classes before `tail`, then of all from there on."""

    classes: Tensor  # (C,) int64
    log_mass: Tensor  # (N, C)
    tail: int


@dataclass(frozen=True)
class ClassWeights:
    """Log masses of N rows."""

    of_groups: Tensor  # (G, S), of which row g serves the N/G rows from g·N/G on; finite at every class with an entry
    num_rows: int  # N
    entries: SparseUpdates | None = None
    own_weights: OwnClassWeights | None = None  # in the place of those of the groups; only without entries

    @property
    def shared(self) -> Tensor:
        """All but entries: (G, S), or (N, S) where rows have masses of their own."""
        if self.own_weights is None:
            return self.of_groups
        shared = broadcast_groups(self.of_groups, self.num_rows)
        return shared.index_copy(1, self.own_weights.classes, self.own_weights.log_mass)

    def added_to(self, scores: Tensor) -> Tensor:
        """Scores (N, S) and the masses but for `constant`; the scores change."""
        each, shared = in_groups(scores, self.of_groups.to(scores.dtype))
        if self.own_weights is None:
            each.add_(shared)
            return self.apply_sparse_updates_(scores)
        of_tail = scores.index_select(1, self.own_weights.classes) + self.own_weights.log_mass.to(scores.dtype)
        each.add_(shared)
        return scores.index_copy_(1, self.own_weights.classes, of_tail)

    @classmethod
    def of(cls, log_mass: Tensor | ClassWeights, num_rows: int) -> ClassWeights:
        """Masses, or those of a tensor (G, S) or (S,), of N rows."""
        return log_mass if isinstance(log_mass, ClassWeights) else cls(torch.atleast_2d(log_mass), num_rows)

    def select_classes(self, some: slice) -> ClassWeights:
        """Some classes; where there are entries, all of them that have one."""
        own_weights = self.own_weights
        if own_weights is not None and some == slice(own_weights.tail, None):
            return ClassWeights(own_weights.log_mass[:, own_weights.tail - self.of_groups.size(1) :], self.num_rows)
        return replace(self, of_groups=self.shared[:, some], own_weights=None)

    def dense(self) -> Tensor:
        """The log masses themselves, (N, S): the definition."""
        if self.entries is None:
            return broadcast_groups(self.shared, self.num_rows)
        updated = self.apply_sparse_updates_(broadcast_groups(self.shared, self.num_rows).clone())
        return updated + self.entries.constant.unsqueeze(1)

    def apply_sparse_updates_(self, scores: Tensor) -> Tensor:
        """Change scores (N, S) that hold `shared` into ones that hold the masses but for `constant`, in place."""
        if self.entries is None:
            return scores
        rows, only = self.entries.rows, self.entries.sparse_row_mask
        flat = rows * scores.size(1) + self.entries.classes  # shape: (E,)
        if only is not None:
            # the entries of these rows are kept aside, for −inf takes nothing away again
            kept = flat[only[rows]]
            if scores.requires_grad:
                kept = kept.unique()  # a place that is there twice would have its gradient twice
            values = scores.reshape(-1)[kept]
            scores.masked_fill_(only.unsqueeze(1), NEGATIVE_INFINITY)
            scores.view(-1)[kept] = values
        scores.view(-1).index_add_(0, flat, self.entries.added.to(scores.dtype))
        return scores

    def select(self, rows: Tensor) -> ClassWeights:
        """Some rows, (M,), each once."""
        if self.entries is None:
            each = broadcast_groups(self.shared, self.num_rows)[rows] if len(self.shared) > 1 else self.shared
            return ClassWeights(each, len(rows))
        entries = self.entries
        number = torch.full((self.num_rows,), -1, dtype=torch.int64, device=rows.device)
        number[rows] = torch.arange(len(rows), device=rows.device)
        here = number[entries.rows] >= 0
        only = None if entries.sparse_row_mask is None else entries.sparse_row_mask[rows]
        moved, classes, added = number[entries.rows][here], entries.classes[here], entries.added[here]
        return ClassWeights(self.shared, len(rows), SparseUpdates(moved, classes, added, only, entries.constant[rows]))

    def repeated(self, times: int) -> ClassWeights:
        """Each row as often, one behind the other: N · times rows."""
        if self.entries is None:
            return ClassWeights(self.shared, self.num_rows * times)
        entries, copies = self.entries, torch.arange(times, device=self.shared.device)
        more = SparseUpdates(
            (entries.rows.unsqueeze(1) * times + copies).flatten(),
            entries.classes.repeat_interleave(times),
            entries.added.repeat_interleave(times),
            None if entries.sparse_row_mask is None else entries.sparse_row_mask.repeat_interleave(times),
            entries.constant.repeat_interleave(times),
        )
        return ClassWeights(self.shared, self.num_rows * times, more)

    def for_classes(self, classes: Tensor) -> Tensor:
        """The log mass of one class in each row: (N,) -> (N,)."""
        if self.entries is None:
            groups = torch.arange(self.num_rows, device=classes.device) // max(1, self.num_rows // len(self.shared))
            return self.shared[groups, classes]
        here = self.entries.classes == classes[self.entries.rows]
        rows = self.entries.rows[here]
        mass = self.shared[0, classes] + self.entries.constant
        mass = mass.index_add(0, rows, self.entries.added[here].to(mass.dtype))
        if self.entries.sparse_row_mask is None:
            return mass
        return mass.masked_fill(self.entries.sparse_row_mask.index_fill(0, rows, False), NEGATIVE_INFINITY)

    def without_constant(self, scores: Tensor) -> Tensor:
        """Subtract `constant`, which `apply_sparse_updates_` leaves out, from scores (N, …) of slots."""
        return scores if self.entries is None else scores - self.entries.constant.to(scores.dtype).unsqueeze(1)


@dataclass(frozen=True)
class ExplicitWeights:
    """Log weights of N rows (module docstring). Entries are on words that the root allows, or are −inf."""

    num_words: int  # V
    keys: Tensor  # (E,) int64, row · V + token, rising, each once
    log_weights: Tensor  # (E,) −inf forbids
    constant: Tensor  # (N,) finite
    rooted: Tensor | None  # (N,) bool: rows in which words without an entry have weight; None: all

    @property
    def rows(self) -> Tensor:
        """(E,)"""
        return self.keys // self.num_words

    @property
    def tokens(self) -> Tensor:
        """(E,)"""
        return self.keys % self.num_words

    def find(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Where the entries of these keys are (any shape), and whether they are."""
        return find_sorted(self.keys, keys)

    def at(self, keys: Tensor, root: Tensor) -> Tensor:
        """log b at keys (M,) of `row · V + token`, where log root is (V,): (M,)."""
        by_root = self._by_root(keys, root)
        places, mask = self.find(keys)
        return torch.where(mask, self.log_weights[places], by_root) if len(self.keys) else by_root

    def _by_root(self, keys: Tensor, root: Tensor) -> Tensor:
        rows = keys // self.num_words
        by_root = self.constant[rows] + root[keys % self.num_words]
        return by_root if self.rooted is None else by_root.masked_fill(~self.rooted[rows], NEGATIVE_INFINITY)

    def dense(self, root: Tensor) -> Tensor:
        """log b of all words, (N, V): the definition."""
        weights = self.constant.unsqueeze(1) + root
        if self.rooted is not None:
            weights = weights.masked_fill(~self.rooted.unsqueeze(1), NEGATIVE_INFINITY)
        return weights.flatten().index_copy(0, self.keys, self.log_weights.to(weights.dtype)).view_as(weights)

    def class_sums(self, root: Tensor, class_of: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
        """How many words of every class have weight, and the sum of their log b: (N, S) each."""
        has_weight = root.isfinite()
        both = torch.stack([has_weight.to(root.dtype), root.masked_fill(~has_weight, 0.0)])
        of_root = both.new_zeros(2, num_classes).index_add(1, class_of, both)
        rows, tokens = self.rows, self.tokens
        rooted = torch.ones_like(self.constant) if self.rooted is None else self.rooted.to(self.constant.dtype)
        many, total = rooted.unsqueeze(1) * of_root[0], rooted.unsqueeze(1) * of_root[1]
        total = total + many * self.constant.unsqueeze(1)
        # what the root gives to listed words is taken away
        of_listed, listed = rooted[rows] * both[0, tokens], ~self.log_weights.isneginf()
        place = rows * num_classes + class_of[tokens]
        many = many.flatten().index_add(0, place, listed.to(many.dtype) - of_listed).view_as(many)
        changed = self.log_weights.masked_fill(~listed, 0.0) - of_listed * (self.constant[rows] + both[1, tokens])
        return many, total.flatten().index_add(0, place, changed.to(total.dtype)).view_as(many)

    def forbid(self, keys: Tensor) -> ExplicitWeights:
        """These weights where keys (M,), rising, each once, are forbidden."""
        all_keys, (positions, gone) = merged([self.keys, keys])
        weights = self.log_weights.new_zeros(all_keys.shape).index_copy(0, positions, self.log_weights)
        weights = weights.index_fill(0, gone, NEGATIVE_INFINITY)
        return replace(self, keys=all_keys, log_weights=weights)


def find_sorted(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Where in rising keys each wanted one (any shape) stands, and whether it does; some place where it does not."""
    if len(keys) == 0:
        return torch.zeros_like(wanted), torch.zeros_like(wanted, dtype=torch.bool)
    places = torch.searchsorted(keys, wanted.contiguous()).clamp_max(len(keys) - 1)
    return places, keys[places] == wanted


def merged(keys: Sequence[Tensor]) -> tuple[Tensor, Sequence[Tensor]]:
    """Rising keys, each once, of several lists of such, and where those of each list are: (E,), and (E_i,) each."""
    ordered, order = torch.cat(list(keys)).sort()
    once, which = torch.unique_consecutive(ordered, return_inverse=True)
    places = torch.empty_like(order).index_copy(0, order, which)
    return once, places.split([len(k) for k in keys])


def side_by_side(parts: Sequence[ExplicitWeights], roots: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """The words that any of the parts lists, and each part's log weights of them: keys (E,), and (E,) each.

    Args:
        roots: log weights (V,) of each part's root.
    """
    keys, places = merged([part.keys for part in parts])
    weights = [
        part._by_root(keys, root).index_copy(0, place, part.log_weights)
        for part, root, place in zip(parts, roots, places, strict=True)
    ]
    return keys, weights


def expanded(begins: Tensor, many: Tensor) -> tuple[Tensor, Tensor]:
    """begins[0], begins[0] + 1, … (many[0] numbers), then those of begins[1], …; before that, which each is of.

    Args:
        begins, many: (N,) int64.

    Returns:
        rows (E,) and places (E,), E the sum of `many`.
    """
    rows = torch.arange(len(many), device=many.device).repeat_interleave(many)
    shift = begins - many.cumsum(0) + many
    return rows, shift[rows] + torch.arange(len(rows), device=many.device)
