"""Log masses of classes in N rows (hypotheses, or positions of a batch), without a tensor of N × S if possible.

Sizes: N rows (states), G groups of rows, V words, S classes, E entries, C classes with their own masses in each row.
All weights are natural logarithms. −inf is no weight. Sums are finite in value and gradient. `ClassWeights` are

    log B(n, σ)  =  of_groups(g, σ) + Σ added[e] over the entries e at (n, σ) + constant(n)       g: the group of row n
    log B(n, σ)  =  −∞     if row n is in `sparse_row_mask` and has no entry at σ
    log B(n, σ)  =  own_weights(n, σ), if σ is one of these classes

A constant background has one group. A background that depends on the sentence has a group for each sentence (in a
search, for its hypotheses). Any other background has a group for each row. If the previous tokens change the masses of
the same few classes in all rows, these are `own_weights`. An n-gram changes the masses of the few words after its
history, and multiplies all others by one factor; a grammar allows few words, and forbids the rest. These have one group
and entries, so that the output layer adds E numbers to its scores. Only counted slots (evidence/) have own_weights.

`ExplicitWeights` are weights of words in N states: a factor of one static background, the root, and exceptions.

    log b(n, x)  =  log_weights[e]                   if there is an entry e for row n and word x
                    constant[n] + log root(x)        otherwise, in rows that are rooted
                    −∞                               otherwise

A static background has no entries. An automaton has the arcs of a state and of its failure states, the lexical
mixture of a sentence the translations of its source, a cache the last words. Products and mixtures combine them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

NEGATIVE_INFINITY = float("-inf")
LEAST_LOG_WEIGHT = -1_000.0  # of a part of a mixture: smaller learned weights change no digit of any sum


def log_odds(logit: Tensor) -> tuple[Tensor, Tensor]:
    """Return log λ and log (1 − λ), given log λ/(1−λ), in float64, finite for any logit."""
    exact = logit.double().clamp(LEAST_LOG_WEIGHT, -LEAST_LOG_WEIGHT)
    return functional.logsigmoid(exact), functional.logsigmoid(-exact)


def log_part_weights(logits: Tensor) -> Tensor:
    """Return the log softmax of logits over the last dimension, in float64."""
    return logits.double().log_softmax(-1).clamp_min(LEAST_LOG_WEIGHT)


def class_log_sums(log_weights: Tensor, class_of: Tensor, num_classes: int) -> Tensor:
    """Return log Σ_{x∈σ} exp(log_weights[·, x]) of every class: (N, V) -> (N, S) float64, with −inf for a class without
    mass.

    Sums are relative to the largest weight, in the dtype of the weights. The logarithm is float64, because single
    precision would lose the digits of shares, its difference to a member's weight.
    """
    # shape: (N, S), the largest weight of every class, so that no exponential overflows
    index = class_of.expand_as(log_weights)
    top = log_weights.new_full((log_weights.size(0), num_classes), NEGATIVE_INFINITY)
    top = top.scatter_reduce(1, index, log_weights, reduce="amax", include_self=True)
    empty = top == NEGATIVE_INFINITY
    finite_top = top.masked_fill(empty, 0.0).detach()  # the result does not depend on it
    sums = torch.zeros_like(top).scatter_add(1, index, (log_weights - finite_top.gather(1, index)).exp())
    # the logarithm of an empty class would have the gradient 0 · ∞
    return (sums.masked_fill(empty, 1.0).log() + finite_top.double()).masked_fill(empty, NEGATIVE_INFINITY)


def log_shares(terms: Tensor) -> Tensor:
    """Return the log softmax over the last dimension, or −inf without a gradient if all terms are −inf.

    `terms - log_sum(terms)` would lose precision for large terms, so that shares would not sum to one.
    """
    nothing = terms.isneginf().all(-1, keepdim=True)
    return terms.masked_fill(nothing, 0.0).log_softmax(-1).masked_fill(nothing, NEGATIVE_INFINITY)


def log_sum(terms: Tensor) -> Tensor:
    """Return log Σ exp over the last dimension. Its gradient is 0 if all terms are −inf."""
    nothing = terms.isneginf().all(-1, keepdim=True)
    return terms.masked_fill(nothing, 0.0).logsumexp(-1).masked_fill(nothing.squeeze(-1), NEGATIVE_INFINITY)


def log_difference(weights: Tensor, log_mass: Tensor) -> Tensor:
    """Return the log shares of weights in masses, at most 0, or −inf for a word without weight."""
    return (weights - log_mass).clamp_max(0.0).masked_fill(weights.isneginf(), NEGATIVE_INFINITY)


@dataclass(frozen=True)
class SparseUpdates:
    """Sparse additions to rows (module docstring). They require one group."""

    rows: Tensor  # (E,) int64
    classes: Tensor  # (E,) int64
    added: Tensor  # (E,) entries of the same place add up; −inf forbids
    sparse_row_mask: Tensor | None  # (N,) bool: rows in which a class without an entry is forbidden; None: no row
    constant: Tensor  # (N,) added to all classes of the row; it cancels in p unless there are slots


def broadcast_groups(of_groups: Tensor, num_rows: int) -> Tensor:
    """Expand values (G, …) of groups to N rows. Row g is repeated for the N/G rows from g·N/G on."""
    if len(of_groups) in (1, num_rows):
        return of_groups.expand(num_rows, *of_groups.shape[1:])
    return of_groups.repeat_interleave(num_rows // len(of_groups), 0)


def in_groups(rows: Tensor, of_groups: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows (N, S) and values of groups (G, S) in shapes that broadcast: (G, N/G, S) and (G, 1, S)."""
    groups = of_groups.size(0)  # not len, which would turn torch.export's symbol into a number
    return rows.view(groups, rows.size(0) // groups, -1), of_groups.unsqueeze(1)


def row_numbers(pairs: Tensor) -> Tensor:
    """Return the row index of every element: (N, M) -> (N, M) int64."""
    return torch.arange(len(pairs), device=pairs.device).unsqueeze(1).expand_as(pairs)


def compress_runs(numbers: Tensor) -> Tensor:
    """Return one value per run of equal values (N,) if all runs have N/G values, (G,), otherwise the same tensor."""
    if torch.compiler.is_compiling():
        return numbers
    distinct, counts = torch.unique_consecutive(numbers, return_counts=True)
    return distinct if bool((counts * len(distinct) == len(numbers)).all()) else numbers


@dataclass(frozen=True)
class OwnClassWeights:
    """Log masses that differ in each row: of a few classes before `tail`, then of all classes from `tail` on."""

    classes: Tensor  # (C,) int64
    log_mass: Tensor  # (N, C)
    tail: int


@dataclass(frozen=True)
class ClassWeights:
    """Log masses of N rows (module docstring)."""

    of_groups: Tensor  # (G, S), row g for the N/G rows from g·N/G on; finite at every class with an entry
    num_rows: int  # N
    entries: SparseUpdates | None = None
    own_weights: OwnClassWeights | None = None  # replace those of the groups; only without entries

    @property
    def shared(self) -> Tensor:
        """The masses without entries: (G, S), or (N, S) if rows have their own masses."""
        if self.own_weights is None:
            return self.of_groups
        shared = broadcast_groups(self.of_groups, self.num_rows)
        return shared.index_copy(1, self.own_weights.classes, self.own_weights.log_mass)

    def added_to(self, scores: Tensor) -> Tensor:
        """Add the masses except `constant` to scores (N, S), which may change in place, and return the result."""
        grouped, shared = in_groups(scores, self.of_groups.to(scores.dtype))
        if self.own_weights is None:
            grouped.add_(shared)
            return self.apply_sparse_updates_(scores)
        of_tail = scores.index_select(1, self.own_weights.classes) + self.own_weights.log_mass.to(scores.dtype)
        grouped.add_(shared)
        return scores.index_copy_(1, self.own_weights.classes, of_tail)

    @classmethod
    def of(cls, log_mass: Tensor | ClassWeights, num_rows: int) -> ClassWeights:
        """Return class weights of N rows, given class weights or a tensor (G, S) or (S,)."""
        return log_mass if isinstance(log_mass, ClassWeights) else cls(torch.atleast_2d(log_mass), num_rows)

    def select_classes(self, classes: slice) -> ClassWeights:
        """Select classes. The slice must contain all classes with entries."""
        own_weights = self.own_weights
        if own_weights is not None and classes == slice(own_weights.tail, None):
            return ClassWeights(own_weights.log_mass[:, own_weights.tail - self.of_groups.size(1) :], self.num_rows)
        return replace(self, of_groups=self.shared[:, classes], own_weights=None)

    def dense(self) -> Tensor:
        """Return the log masses, (N, S): the definition."""
        if self.entries is None:
            return broadcast_groups(self.shared, self.num_rows)
        updated = self.apply_sparse_updates_(broadcast_groups(self.shared, self.num_rows).clone())
        return updated + self.entries.constant.unsqueeze(1)

    def apply_sparse_updates_(self, scores: Tensor) -> Tensor:
        """Add the sparse updates except `constant` to scores (N, S) that contain `shared`, in place."""
        if self.entries is None:
            return scores
        rows, only = self.entries.rows, self.entries.sparse_row_mask
        flat = rows * scores.size(1) + self.entries.classes  # shape: (E,)
        if only is not None:
            # save the scores of entries in these rows, which are set to −inf
            saved = flat[only[rows]]
            if scores.requires_grad:
                saved = saved.unique()  # a repeated place would count its gradient twice
            values = scores.reshape(-1)[saved]
            scores.masked_fill_(only.unsqueeze(1), NEGATIVE_INFINITY)
            scores.view(-1)[saved] = values
        scores.view(-1).index_add_(0, flat, self.entries.added.to(scores.dtype))
        return scores

    def select(self, rows: Tensor) -> ClassWeights:
        """Select distinct rows, (M,)."""
        if self.entries is None:
            shared = self.shared
            shared = broadcast_groups(shared, self.num_rows)[rows] if len(shared) > 1 else shared
            return ClassWeights(shared, len(rows))
        entries = self.entries
        number = torch.full((self.num_rows,), -1, dtype=torch.int64, device=rows.device)
        number[rows] = torch.arange(len(rows), device=rows.device)
        mask = number[entries.rows] >= 0
        only = None if entries.sparse_row_mask is None else entries.sparse_row_mask[rows]
        moved, classes, added = number[entries.rows][mask], entries.classes[mask], entries.added[mask]
        return ClassWeights(self.shared, len(rows), SparseUpdates(moved, classes, added, only, entries.constant[rows]))

    def repeated(self, times: int) -> ClassWeights:
        """Repeat each row `times` times, one after the other: N · times rows."""
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
        """Return the log mass of one class in each row: (N,) -> (N,)."""
        if self.entries is None:
            shared = self.shared
            groups = torch.arange(self.num_rows, device=classes.device) // max(1, self.num_rows // len(shared))
            return shared[groups, classes]
        mask = self.entries.classes == classes[self.entries.rows]
        rows = self.entries.rows[mask]
        mass = self.shared[0, classes] + self.entries.constant
        mass = mass.index_add(0, rows, self.entries.added[mask].to(mass.dtype))
        if self.entries.sparse_row_mask is None:
            return mass
        return mass.masked_fill(self.entries.sparse_row_mask.index_fill(0, rows, False), NEGATIVE_INFINITY)

    def without_constant(self, scores: Tensor) -> Tensor:
        """Subtract `constant`, which `apply_sparse_updates_` leaves out, from scores (N, …) of slots."""
        return scores if self.entries is None else scores - self.entries.constant.to(scores.dtype).unsqueeze(1)


@dataclass(frozen=True)
class ExplicitWeights:
    """Log weights of N rows (module docstring). Entries are for words that the root allows, or are −inf."""

    num_words: int  # V
    keys: Tensor  # (E,) int64, row · V + token, strictly ascending
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
        """Return the places of keys (any shape) among the entries, and whether they exist."""
        return find_sorted(self.keys, keys)

    def at(self, keys: Tensor, root: Tensor) -> Tensor:
        """Return log b at keys (M,), `row · V + token`, given log root (V,): (M,)."""
        by_root = self._by_root(keys, root)
        places, mask = self.find(keys)
        return torch.where(mask, self.log_weights[places], by_root) if len(self.keys) else by_root

    def _by_root(self, keys: Tensor, root: Tensor) -> Tensor:
        rows = keys // self.num_words
        by_root = self.constant[rows] + root[keys % self.num_words]
        return by_root if self.rooted is None else by_root.masked_fill(~self.rooted[rows], NEGATIVE_INFINITY)

    def dense(self, root: Tensor) -> Tensor:
        """Return log b of all words, (N, V): the definition."""
        weights = self.constant.unsqueeze(1) + root
        if self.rooted is not None:
            weights = weights.masked_fill(~self.rooted.unsqueeze(1), NEGATIVE_INFINITY)
        return weights.flatten().index_copy(0, self.keys, self.log_weights.to(weights.dtype)).view_as(weights)

    def class_sums(self, root: Tensor, class_of: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
        """Return the number of words of every class with weight, and the sum of their log b: (N, S) each."""
        has_weight = root.isfinite()
        of_words = torch.stack([has_weight.to(root.dtype), root.masked_fill(~has_weight, 0.0)])
        of_root = of_words.new_zeros(2, num_classes).index_add(1, class_of, of_words)
        rows, tokens = self.rows, self.tokens
        rooted = torch.ones_like(self.constant) if self.rooted is None else self.rooted.to(self.constant.dtype)
        counts, total = rooted.unsqueeze(1) * of_root[0], rooted.unsqueeze(1) * of_root[1]
        total = total + counts * self.constant.unsqueeze(1)
        # subtract the root's weights of listed words
        of_listed, listed = rooted[rows] * of_words[0, tokens], ~self.log_weights.isneginf()
        place = rows * num_classes + class_of[tokens]
        counts = counts.flatten().index_add(0, place, listed.to(counts.dtype) - of_listed).view_as(counts)
        changed = self.log_weights.masked_fill(~listed, 0.0) - of_listed * (self.constant[rows] + of_words[1, tokens])
        return counts, total.flatten().index_add(0, place, changed.to(total.dtype)).view_as(counts)

    def forbid(self, keys: Tensor) -> ExplicitWeights:
        """Return these weights with the words at keys (M,), strictly ascending, forbidden."""
        all_keys, (positions, forbidden) = merged([self.keys, keys])
        weights = self.log_weights.new_zeros(all_keys.shape).index_copy(0, positions, self.log_weights)
        weights = weights.index_fill(0, forbidden, NEGATIVE_INFINITY)
        return replace(self, keys=all_keys, log_weights=weights)


def find_sorted(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Return the places of wanted keys (any shape) in ascending keys, and whether they exist, else an arbitrary
    place.
    """
    if len(keys) == 0:
        return torch.zeros_like(wanted), torch.zeros_like(wanted, dtype=torch.bool)
    places = torch.searchsorted(keys, wanted.contiguous()).clamp_max(len(keys) - 1)
    return places, keys[places] == wanted


def merged(keys: Sequence[Tensor]) -> tuple[Tensor, Sequence[Tensor]]:
    """Merge strictly ascending keys of several lists: all keys (E,), and the places of each list's keys, (E_i,)
    each.
    """
    ordered, order = torch.cat(list(keys)).sort()
    distinct, index = torch.unique_consecutive(ordered, return_inverse=True)
    places = torch.empty_like(order).index_copy(0, order, index)
    return distinct, places.split([len(k) for k in keys])


def side_by_side(parts: Sequence[ExplicitWeights], roots: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Return the words listed by any part, and each part's log weights of them: keys (E,), and (E,) each.

    Args:
        roots: log weights (V,) of each part's root.
    """
    keys, places = merged([part.keys for part in parts])
    weights = [
        part._by_root(keys, root).index_copy(0, place, part.log_weights)
        for part, root, place in zip(parts, roots, places, strict=True)
    ]
    return keys, weights


def expanded(begins: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return n, and begins[n], begins[n] + 1, … (counts[n] numbers), for every n, one after the other.

    Args:
        begins, counts: (N,) int64.

    Returns:
        rows (E,) and places (E,), E the sum of `counts`.
    """
    rows = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
    shift = begins - counts.cumsum(0) + counts
    return rows, shift[rows] + torch.arange(len(rows), device=counts.device)
