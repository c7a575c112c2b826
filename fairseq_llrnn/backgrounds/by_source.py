"""A background that its source makes another one: by itself it is the background below.

    BySource(below, lambda base, source: ContextClasses(base, WordsOf(source)))
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.features.dictionary import plain


class BySource(Background):
    """The background `base`, until `given(source)` is asked."""

    def __init__(self, base: Background, bound: Callable[[Background, Tensor], Background] | None = None) -> None:
        """bound: what it is, made of `base` given the source, and of the source (B, L), whose tokens carry no marks.

        A subclass may say `given`, whose tokens may carry some.
        """
        super().__init__(base.class_of, base.num_classes)
        self.base, self._bound = base, bound
        self.constant = base.constant

    def given(self, source: Tensor, leave_out: Tensor | None = None) -> Background:
        base = self.base.given(source, leave_out)
        return base if self._bound is None else self._bound(base, plain(source))

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
