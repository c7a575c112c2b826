"""Weights of free text that ends in a given string, after which the text is constrained.

Sizes: N hypotheses, K tokens, m bytes of the string.

A hypothesis of the free text has a state of the automaton of Knuth, Morris and Pratt (1977): how many bytes of the
string its text ends in. All tokenisations of the string are found, and special tokens by their spelling. The string's
last byte is the last one of a token. Tokens that hold more of the text are forbidden there, and so is the end of the
text before the string.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.automata.trimming import NO_END
from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface.lifting import BYTES, TokenTexts
from fairseq_llrnn.huggingface.token_weights import Row, TokenWeights


def byte_steps(string: bytes) -> np.ndarray:
    """The number of bytes of the string that a text ends in, after each byte, (m + 2, 256).

    State m is that of the whole string, once. m + 1 is that of any longer text.
    """
    size = len(string)
    steps = np.zeros((size + 2, BYTES), dtype=np.int16)
    fallback = 0
    for matched, byte in enumerate(string):
        steps[matched] = steps[fallback]
        steps[matched, byte] = matched + 1
        fallback = int(steps[fallback, byte]) if matched else 0
    steps[size:] = size + 1
    return steps


def token_steps(steps: np.ndarray, texts: list[bytes]) -> np.ndarray:
    """The same after each token, (m, K)."""
    lengths = np.array([len(text) for text in texts])
    order = np.argsort(-lengths, kind="stable")
    flat = np.frombuffer(b"".join(texts), dtype=np.uint8)
    begins = (lengths.cumsum() - lengths)[order]
    after = np.repeat(np.arange(len(steps) - 2, dtype=np.int16)[:, None], len(texts), axis=1)
    for place in range(int(lengths.max(initial=0))):
        longer = int((lengths > place).sum())
        after[:, :longer] = steps[after[:, :longer], flat[begins[:longer] + place]]
    result = np.empty_like(after)
    result[:, order] = after
    return result


@dataclass(frozen=True)
class FreeTextState:
    """Of one hypothesis."""

    matched: int  # bytes of the string, m after it, m + 1 after a forbidden token
    inner: Any = None  # of the constraint, for one hypothesis, after the string
    written: int = 0  # tokens


class FreeTextWeights(TokenWeights[list[FreeTextState]]):
    """Free text, the string, and then a text of other weights."""

    def __init__(self, inner: TokenWeights, string: str, texts: TokenTexts) -> None:
        """
        Args:
            inner: of the text after the string, whose tokens are read as `texts.later`.
            string: with which the free text ends.

        Raises:
            DataError: an empty string, or one that the tokens cannot write.
        """
        if not isinstance(string, str) or not string:
            raise DataError(f"after: expected a text that ends the free text, found {string!r}; give one")
        self.inner, self.num_tokens, self.eos = inner, inner.num_tokens, texts.eos
        self.string, self.size = string, len(string.encode())
        self.nexts = token_steps(byte_steps(string.encode()), texts.spelled)
        self.nexts[:, texts.eos] = self.size + 1
        targets = [np.flatnonzero(np.bincount(row, minlength=self.size + 2)) for row in self.nexts]
        self.steps = np.full(self.size + 2, NO_END, dtype=np.int64)  # tokens until the string is complete
        self.steps[self.size] = 0
        for _ in range(self.size):
            self.steps[: self.size] = [1 + self.steps[target].min() for target in targets]
        if self.steps[0] >= NO_END:
            raise DataError(
                f"after: expected a text that the tokenizer's tokens can write, found {string!r}; write it as its "
                "decoder does"
            )
        self.longest: int | None = None
        self.needed = 1  # tokens of the text after the string, the end included
        self._rows: dict[tuple[int, torch.device, torch.dtype], Row] = {}

    def within(self, longest: int) -> FreeTextWeights:
        limited = copy.copy(self)
        limited.inner, limited.longest = self.inner.within(longest), longest
        limited.needed = limited.inner.least(limited.inner.start(1))
        return limited

    def start(self, n: int) -> list[FreeTextState]:
        return [FreeTextState(0)] * n

    def advance(self, states: list[FreeTextState], tokens: np.ndarray) -> list[FreeTextState]:
        return [self._after(state, token) for state, token in zip(states, tokens.tolist(), strict=True)]

    def _after(self, state: FreeTextState, token: int) -> FreeTextState:
        written = state.written + 1
        if state.inner is not None:
            return FreeTextState(self.size, self.inner.advance(state.inner, np.array([token])), written)
        if state.matched > self.size:
            return state
        matched = int(self.nexts[state.matched, token]) if token < self.num_tokens else 0
        if matched != self.size:
            return FreeTextState(matched, None, written)
        inner = self.inner if self.longest is None else self.inner.within(max(self.longest - written, self.needed))
        return FreeTextState(matched, inner.start(1), written)

    def select(self, states: list[FreeTextState], rows: np.ndarray) -> list[FreeTextState]:
        found = [states[row] for row in rows.tolist()]
        for row in {*rows.tolist()}:
            places = np.flatnonzero(rows == row)
            state = states[row]
            if len(places) > 1 and state.inner is not None:
                copies = self.inner.select(state.inner, np.zeros(len(places), dtype=np.int64))
                for number, place in enumerate(places):
                    inner = self.inner.select(copies, np.array([number]))
                    found[place] = FreeTextState(state.matched, inner, state.written)
        return found

    def rows(self, states: list[FreeTextState], scores: Tensor) -> list[Row]:
        return [
            self._row(state.matched, scores) if state.inner is None else self.inner.rows(state.inner, scores)[0]
            for state in states
        ]

    def _row(self, matched: int, scores: Tensor) -> Row:
        if matched > self.size:
            return Row(scores.new_zeros(0, dtype=torch.long), None)
        key = matched, scores.device, scores.dtype
        if key not in self._rows:
            forbidden = torch.from_numpy(self.nexts[matched] > self.size).to(scores.device)
            self._rows[key] = Row(None, scores.new_zeros(self.num_tokens).masked_fill(forbidden, NEGATIVE_INFINITY))
        return self._rows[key]

    def in_reach(self, states: list[FreeTextState], remaining: int) -> list[np.ndarray | None]:
        found: list[np.ndarray | None] = []
        for state in states:
            if state.inner is not None:
                found += self.inner.in_reach(state.inner, remaining)
            elif state.matched > self.size:
                found.append(np.zeros(self.num_tokens, dtype=bool))
            elif remaining > self.steps[: self.size].max() + self.needed:
                found.append(None)
            else:
                found.append(self.steps[self.nexts[state.matched]] + self.needed < remaining)
        return found

    def least(self, states: list[FreeTextState]) -> int:
        return max(
            int(self.steps[state.matched]) + self.needed if state.inner is None else self.inner.least(state.inner)
            for state in states
        )
