"""A background with a temperature: b(K, x)^(1/T), nearer to uniform where T is large.

Sizes: N hypotheses, V words. Each word's weight is tempered, so that masses of signatures change as well. Words that
are forbidden stay so. What the part can list, this lists; else answers need all words.
"""

from __future__ import annotations

from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.combined import Combined
from fairseq_llrnn.backgrounds.explicit_words import ExplicitWeights
from fairseq_llrnn.files.numbers import is_temperature, said_of_temperatures


class Tempered(Combined):
    """b^(1/T)."""

    def __init__(self, part: Background, temperature: float) -> None:
        """temperature: T, of TEMPERATURES; 1 changes nothing.

        Raises:
            ValueError: another temperature.
        """
        if not is_temperature(temperature):
            raise ValueError(f"temperature {temperature}: expected {said_of_temperatures()}")
        root = part.root_log_weights()
        super().__init__([part], None if root is None else root / temperature)
        self.temperature, self.lists_all = temperature, part.lists_all

    def explicit(self, state: Tensor) -> ExplicitWeights | None:
        ((part, own),) = self.of_parts(state)
        weights = part.explicit(own)
        if weights is None:
            return None
        by = self.temperature
        return ExplicitWeights(
            weights.num_words, weights.keys, weights.log_weights / by, weights.constant / by, weights.rooted
        )

    def dense_log_weights(self, state: Tensor) -> Tensor:
        ((part, own),) = self.of_parts(state)
        return part.log_weights(own) / self.temperature

    def log_weights_at(self, state: Tensor, rows: Tensor, tokens: Tensor) -> Tensor:
        ((part, own),) = self.of_parts(state)
        return part.log_weights_at(own, rows, tokens) / self.temperature

    def steps_to_end(self, state: Tensor) -> Tensor:
        ((part, own),) = self.of_parts(state)
        return part.steps_to_end(own)

    def within(self, remaining: int) -> Background:
        if self.each()[0].within(remaining) is self.each()[0]:
            return self
        made = self.copied()
        made.remaining = remaining
        return made
