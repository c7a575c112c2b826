"""Weights in N states as a factor of one static background, the root, and a list of words that weigh otherwise.

Sizes: N rows (states), V words, E entries. All weights are natural logarithms.

    log b(n, x)  =  log_weights[e]                   where there is an entry e for row n and word x
                    constant[n] + log root(x)        otherwise, in rows that are rooted
                    −∞                               otherwise

A static background has no entries, an automaton the arcs of a state and of those that it fails to, a sentence's lexical
mixture the translations of its source, a cache the last words. Products and mixtures of such are such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

NEGATIVE_INFINITY = float("-inf")


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
        if len(self.keys) == 0:
            return torch.zeros_like(keys), torch.zeros_like(keys, dtype=torch.bool)
        places = torch.searchsorted(self.keys, keys.contiguous()).clamp_max(len(self.keys) - 1)
        return places, self.keys[places] == keys

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

    def without(self, keys: Tensor) -> ExplicitWeights:
        """These weights where keys (M,), rising, each once, are forbidden."""
        all_keys, (positions, gone) = merged([self.keys, keys])
        weights = self.log_weights.new_zeros(all_keys.shape).index_copy(0, positions, self.log_weights)
        weights = weights.index_fill(0, gone, NEGATIVE_INFINITY)
        return ExplicitWeights(self.num_words, all_keys, weights, self.constant, self.rooted)


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


def no_entries(num_words: int, like: Tensor, rows: int) -> ExplicitWeights:
    """The root in every row. `like`: of the dtype and device of its weights."""
    keys = torch.zeros(0, dtype=torch.int64, device=like.device)
    return ExplicitWeights(num_words, keys, like.new_zeros(0), like.new_zeros(rows), None)
