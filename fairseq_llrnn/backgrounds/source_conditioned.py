"""A background that its source makes another one: by itself it is the background below.

What a subclass supplies is `given`.
"""

from __future__ import annotations

from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background


class BySource(Background):
    """The background `base`, until `given(source)` is asked."""

    def __init__(self, base: Background) -> None:
        super().__init__(base.class_of, base.num_classes)
        self.base = base
        self.constant = base.constant

    def start(self, n: int) -> Tensor:
        return self.base.start(n)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return self.base.advance(state, tokens)

    def log_weights(self, state: Tensor) -> Tensor:
        return self.base.log_weights(state)

    def with_hidden(self, hidden: Tensor) -> Background:
        """As `within`: what `base` is."""
        chosen = self.base.with_hidden(hidden)
        return self if chosen is self.base else chosen

    def within(self, remaining: int) -> Background:
        """Within a limit it is what `base` is; itself where that changes nothing."""
        limited = self.base.within(remaining)
        return self if limited is self.base else limited

    def steps_to_end(self, state: Tensor) -> Tensor:
        return self.base.steps_to_end(state)
