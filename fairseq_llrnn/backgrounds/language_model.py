"""A background that is another trained model: its next-word probabilities, frozen (domain adaptation; paper, §4).

Sizes: V words, N hypotheses, B batch, T time. The model reads whole prefixes, so the state of a hypothesis is all of
its tokens, start symbol first: (N, t), one longer after every word. Shorter prefixes are padded with −1. A batch of
training is one call.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.background import Background, BoundBackground, View
from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY

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
    """A ModelBackground in one batch or search. A view needs all V weights of a position."""

    def __init__(self, module: ModelBackground) -> None:
        super().__init__(module.class_of, module.num_classes)
        self.module = module

    def start(self, n: int) -> Tensor:
        return self.class_of.new_full((n, 1), self.module.start_symbol)

    def advance(self, states: Tensor, tokens: Tensor) -> Tensor:
        return torch.cat([states, tokens.unsqueeze(1)], dim=1)

    def flat_states(self, previous: Tensor) -> Tensor:
        place = torch.arange(previous.size(1), device=previous.device)
        read = torch.cat([self.start(len(previous)), previous[:, 1:]], dim=1)
        return torch.where(place <= place.unsqueeze(1), read.unsqueeze(1), NOTHING_YET).flatten(0, 1)

    def possible_words(self) -> Tensor:
        return self.module.allowed

    def log_weights(self, states: Tensor) -> Tensor:
        lengths = (states != NOTHING_YET).sum(1)
        unique, index = lengths.unique(return_inverse=True)
        weights = states.new_empty(len(states), len(self.class_of), dtype=torch.float32)
        for i, length in enumerate(unique.tolist()):
            weights[index == i] = self._next_words(states[index == i, :length], True)[:, 0]
        return weights

    def view_of(self, previous: Tensor, hidden: Tensor | None = None) -> View:
        """As in BoundBackground, with one call of the model for all positions."""
        view = View(self, self.flat_states(previous))
        view.log_weights = self._next_words(previous, False).flatten(0, 1)
        return view

    def _next_words(self, previous: Tensor, last: bool) -> Tensor:
        """Return log b after each prefix of `previous` (B, T), whose first column is replaced by the start symbol:
        (B, T, V), or (B, 1, V) with `last`.
        """
        module = self.module
        read = torch.cat([self.start(len(previous)), previous[:, 1:]], dim=1)
        with torch.no_grad():
            weights = module.next_words[0](read, last).float() / module.temperature + module.log_weight
        if module.rest is not None:
            weights = torch.logaddexp(weights, module.rest.to(weights.dtype))
        return weights.masked_fill_(~module.allowed, NEGATIVE_INFINITY)
