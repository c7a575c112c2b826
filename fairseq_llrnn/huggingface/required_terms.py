"""Weights of texts that have each of several terms.

Sizes: N hypotheses, J terms, K tokens, Q states of a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.automata.trimming import NO_END
from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface.token_weights import Row, TokenAutomaton, TokenWeights


class RequiredTerms(TokenWeights[np.ndarray]):
    """Texts that have each of J terms. A state is those of the J automata, (N, J).

    A term at the end of a text may be undone by the next token: `ac` by `acc`. It is *safe* if no token undoes it. A
    text can be completed by one term after the other, and each begins with a token that makes all terms safe, such as a
    space. The number of tokens that this takes is an upper bound. It falls by one with each token of this plan, so that
    a search that keeps within it has no dead ends:

        d_i      tokens that complete term i in its present state
        c_i      the same in any state, the first token makes all terms safe
        bound    the least of  Σ c_j + 1, j that are not complete,
                          and  d_i + Σ c_j + 1, j ≠ i that are not safe, for each i that is not complete
    """

    def __init__(self, parts: Sequence[TokenAutomaton], eos: int) -> None:
        """parts: automata that forbid nothing, and end where their term is there."""
        self.parts, self.eos, self.num_tokens = list(parts), eos, parts[0].num_tokens
        self.bytes = tuple(automaton for part in parts for automaton in part.bytes)
        self._rows: dict[tuple[bool, bool, torch.device, torch.dtype], Row] = {}

    def start(self, n: int) -> np.ndarray:
        return np.zeros((n, len(self.parts)), dtype=np.int64)

    def advance(self, states: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        return np.stack([part.advance(states[:, at], tokens) for at, part in enumerate(self.parts)], axis=1)

    def select(self, states: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return states[rows]

    def rows(self, states: np.ndarray, scores: Tensor) -> list[Row]:
        found = []
        for row in states:
            if any(state == part.dead for state, part in zip(row, self.parts, strict=True)):
                found.append(Row(scores.new_zeros(0, dtype=torch.long), None))
                continue
            complete = all(part.is_final[state] for state, part in zip(row, self.parts, strict=True))
            key = complete, not row.any(), scores.device, scores.dtype  # some tokens can only be first
            if key not in self._rows:
                weights = torch.full((self.num_tokens,), NEGATIVE_INFINITY, dtype=scores.dtype)
                weights[torch.from_numpy(self.parts[0].dense_nexts(int(row[0])) != self.parts[0].dead)] = 0.0
                weights[self.eos] = 0.0 if complete else NEGATIVE_INFINITY
                self._rows[key] = Row(None, weights.to(scores.device))
            found.append(self._rows[key])
        return found

    def without(self, lost: np.ndarray) -> RequiredTerms:
        parts = [TokenAutomaton(part.arcs_without(lost), self.eos, part.bytes) for part in self.parts]
        if any(part.steps[0] == NO_END for part in parts):
            raise ValueError("a term cannot be written")
        return RequiredTerms(parts, self.eos)

    # ---- limits of length -------------------------------------------------------------------------------------------

    @cached_property
    def safe(self) -> list[np.ndarray]:
        """Whether the term of each part is safe in each of its states: (Q + 1,) bool each."""
        found = []
        for part in self.parts:
            safe = part.is_final.copy()
            goes_on = part.nexts != part.dead
            origins, targets = part.arc_states[goes_on], part.nexts[goes_on]
            while (lost := origins[safe[origins] & ~safe[targets]]).size:
                safe[lost] = False
            found.append(safe)
        return found

    @cached_property
    def costs(self) -> np.ndarray:
        """c of each term, (J,)."""
        separates = np.ones(self.num_tokens, dtype=bool)
        worst = np.zeros((len(self.parts), self.num_tokens), dtype=np.int64)  # tokens left after each, in any state
        for part, safe, left in zip(self.parts, self.safe, worst, strict=True):
            for state in range(1, part.dead):  # 0 is the start
                nexts = part.dense_nexts(state)
                np.maximum(left, part.steps[nexts] - 1, out=left)
                if part.is_final[state]:
                    separates &= safe[nexts]
        costs = 1 + np.where(separates, worst, NO_END).min(1)
        if len(self.parts) > 1 and (costs > NO_END).any():
            raise DataError(
                "from_terms: longest: expected a token that begins with a space or a sign, to separate terms, found "
                "none; use a tokenizer that has one, or leave `longest` out"
            )
        return costs

    @cached_property
    def farthest(self) -> int:
        """The bound in the worst state."""
        return int(self.costs.sum() + max(part.steps[part.steps < NO_END].max() for part in self.parts))

    def _bound(self, states: Sequence[np.ndarray], is_start: bool = False) -> np.ndarray:
        """The bound (class docstring) of states of the J parts, (…) each. NO_END or more if a token leads to none."""
        left = np.stack([part.steps[of_part] - 1 for part, of_part in zip(self.parts, states, strict=True)])
        safe = np.stack([of_part[state] for of_part, state in zip(self.safe, states, strict=True)])
        costs = self.costs.reshape(-1, *[1] * (left.ndim - 1))
        others = np.where(safe, 0, costs)
        go_on = np.where(left > 0, left + others.sum(0) - others, NO_END).min(0)
        separate = NO_END if is_start else np.where(left > 0, costs, 0).sum(0)
        bound = np.minimum(go_on, separate) + 1
        bound = np.where((left == 0).all(0), 1, bound)
        return np.where((left >= NO_END - 1).any(0), NO_END, bound)

    def in_reach(self, states: np.ndarray, remaining: int) -> list[np.ndarray | None]:
        if remaining > self.farthest + 1:
            return [None] * len(states)
        found: list[np.ndarray | None] = []
        for row in states:
            nexts = [part.dense_nexts(int(state)) for state, part in zip(row, self.parts, strict=True)]
            reached = self._bound(nexts) < remaining
            reached[self.eos] = all(part.is_final[state] for state, part in zip(row, self.parts, strict=True))
            found.append(reached)
        return found

    def least(self, states: np.ndarray) -> int:
        return int(self._bound(list(states.T), is_start=True).max(initial=1))
