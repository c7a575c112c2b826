"""What travels between a network, the head, a criterion and a search.

Sizes: B batch, T time, N hypotheses, V words, S signatures, O open classes, J context classes (slots of evidence, then
exceptions of experts), J₁ of them slots, H hidden width, H' = H and what experts add to it, K tokens asked about. All
records are frozen: what changes them returns another one. Probabilities are natural logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.masses import Masses
from fairseq_llrnn.output.exact import ExactOutput
from fairseq_llrnn.output.normalisation import Distribution, Normalisation, OtherScores

CELLS = 1 << 22  # positions or hypotheses × classes or words that are looked at together

RowPair = tuple[Tensor, Tensor]  # rows of the output layer, and their biases


@dataclass(frozen=True)
class Condition:
    """A batch before the network has read it: what is known of its sources and its text."""

    background: Background  # of these sentences, with the classes of experts' exceptions
    previous: Tensor  # (B, T) the tokens before each position, as the background knows them
    readable: Tensor  # (B, T) the same, as a network with a row per word (and per open class) can read them

    def parts(self) -> list[tuple[slice, Condition]]:
        """Which sentences, and what is known of them: all of them (split.py has others)."""
        return [(slice(None), self)]


@dataclass(frozen=True)
class Rows:
    """Rows of the output layer, made once for a batch or a search."""

    classes: Normalisation  # the signatures, with their rows
    open_classes: RowPair | None = None  # (O, H'), (O,)
    slots: RowPair | None = None  # (B, J₁, H'), (B, J₁), of every sentence
    speller_zero: Tensor | None = None  # 0, in training: a part of each loss, so that each uses the speller

    @property
    def exact(self) -> ExactOutput:
        """The signatures, where somebody needs all of their rows."""
        assert isinstance(self.classes, ExactOutput)
        return self.classes


@dataclass(frozen=True)
class Batch:
    """A batch that the network has read: all that a criterion needs."""

    hidden: Tensor  # (B, T, H')
    background: Background  # of these sentences and hidden states
    states: Tensor  # (B·T, …), of the background, before each position
    masses: Masses  # log B of all classes in B·T rows, a learned temperature applied
    rows: Rows
    others: OtherScores  # (B, T, …)
    spelling: Tensor | None = None  # what unknown words are spelled from, (B, T, X); None: from `hidden`

    @property
    def spelled_from(self) -> Tensor:
        """(B, T, H') or (B, T, X)."""
        return self.hidden if self.spelling is None else self.spelling

    def backgrounds(self) -> list[tuple[slice, Background]]:
        """Which sentences, and their background: all of them (split.py has others)."""
        return [(slice(None), self.background)]

    @cached_property
    def log_mass(self) -> Tensor:
        """log B of all classes, broadcasting to (B, T, S + J): dense, so only where it is needed."""
        if self.masses.entries is not None:
            return self.masses.dense().view(*self.hidden.shape[:2], -1)
        groups, batch = len(self.masses.shared), len(self.hidden)
        return self.masses.shared.view(batch if groups > 1 else 1, max(1, groups // batch), -1)


@dataclass(frozen=True)
class State:
    """N hypotheses of a search: what they have written, as far as the background and the head need it."""

    background: Background  # of the search's sentences
    states: Tensor  # (N, …), of the background
    rows: Rows
    length: int = 0  # tokens that every hypothesis has written
    longest: int | None = None  # the most that one may have, </s> included
    pinned: Tensor | None = None  # (K,) tokens whose probabilities every step is asked for
    pinned_shares: RowPair | None = None  # their log shares and classes, (N, K) each, where no state changes them

    def select(self, index: Tensor) -> State:
        """The hypotheses index[0], index[1], …: reordered, repeated or left out; index: (M,) int64."""
        shares = self.pinned_shares
        chosen = None if shares is None else (shares[0].index_select(0, index), shares[1].index_select(0, index))
        return replace(self, states=self.states.index_select(0, index), pinned_shares=chosen)

    def limited(self, longest: int | None) -> State:
        """The same hypotheses in a search whose hypotheses have at most `longest` tokens, `</s>` included."""
        return replace(self, longest=longest)

    @property
    def reachable(self) -> Background:
        """The background of the next step: where there is a limit, without words after which no end is in reach."""
        return self.background if self.longest is None else self.background.within(self.longest - self.length)


@dataclass(frozen=True)
class Step:
    """One step of a search: the distribution of the next token of N hypotheses."""

    hidden: Tensor  # (N, H')
    others: OtherScores
    masses: Masses  # log B of all classes, S + J, in N rows
    background: Background  # as `State.reachable`
    state: State
    temperature: float | Tensor = 1.0  # divides aᵀφ; (N, 1) where it is a tensor

    @cached_property
    def classes(self) -> Distribution:
        """p(σ | K)."""
        return self.state.rows.classes.distribution(self.hidden, self.others, self.masses, self.temperature)

    def top_k(self, k: int) -> tuple[Tensor, Tensor]:
        """The k most probable tokens, exactly, without a V-sized tensor: log p and tokens, (N, k) each."""
        return self.classes.best_words(self.background, self.state.states, k)

    def log_probs_of(self, tokens: Tensor) -> Tensor:
        """log p of some tokens (N, K) of each hypothesis: (N, K)."""
        share, classes = shares_and_classes(self.background, self.state.states, tokens)
        return _members(self.classes, share, classes)

    def log_probs_of_pinned(self) -> Tensor:
        """log p of `State.pinned`: (N, K)."""
        assert self.state.pinned is not None
        if self.state.pinned_shares is None:
            return self.log_probs_of(self.state.pinned.expand(len(self.hidden), -1))
        return _members(self.classes, *self.state.pinned_shares)

    def word_log_probs(self) -> Tensor:
        """log p of all words, and of strings outside the dictionary that slots offer: (N, V + J₁).

        Some hypotheses at a time: a background may need several tensors of V to say it.
        """
        states, background = self.state.states, self.background
        at_once = max(1, CELLS // background.num_columns)
        if at_once >= len(states):
            return background.word_log_probs(self.classes.log_probs, states)
        answer = self.classes.log_probs.new_empty(len(states), background.num_columns)
        for rows in torch.arange(len(states), device=states.device).split(at_once):
            answer[rows] = background.for_rows(rows).word_log_probs(self.classes.log_probs[rows], states[rows])
        return answer


def shares_and_classes(background: Background, states: Tensor, tokens: Tensor) -> RowPair:
    """Log shares and classes of some tokens (N, K) of each hypothesis: (N, K) each."""
    rows = torch.arange(len(states), device=states.device).repeat_interleave(tokens.size(1))
    each = states.index_select(0, rows)
    share = background.for_rows(rows).log_share(each, tokens.flatten()).view_as(tokens)
    return share, background.classes(each, tokens.flatten()).view_as(tokens)


def _members(classes: Distribution, share: Tensor, signature: Tensor) -> Tensor:
    """log p of words (N, K) by their classes: log shares and classes of the words."""
    # a class without mass is −inf, and its members' share as well
    log_probs = classes.log_probs_of(signature)
    share = share.to(log_probs.dtype)
    return torch.where(torch.isneginf(share), share, log_probs + share)
