"""A background that is another trained model: its next-word probabilities, frozen (domain adaptation; paper, §4).

Sizes: V words, N hypotheses, B batch, T time. The model reads whole prefixes, so the state of a hypothesis is all of
its tokens, start symbol first: (N, t), one longer after every word. Shorter prefixes are padded with −1. A batch of
training is one call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, Background, BoundBackground
from fairseq_llrnn.backgrounds.class_weights import class_log_sums, same_tensor

NOTHING_YET = -1  # padding of shorter prefixes


class NextWords(Protocol):
    """A model of next words."""

    def __call__(self, previous: Tensor, last: bool) -> Tensor:
        """Return log p of every word after each prefix of `previous` (B, T), whose first column is the start symbol.

        Returns:
            (B, T, V); with `last`, for the whole prefix only: (B, 1, V).
        """


class ModelBackground(Background):
    """b(K, x) = weight · p(x | prefix)^(1/temperature) + (1 − weight) · b₀(x), p of another model, 0 if b₀ is 0."""

    allowed: Tensor  # (V,) bool
    rest: Tensor | None  # (V,) log (1 − weight) · b₀; None if that is 0

    def __init__(
        self,
        class_of: Tensor,
        num_classes: int,
        log_weights: Tensor,
        start_symbol: int,
        next_words: NextWords,
        weight: float = 1.0,
        temperature: float = 1.0,
    ) -> None:
        """class_of: (V,). log_weights: (V,) log b₀. weight: above 0, at most 1."""
        super().__init__(class_of, num_classes)
        self.register_buffer("allowed", log_weights.isfinite(), persistent=False)
        rest = (log_weights.double() + math.log1p(-weight)).to(log_weights.dtype) if weight < 1.0 else None
        self.register_buffer("rest", rest, persistent=False)
        self.log_weight = math.log(weight)
        self.start_symbol = start_symbol
        self.temperature = temperature
        self.next_words = (next_words,)  # in a tuple, so that torch does not register it as a module of the new model

    def bind(self, source: Tensor | None = None, text: Tensor | None = None) -> BoundBackground:
        return BoundModel(self)


class BoundModel(BoundBackground):
    """A ModelBackground in one batch or search.

    Every method needs all V weights of a position. The weights and masses of the last prefixes are cached.
    """

    def __init__(self, module: ModelBackground) -> None:
        super().__init__(module.class_of, module.num_classes)
        self.module = module
        self._answer: _Answer | None = None

    def start(self, n: int) -> Tensor:
        return self.class_of.new_full((n, 1), self.module.start_symbol)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return torch.cat([state, tokens.unsqueeze(1)], dim=1)

    def flat_states(self, previous: Tensor) -> Tensor:
        place = torch.arange(previous.size(1), device=previous.device)
        read = torch.cat([self.start(len(previous)), previous[:, 1:]], dim=1)
        return torch.where(place <= place.unsqueeze(1), read.unsqueeze(1), NOTHING_YET).flatten(0, 1)

    def possible_words(self) -> Tensor:
        return self.module.allowed

    def log_weights(self, state: Tensor) -> Tensor:
        return self._per_state(lambda answer: answer.weights, state)

    def log_mass(self, state: Tensor) -> Tensor:
        return self._per_state(lambda answer: answer.log_mass, state)

    def log_shares(self, state: Tensor) -> Tensor:
        return self._per_state(lambda answer: answer.shares, state)

    def _per_state(self, what: Callable[[_Answer], Tensor], state: Tensor) -> Tensor:
        """Return `what` of the answer for the prefixes `state` (N, t), some of which may be shorter: (N, …)."""
        distinct, times = torch.unique_consecutive(state, return_counts=True, dim=0)
        if len(distinct) < len(state) and bool((times == times[0]).all()):  # each state is repeated, once per class
            return self._per_state(what, distinct).repeat_interleave(int(times[0]), dim=0)
        width = state.size(1)
        if width == 0 or not bool((state[:, -1] == NOTHING_YET).any()):
            return what(self._ask(state, True))[:, 0]
        batch = state[width - 1 :: width]
        whole = len(state) % width == 0 and bool((batch[:, -1] != NOTHING_YET).all())
        if whole and torch.equal(self.flat_states(batch), state):  # all positions of a batch
            return what(self._ask(batch, False)).flatten(0, 1)
        lengths = (state != NOTHING_YET).sum(1)
        unique, index = lengths.unique(return_inverse=True)
        parts = [what(self._ask(state[index == i, : int(length)], True))[:, 0] for i, length in enumerate(unique)]
        return torch.cat(parts)[torch.cat([(index == i).nonzero().squeeze(1) for i in range(len(unique))]).argsort()]

    def _ask(self, previous: Tensor, last: bool) -> _Answer:
        """Return the answer for `previous` (B, T), whose first column is replaced by the start symbol."""
        if self._answer is None or not self._answer.is_of(previous, last):
            module = self.module
            self._answer = None  # free its memory first
            read = torch.cat([self.start(len(previous)), previous[:, 1:]], dim=1)
            with torch.no_grad():
                weights = module.next_words[0](read, last).float() / module.temperature + module.log_weight
            if module.rest is not None:
                weights = torch.logaddexp(weights, module.rest.to(weights.dtype))
            weights.masked_fill_(~module.allowed, NEGATIVE_INFINITY)
            self._answer = _Answer(previous, last, weights, self.class_of, self.num_classes)
        return self._answer


@dataclass
class _Answer:
    """The model's weights after the last prefixes."""

    previous: Tensor  # (B, T)
    last: bool
    weights: Tensor  # (B, T, V) or (B, 1, V)
    class_of: Tensor  # (V,)
    num_classes: int  # S

    @cached_property
    def log_mass(self) -> Tensor:
        """(B, T, S) or (B, 1, S)"""
        log_mass = class_log_sums(self.weights.flatten(0, 1), self.class_of, self.num_classes)
        return log_mass.view(*self.weights.shape[:2], -1)

    @property
    def shares(self) -> Tensor:
        """The log shares, in the shape of the weights."""
        log_mass = self.log_mass[..., self.class_of]
        return (self.weights - log_mass).masked_fill(self.weights.isneginf(), NEGATIVE_INFINITY)

    def is_of(self, previous: Tensor, last: bool) -> bool:
        """Return whether this is the answer for these prefixes (B, T)."""
        return self.last == last and same_tensor(self.previous, previous)
