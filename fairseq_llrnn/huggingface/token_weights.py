"""State machines that give every token of a model a weight: what a BackgroundProcessor multiplies by.

Sizes: N hypotheses, K tokens, M tokens with weight, Q states, C columns of a background.

A `TokenWeights` has states for N hypotheses. `rows` gives log b(K, x) of each hypothesis as tokens with weights, or as
one row of all K tokens. After the end-of-sequence token nothing has weight.

    TokenAutomaton     an automaton over tokens (lifting.py): states are numbers, rows are slices of its arrays
    RequiredTerms      texts with each of several terms: all tokens, and no end before all terms are there
    ParserWeights      a grammar of llguidance (parsers.py): a parser for each hypothesis
    BackgroundWeights  a background of a prior, whose words are tokens
    FreeTextWeights    free text before a constraint (free_text.py)
    RowWeights         others for each row of a batch (batch_rows.py)
    ProductWeights, MixtureWeights

They are no `Background`, since a step has to be quick: the view of an automaton computes each step from its tables,
while a processor keeps the rows of its states. With 50,000 tokens and 5 hypotheses, a step took 65 times as long.
`TokenAutomaton.over_words` is the automaton as a part of a prior, for training.

`in_reach` gives the tokens after which the text can end within a number of tokens.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from fairseq_llrnn.automata.automaton import END, NOTHING, Automaton
from fairseq_llrnn.automata.trimming import NO_END, steps_to_end, trim, with_arcs
from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, BoundBackground, View
from fairseq_llrnn.backgrounds.states import repeat, select
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface.lifting import FIRST, ByteAutomaton, Meter, TokenTexts, lift
from fairseq_llrnn.prior.prior import Prior

NO_WORD = -1  # of a token that is no word of the prior
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


# ---- backgrounds of a prior -----------------------------------------------------------------------------------------


def to_word_values(values: Tensor, columns: Tensor, prior: Prior) -> Tensor:
    """Return a background's columns by the numbers of words and strings: (N, C) -> (N, W). −inf if there is none.

    Args:
        columns: the word of each column, (1, C) or (N, C): those of the dictionary, then strings that sources offer.
    """
    num_words, width = len(prior.symbols), len(prior.session.target.symbols)
    if width == values.size(1) == num_words:
        return values
    wide = nn.functional.pad(values[:, :num_words], (0, width - num_words), value=NEGATIVE_INFINITY)
    if values.size(1) == num_words:
        return wide
    strings = columns[:, num_words:].expand(len(values), -1)  # void places among them have no value
    return wide.scatter_reduce(1, strings, values[:, num_words:], "amax")


@dataclass(frozen=True)
class BackgroundStates:
    """Of N hypotheses: those of the background, and whether each has ended."""

    states: Any  # of the background
    ended: np.ndarray

    def __len__(self) -> int:
        return len(self.ended)


class BackgroundWeights(TokenWeights[BackgroundStates]):
    """A background, whose words are tokens."""

    def __init__(
        self,
        background: BoundBackground,
        words: Tensor,
        end: int,
        pad: int,
        sentences: int = 1,
        prior: Prior | None = None,
    ) -> None:
        """
        Args:
            words: the background's word of each token, (K,). NO_WORD forbids a token.
            end, pad: words that end a text, and that any other token is read as.
            sentences: to which the background is bound. Hypotheses come by sentence, as many of each.
            prior: whose strings of sources the background may have, if any.
        """
        self.background, self.words, self.end, self.pad, self.prior = background, words, end, pad, prior
        self.sentences, self.num_tokens = sentences, len(words)
        self.words_and_none = nn.functional.pad(words, (0, 1), value=NO_WORD)

    def start(self, n: int) -> BackgroundStates:
        states = self.background.start(self.sentences)
        return BackgroundStates(repeat(states, n // self.sentences), np.zeros(n, dtype=bool))

    def advance(self, states: BackgroundStates, tokens: np.ndarray) -> BackgroundStates:
        words = self.words_and_none[torch.from_numpy(tokens).to(self.words.device)]
        after = self.background.advance(states.states, words.masked_fill(words == NO_WORD, self.pad))
        return BackgroundStates(after, states.ended | words.eq(self.end).cpu().numpy())

    def select(self, states: BackgroundStates, rows: np.ndarray) -> BackgroundStates:
        index = torch.from_numpy(rows).to(self.words.device)
        return BackgroundStates(select(states.states, index), states.ended[rows])

    def rows(self, states: BackgroundStates, scores: Tensor) -> list[Row]:
        view = self.background.view(states.states)
        values = self._of_tokens(view, view.log_weights)
        values = values.to(scores.device, scores.dtype).expand(len(states), -1)
        none = Row(scores.new_zeros(0, dtype=torch.long), None)
        return [none if ended else Row(None, row) for ended, row in zip(states.ended, values, strict=True)]

    def in_reach(self, states: BackgroundStates, remaining: int) -> list[np.ndarray | None]:
        limited = self.background.view(states.states, remaining=remaining)
        if limited.remaining is None:
            return [None] * len(states)
        shares = self._of_tokens(limited, limited.log_shares)
        return list((~shares.isneginf()).expand(len(states), -1).cpu().numpy())

    def least(self, states: BackgroundStates) -> int:
        return int(self.background.steps_to_end(states.states).max())

    def _of_tokens(self, view: View, values: Tensor) -> Tensor:
        """Values of the view's columns (N or 1, C) for the model's tokens: (N or 1, K). −inf for unknown ones."""
        if self.prior is not None:
            values = to_word_values(values, view.columns, self.prior)
        return values[:, self.words.clamp_min(0)].masked_fill(self.words == NO_WORD, NEGATIVE_INFINITY)


# ---- several --------------------------------------------------------------------------------------------------------


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
