"""Weights of another constraint for each row of a batch. Rows without a constraint are free.

Sizes: N hypotheses, B rows, K tokens.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from fairseq_llrnn.huggingface.limited_search import weights_within
from fairseq_llrnn.huggingface.normalisation import rows_in_time
from fairseq_llrnn.huggingface.token_weights import FREE, Row, TokenWeights


@dataclass(frozen=True)
class RowStates:
    """Of N hypotheses: the row of each, and the states of each row's hypotheses in their order."""

    row_of: np.ndarray  # (N,)
    states: list[Any]  # B; None: a free row
    written: int  # tokens

    def __len__(self) -> int:
        return len(self.row_of)


class RowWeights(TokenWeights[RowStates]):
    """The weights of B rows, which have as many hypotheses each."""

    def __init__(self, parts: Sequence[TokenWeights | None], limits: Sequence[int | None], eos: int) -> None:
        """
        Args:
            parts: the weights of each row. None: a free row.
            limits: the most tokens of each row, the end included. None: no limit.

        Raises:
            DataError: a row has no text that is short enough.
        """
        self.parts = [
            part if part is None or limit is None else weights_within(part, limit, 1)
            for part, limit in zip(parts, limits, strict=True)
        ]
        self.limits, self.eos = list(limits), eos
        self.num_tokens = next(part.num_tokens for part in parts if part is not None)

    def within(self, longest: int) -> RowWeights:
        limited = copy.copy(self)
        limits = [longest if limit is None else min(limit, longest) for limit in self.limits]
        limited.parts = [
            None if part is None else part.within(limit) for part, limit in zip(self.parts, limits, strict=True)
        ]
        return limited

    def without(self, lost: np.ndarray) -> RowWeights:
        parts = [None if part is None else part.without(lost) for part in self.parts]
        return RowWeights(parts, self.limits, self.eos)

    def start(self, n: int) -> RowStates:
        each = n // len(self.parts)
        states = [None if part is None else part.start(each) for part in self.parts]
        return RowStates(np.repeat(np.arange(len(self.parts)), each), states, 0)

    def advance(self, states: RowStates, tokens: np.ndarray) -> RowStates:
        after = [
            None if part is None else part.advance(states.states[row], tokens[states.row_of == row])
            for row, part in enumerate(self.parts)
        ]
        return RowStates(states.row_of, after, states.written + 1)

    def select(self, states: RowStates, rows: np.ndarray) -> RowStates:
        place, row_of = np.zeros(len(states), dtype=np.int64), states.row_of[rows]
        selected = []
        for row, part in enumerate(self.parts):
            own = states.row_of == row
            place[own] = np.arange(own.sum())
            own_rows = place[rows[row_of == row]]
            selected.append(None if part is None else part.select(states.states[row], own_rows))
        return RowStates(row_of, selected, states.written)

    def rows(self, states: RowStates, scores: Tensor) -> list[Row]:
        found = [FREE] * len(states)
        for row, (part, limit) in enumerate(zip(self.parts, self.limits, strict=True)):
            if part is None:
                continue
            own = np.flatnonzero(states.row_of == row).tolist()
            of_row = part.rows(states.states[row], scores)
            if limit is not None:
                left = limit - states.written
                reached = part.in_reach(states.states[row], left)
                of_row = rows_in_time(of_row, reached, left, self.eos, self.num_tokens, scores)
            for number, weights in zip(own, of_row, strict=True):
                found[number] = weights
        return found

    def in_reach(self, states: RowStates, remaining: int) -> list[np.ndarray | None]:
        found: list[np.ndarray | None] = [None] * len(states)
        for row, part in enumerate(self.parts):
            if part is not None:
                own = np.flatnonzero(states.row_of == row).tolist()
                for number, reached in zip(own, part.in_reach(states.states[row], remaining), strict=True):
                    found[number] = reached
        return found

    def least(self, states: RowStates) -> int:
        of_parts = zip(self.parts, states.states, strict=True)
        return max(part.least(state) for part, state in of_parts if part is not None)
