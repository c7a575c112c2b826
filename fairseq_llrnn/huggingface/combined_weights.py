"""Weights of several others: products and mixtures.

Sizes: N hypotheses, K tokens.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.huggingface.token_weights import Row, TokenWeights


class _Several(TokenWeights[list[Any]]):
    """Made of parts. A state has one of each part's."""

    def __init__(self, parts: Sequence[TokenWeights]) -> None:
        self.parts, self.num_tokens = list(parts), parts[0].num_tokens

    def within(self, longest: int) -> TokenWeights[list[Any]]:
        limited = copy.copy(self)
        limited.parts = [part.within(longest) for part in self.parts]
        return limited

    def without(self, lost: np.ndarray) -> TokenWeights[list[Any]]:
        left = copy.copy(self)
        left.parts = [part.without(lost) for part in self.parts]
        return left

    def start(self, n: int) -> list[Any]:
        return [part.start(n) for part in self.parts]

    def advance(self, states: list[Any], tokens: np.ndarray) -> list[Any]:
        return [part.advance(state, tokens) for part, state in zip(self.parts, states, strict=True)]

    def select(self, states: list[Any], rows: np.ndarray) -> list[Any]:
        return [part.select(state, rows) for part, state in zip(self.parts, states, strict=True)]

    def rows(self, states: list[Any], scores: Tensor) -> list[Row]:
        of_parts = [part.rows(state, scores) for part, state in zip(self.parts, states, strict=True)]
        return [self._together(rows, scores) for rows in zip(*of_parts, strict=True)]

    @abstractmethod
    def _together(self, rows: Sequence[Row], scores: Tensor) -> Row:
        """One hypothesis' row, of those of the parts."""

    def _in_reach_of_parts(self, states: list[Any], remaining: int) -> list[tuple[np.ndarray | None, ...]]:
        found = [part.in_reach(state, remaining) for part, state in zip(self.parts, states, strict=True)]
        return list(zip(*found, strict=True))


class ProductWeights(_Several):
    """Π b_i. A text is in reach if it is for every part, which is exact if only one part restricts the end."""

    def _together(self, rows: Sequence[Row], scores: Tensor) -> Row:
        first, *others = sorted(rows, key=lambda row: self.num_tokens if row.tokens is None else len(row.tokens))
        if first.tokens is None:
            weights = [row.log_weights for row in rows if row.log_weights is not None]
            return Row(None, sum(weights[1:], weights[0]) if weights else None)
        tokens, total = first.tokens, first.log_weights
        for row in others:
            of_row = row.dense(self.num_tokens, scores)[tokens]
            allowed = ~of_row.isneginf()
            tokens, of_row = tokens[allowed], of_row[allowed]
            total = of_row if total is None else total[allowed] + of_row
        return Row(tokens, total)

    def in_reach(self, states: list[Any], remaining: int) -> list[np.ndarray | None]:
        found = ([part for part in parts if part is not None] for parts in self._in_reach_of_parts(states, remaining))
        return [np.logical_and.reduce(parts) if parts else None for parts in found]

    def least(self, states: list[Any]) -> int:
        return max(part.least(state) for part, state in zip(self.parts, states, strict=True))


class MixtureWeights(_Several):
    """Σ w_i b_i."""

    def __init__(self, parts: Sequence[TokenWeights], weights: Sequence[float]) -> None:
        super().__init__(parts)
        self.weights = list(weights)

    def without(self, lost: np.ndarray) -> MixtureWeights:
        parts, weights = [], []
        for part, weight in zip(self.parts, self.weights, strict=True):
            try:
                parts.append(part.without(lost))
                weights.append(weight)
            except ValueError:  # another part has texts
                continue
        if not parts:
            raise ValueError("no part has a text")
        return MixtureWeights(parts, weights)

    def _together(self, rows: Sequence[Row], scores: Tensor) -> Row:
        terms = [
            row.dense(self.num_tokens, scores) + math.log(weight)
            for row, weight in zip(rows, self.weights, strict=True)
        ]
        return Row(None, torch.stack(terms).logsumexp(0))

    def in_reach(self, states: list[Any], remaining: int) -> list[np.ndarray | None]:
        found: list[np.ndarray | None] = []
        reached = self._in_reach_of_parts(states, remaining)
        if all(part is None for parts in reached for part in parts):
            return [None] * len(reached)
        one = torch.zeros(1)
        allowed = [part.rows(state, one) for part, state in zip(self.parts, states, strict=True)]
        for parts, rows in zip(reached, zip(*allowed, strict=True), strict=True):
            masks = [~row.dense(self.num_tokens, one).isneginf().cpu().numpy() for row in rows]
            found.append(np.logical_or.reduce([m if r is None else m & r for m, r in zip(masks, parts, strict=True)]))
        return found

    def least(self, states: list[Any]) -> int:
        return min(part.least(state) for part, state in zip(self.parts, states, strict=True))
