"""Weights of free text with a constraint inside: a tag's string begins it, and another one may end it.

Sizes: N hypotheses, K tokens, m bytes of the string that begins the constraint.

A hypothesis of the free text has a state of the automaton of Knuth, Morris and Pratt (1977): how many bytes of the
string its text ends in. All tokenisations of the string are found, and special tokens by their spelling. The string's
last byte is the last one of a token. Tokens that hold more of the text are forbidden there. So is the end of the text
before the constraint, if it is not optional.

If the tag has an end, the weights of the constraint are of texts that end with it. Free text goes on at once when such
a text is complete.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.automata.trimming import NO_END
from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY
from fairseq_llrnn.errors import DataError, check_least
from fairseq_llrnn.huggingface.byte_automata import BYTES, utf8_size
from fairseq_llrnn.huggingface.token_texts import TokenTexts
from fairseq_llrnn.huggingface.token_weights import Row, TokenWeights

LONGEST = 256  # bytes of a tag's string, since each of them has a number for each token


@dataclass(frozen=True)
class Tag:
    """Strings around a constraint in free text. Each may be a special token.

    Args:
        begin: wherever the text has this string, the constraint comes next.
        end: the string after the constraint, after which free text goes on, and more tags may follow. None: the text
            ends after the constraint.
        optional: whether texts without the tag are allowed.
        within: the most tokens until the first `begin` is complete, as a limit of reasoning before `</think>`. None: as
            many as the limit of the whole text leaves.
    """

    begin: str
    end: str | None = None
    optional: bool = False
    within: int | None = None

    def __post_init__(self) -> None:
        for name, string in (("begin", self.begin), ("end", self.end)):
            if (name, string) != ("end", None) and not 0 < utf8_size(string) <= LONGEST:
                raise DataError(
                    f"Tag: {name}: expected a string of 1 to {LONGEST} bytes in UTF-8, found {string!r:.60}; give one"
                )
        if not isinstance(self.optional, bool):
            raise DataError(f"Tag: optional: expected True or False, found {self.optional!r:.60}; give one of them")
        if self.within is not None:
            check_least("Tag: within", self.within, 1)
        if self.optional and self.within is not None:
            raise DataError("Tag: within: expected a tag that is not optional; leave one of both out")


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

    matched: int  # bytes of the string, m inside of the constraint, m + 1 after the end or a forbidden token
    inner: Any = None  # of the constraint, for one hypothesis
    written: int = 0  # tokens
    has_tag: bool = False  # whether a tag is complete


class FreeTextWeights(TokenWeights[list[FreeTextState]]):
    """Free text, a tag's string, a text of other weights, and more free text if the tag has an end."""

    def __init__(self, inner: TokenWeights, tag: Tag, texts: TokenTexts) -> None:
        """
        Args:
            inner: of the text after the string, whose tokens are read as `texts.later`. It has the tag's end.

        Raises:
            DataError: a string that the tokens cannot write.
        """
        self.inner, self.num_tokens, self.eos, self.tag = inner, inner.num_tokens, texts.eos, tag
        string = tag.begin.encode()
        self.size = len(string)
        self.nexts = token_steps(byte_steps(string), texts.spelled)
        self.nexts[:, texts.eos] = self.size + 1
        self._find_steps()
        if self.steps[0] >= NO_END:
            raise DataError(
                f"after: expected a text that the tokenizer's tokens can write, found {tag.begin!r}; write it as its "
                "decoder does"
            )
        if tag.within is not None and tag.within < self.steps[0]:
            raise DataError(
                f"Tag: within: expected at least the {self.steps[0]} tokens of {tag.begin!r}, found {tag.within}; give "
                "more"
            )
        self.longest: int | None = None
        self.needed = 1  # tokens of the text after the string, the end included
        self._rows: dict[tuple[Any, ...], Row] = {}

    def _find_steps(self) -> None:
        """Find the least number of tokens from each state until the string is complete, (m + 2,)."""
        targets = [np.flatnonzero(np.bincount(row, minlength=self.size + 2)) for row in self.nexts]
        self.steps = np.full(self.size + 2, NO_END, dtype=np.int64)
        self.steps[self.size] = 0
        for _ in range(self.size):
            self.steps[: self.size] = [1 + self.steps[target].min() for target in targets]
        self.farthest = int(self.steps[self.steps < NO_END].max())

    def within(self, longest: int) -> FreeTextWeights:
        limited = copy.copy(self)
        limited.inner, limited.longest = self.inner.within(longest), longest
        limited.needed = limited.inner.least(limited.inner.start(1))
        return limited

    def without(self, lost: np.ndarray) -> FreeTextWeights:
        left = copy.copy(self)
        left.inner, left.nexts, left._rows = self.inner.without(lost), self.nexts.copy(), {}
        left.nexts[:, lost] = self.size + 1
        left._find_steps()
        if left.steps[0] > (NO_END - 1 if self.tag.within is None else self.tag.within):
            raise ValueError("the string cannot be written")
        return left

    def start(self, n: int) -> list[FreeTextState]:
        return [FreeTextState(0)] * n

    def advance(self, states: list[FreeTextState], tokens: np.ndarray) -> list[FreeTextState]:
        return [self._after(state, token) for state, token in zip(states, tokens.tolist(), strict=True)]

    def _after(self, state: FreeTextState, token: int) -> FreeTextState:
        written = state.written + 1
        if state.inner is not None:
            inner = self.inner.advance(state.inner, np.array([token]))
            if self.tag.end is not None and self.inner.can_end(inner, self.eos):
                return FreeTextState(0, None, written, True)
            return FreeTextState(self.size, inner, written, state.has_tag)
        if state.matched > self.size:
            return state
        matched = int(self.nexts[state.matched, token]) if token < self.num_tokens else 0
        if matched != self.size:
            return FreeTextState(matched, None, written, state.has_tag)
        inner = self.inner if self.longest is None else self.inner.within(max(self.longest - written, self.needed))
        return FreeTextState(matched, inner.start(1), written, state.has_tag)

    def select(self, states: list[FreeTextState], rows: np.ndarray) -> list[FreeTextState]:
        found = [states[row] for row in rows.tolist()]
        for row in {*rows.tolist()}:
            places = np.flatnonzero(rows == row)
            state = states[row]
            if len(places) > 1 and state.inner is not None:
                copies = self.inner.select(state.inner, np.zeros(len(places), dtype=np.int64))
                for number, place in enumerate(places):
                    found[place] = replace(state, inner=self.inner.select(copies, np.array([number])))
        return found

    def _may_end(self, state: FreeTextState) -> bool:
        return self.tag.optional or state.has_tag

    def rows(self, states: list[FreeTextState], scores: Tensor) -> list[Row]:
        return [
            self._row(state, scores) if state.inner is None else self.inner.rows(state.inner, scores)[0]
            for state in states
        ]

    def _row(self, state: FreeTextState, scores: Tensor) -> Row:
        """Of free text."""
        matched, may_end = state.matched, self._may_end(state)
        if matched > self.size:
            return Row(scores.new_zeros(0, dtype=torch.long), None)
        left = self.farthest + 1  # tokens until the string has to be complete, or more
        if self.tag.within is not None and not state.has_tag:
            left = min(left, self.tag.within - state.written)
        key = matched, may_end, left, scores.device, scores.dtype
        if key not in self._rows:
            nexts = self.nexts[matched]
            forbidden = (nexts > self.size) | (self.steps[nexts] >= left)
            forbidden[self.eos] = not may_end
            weights = scores.new_zeros(self.num_tokens)
            self._rows[key] = Row(
                None, weights.masked_fill(torch.from_numpy(forbidden).to(scores.device), NEGATIVE_INFINITY)
            )
        return self._rows[key]

    def in_reach(self, states: list[FreeTextState], remaining: int) -> list[np.ndarray | None]:
        found: list[np.ndarray | None] = []
        for state in states:
            may_end = self._may_end(state)
            most = self.needed if may_end else self.farthest + self.needed  # after any token
            if state.inner is not None:
                found += self.inner.in_reach(state.inner, remaining)
            elif state.matched > self.size:
                found.append(np.zeros(self.num_tokens, dtype=bool))
            elif remaining > most:
                found.append(None)
            else:
                nexts = self.nexts[state.matched]
                least = np.where(nexts == self.size, self.needed, 1) if may_end else self.steps[nexts] + self.needed
                reached = least < remaining
                reached[self.eos] = may_end
                found.append(reached)
        return found

    def least(self, states: list[FreeTextState]) -> int:
        return max(map(self._least, states))

    def _least(self, state: FreeTextState) -> int:
        if state.inner is not None:
            return self.inner.least(state.inner)
        return 1 if self._may_end(state) else int(self.steps[state.matched]) + self.needed

    def constrained(self, tokens: Sequence[int]) -> list[list[int]]:
        """Return the tokens of each constraint in a text."""
        found: list[list[int]] = []
        state = FreeTextState(0)
        for token in tokens:
            after = self._after(state, token)
            if state.inner is not None:
                found[-1].append(token)
            elif after.inner is not None:
                found.append([])
            state = after
        return found
