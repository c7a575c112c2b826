"""State machines that give every token of a model a weight: what a BackgroundProcessor multiplies by.

Sizes: N hypotheses, K tokens, M tokens with weight, Q states.

A `TokenWeights` has states for N hypotheses. `rows` gives log b(K, x) of each hypothesis as tokens with weights, or as
one row of all K tokens. After the end-of-sequence token nothing has weight.

    TokenAutomaton     an automaton over tokens (lifting.py): states are numbers, rows are slices of its arrays
    RequiredTerms      texts with each of several terms (required_terms.py): all tokens, and no end before all are there
    ParserWeights      a grammar of llguidance (parsers.py): a parser for each hypothesis
    BackgroundWeights  a background of a prior, whose words are tokens (background_weights.py)
    FreeTextWeights    free text before a constraint (free_text.py)
    RowWeights         others for each row of a batch (batch_rows.py)
    ProductWeights, MixtureWeights (combined_weights.py)

They are no `Background`, since a step has to be quick: the view of an automaton computes each step from its tables,
while a processor keeps the rows of its states. With 50,000 tokens and 5 hypotheses, a step took 65 times as long.
`TokenAutomaton.over_words` is the automaton as a part of a prior, for training.

`in_reach` gives the tokens after which the text can end within a number of tokens.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.automata.automaton import END, NOTHING, Automaton
from fairseq_llrnn.automata.trimming import NO_END, steps_to_end, trim, with_arcs
from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY
from fairseq_llrnn.huggingface.byte_automata import FIRST, ByteAutomaton, Meter
from fairseq_llrnn.huggingface.lifting import lift
from fairseq_llrnn.huggingface.token_texts import TokenTexts

DENSE = 4  # a row of more than K / DENSE tokens is one of all tokens
MOST_CACHED = 256_000_000  # bytes of rows of all tokens

States = TypeVar("States")


@dataclass(frozen=True)
class Row:
    """log b of one hypothesis' next token."""

    tokens: Tensor | None  # (M,) the tokens with weight; None: all K
    log_weights: Tensor | None  # (M,) or (K,); None: all are 0

    def dense(self, num_tokens: int, like: Tensor) -> Tensor:
        """(K,)"""
        if self.tokens is None:
            return like.new_zeros(num_tokens) if self.log_weights is None else self.log_weights
        row = like.new_full((num_tokens,), NEGATIVE_INFINITY)
        row[self.tokens] = 0.0 if self.log_weights is None else self.log_weights.to(row.dtype)
        return row

    def has(self, token: int) -> bool:
        """Return whether a token has weight."""
        if self.tokens is not None:
            places = (self.tokens == token).nonzero().flatten()
            return len(places) > 0 and (self.log_weights is None or bool(self.log_weights[places[0]].isfinite()))
        return self.log_weights is None or bool(self.log_weights[token].isfinite())

    @property
    def is_empty(self) -> bool:
        """Whether no token has weight."""
        if self.log_weights is not None:
            return bool(self.log_weights.isneginf().all())
        return self.tokens is not None and len(self.tokens) == 0

    def without(self, lost: Tensor, like: Tensor) -> Row:
        """Return the row without weight for some tokens, (K,) bool."""
        if self.tokens is None:
            return Row(None, self.dense(len(lost), like).masked_fill(lost, NEGATIVE_INFINITY))
        left = ~lost[self.tokens]
        return Row(self.tokens[left], None if self.log_weights is None else self.log_weights[left])


FREE = Row(None, None)  # all tokens, also those that only the model has


class TokenWeights(Generic[States]):
    """Weights of the next token (module docstring)."""

    num_tokens: int  # K
    bytes: tuple[
        ByteAutomaton, ...
    ] = ()  # the texts that it allows: those of all automata; () if it is no set of texts

    @abstractmethod
    def start(self, n: int) -> States:
        """Return the states of n hypotheses that have written nothing."""

    @abstractmethod
    def advance(self, states: States, tokens: np.ndarray) -> States:
        """Return the states after one token each, (N,). K stands for any token that has no number here."""

    @abstractmethod
    def select(self, states: States, rows: np.ndarray) -> States:
        """Return the states of some hypotheses, (M,)."""

    @abstractmethod
    def rows(self, states: States, scores: Tensor) -> list[Row]:
        """Return the weights of each hypothesis' next token, on the device of the scores."""

    def can_end(self, states: States, eos: int) -> bool:
        """Return whether the text of one hypothesis can end."""
        return self.rows(states, torch.zeros(1))[0].has(eos)

    def within(self, longest: int) -> TokenWeights[States]:
        """Return weights whose states are of texts of at most so many tokens, the end included."""
        return self

    def without(self, lost: np.ndarray) -> TokenWeights[States]:
        """Return weights whose texts can end without some tokens, (K,) bool, which no text has.

        Raises:
            ValueError: there is no such text.
        """
        return self

    def in_reach(self, states: States, remaining: int) -> list[np.ndarray | None]:
        """Return whether the text can end in time after each token, (K,) bool for each hypothesis.

        Args:
            remaining: how many tokens may be written, this one and the end among them. None stands for all tokens.
        """
        return [None] * len(states)  # type: ignore[arg-type]

    def least(self, states: States) -> int:
        """Return the least number of tokens, the end included, within which all texts can end."""
        return 1


class TokenAutomaton(TokenWeights[np.ndarray]):
    """An automaton over tokens. A state is its number. Q, after the end or a forbidden token, has no arcs."""

    def __init__(self, automaton: Automaton, eos: int, bytes: tuple[ByteAutomaton, ...] = ()) -> None:
        """automaton: of `lift`, over FIRST + K symbols. eos: the token that ends a text."""
        self.num_tokens, self.eos, self.bytes = automaton.num_symbols - FIRST, eos, bytes
        self.dead = automaton.num_states
        tokens = np.where(automaton.tokens == END, eos, automaton.tokens - FIRST)
        nexts = np.where(automaton.tokens == END, self.dead, automaton.nexts)
        order = np.lexsort((tokens, automaton.arc_states))
        self.offsets = np.append(automaton.offsets, automaton.offsets[-1])
        self.tokens, self.nexts = torch.from_numpy(tokens[order]), nexts[order]
        self.arc_states = automaton.arc_states[order]
        self.keys = np.append(
            automaton.arc_states * np.int64(self.num_tokens + 1) + tokens[order], np.iinfo(np.int64).max
        )
        self.log_weights = None
        if automaton.log_weights.any():
            self.log_weights = torch.from_numpy(automaton.log_weights[order])
        self.steps = np.append(steps_to_end(automaton), NO_END)
        self.steps_after = np.where(self.nexts == self.dead, 0, self.steps[self.nexts])  # (A,)
        self.farthest = int(self.steps_after.max(initial=0))
        self._cached: dict[tuple[int, torch.device, torch.dtype], Row] = {}
        self._cached_bytes = 0

    @classmethod
    def of_set(cls, strings: ByteAutomaton, texts: TokenTexts, meter: Meter) -> TokenAutomaton:
        """Return the automaton of all tokenisations of a set of strings. Raises LimitError, DataError: as `lift`."""
        return cls(lift(strings, texts, meter), texts.eos, (strings,))

    def start(self, n: int) -> np.ndarray:
        return np.zeros(n, dtype=np.int64)

    def advance(self, states: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        wanted = states * (self.num_tokens + 1) + tokens
        places = self.keys.searchsorted(wanted)
        found = self.keys[places] == wanted
        if found.all():
            return self.nexts[places]
        return np.where(found, self.nexts[np.minimum(places, len(self.nexts) - 1)], self.dead)

    def select(self, states: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return states[rows]

    def rows(self, states: np.ndarray, scores: Tensor) -> list[Row]:
        return [self._row(state, scores) for state in states.tolist()]

    def _row(self, state: int, scores: Tensor) -> Row:
        key = state, scores.device, scores.dtype
        row = self._cached.get(key)
        if row is None:
            span = slice(self.offsets[state], self.offsets[state + 1])
            tokens = self.tokens[span].to(scores.device)
            weights = None if self.log_weights is None else self.log_weights[span].to(scores.device, scores.dtype)
            row = Row(tokens, weights)
            size = 16 * len(tokens)
            if DENSE * len(tokens) > self.num_tokens:
                row = Row(None, row.dense(self.num_tokens, scores))
                size = row.log_weights.nbytes if row.log_weights is not None else 0
            self._cached_bytes += size + 200
            if self._cached_bytes > MOST_CACHED:
                self._cached.clear()
                self._cached_bytes = size
            self._cached[key] = row
        return row

    def in_reach(self, states: np.ndarray, remaining: int) -> list[np.ndarray | None]:
        if remaining > self.farthest:
            return [None] * len(states)
        found: list[np.ndarray | None] = []
        for state in states.tolist():
            span = slice(self.offsets[state], self.offsets[state + 1])
            reached = np.zeros(self.num_tokens, dtype=bool)
            reached[self.tokens.numpy()[span][self.steps_after[span] < remaining]] = True
            found.append(reached)
        return found

    def least(self, states: np.ndarray) -> int:
        return int(self.steps[states].max(initial=1))

    def without(self, lost: np.ndarray) -> TokenAutomaton:
        if not lost[self.tokens.numpy()].any():
            return self
        return TokenAutomaton(trim(self.arcs_without(lost)), self.eos, self.bytes)

    def arcs_without(self, lost: np.ndarray) -> Automaton:
        """Return the automaton over FIRST + K symbols without the arcs of some tokens, (K,) bool."""
        words = np.arange(FIRST, FIRST + self.num_tokens)
        words[self.eos] = END
        left = self.over_words(words, FIRST + self.num_tokens)
        return with_arcs(left, (left.tokens == END) | ~lost[left.tokens - FIRST])

    def dense_nexts(self, state: int) -> np.ndarray:
        """The state after every token, (K,)."""
        span = slice(self.offsets[state], self.offsets[state + 1])
        nexts = np.full(self.num_tokens, self.dead)
        nexts[self.tokens.numpy()[span]] = self.nexts[span]
        return nexts

    def over_words(self, words: np.ndarray, size: int) -> Automaton:
        """Return the automaton over a dictionary. words: (K,), all different, the word of each token. size: V."""
        tokens, is_end = words[self.tokens.numpy()], self.nexts == self.dead
        order = np.lexsort((tokens, self.arc_states))
        return Automaton(
            num_symbols=size,
            starts=np.zeros(1, dtype=np.int64),
            offsets=self.offsets[:-1],
            tokens=tokens[order],
            nexts=np.where(is_end, 0, self.nexts)[order],
            log_weights=np.zeros(len(order)) if self.log_weights is None else self.log_weights.numpy()[order],
            fail=np.full(self.dead, NOTHING),
            back_off=np.zeros(self.dead),
            root_next=np.full(size, -1),
        )

    @cached_property
    def is_final(self) -> np.ndarray:
        """(Q + 1,) whether a text may end in each state."""
        return self.steps == 1
