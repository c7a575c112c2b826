"""Backgrounds that depend on the source sentence. Without a source they are the background below.

    BySource(below, lambda base, source: ContextClasses(base, WordsOf(source)))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from fairseq_llrnn.backgrounds.background import Background, BoundBackground
from fairseq_llrnn.features.dictionary import plain

ReadySlots = Sequence[Tensor] | None


def bound_to(
    background: Background, source: Tensor | None, text: Tensor | None, slots: ReadySlots
) -> BoundBackground:
    """Bind a background to a batch. Only backgrounds by source, which are around all others, may have slots."""
    if isinstance(background, BySource):
        return background.bind(source, text, slots)
    return background.bind(source, text)


class BySource(Background):
    """A background that is built from another one for each batch, by default given its source."""

    def __init__(
        self,
        base: Background,
        by_source: Callable[[BoundBackground, Any], BoundBackground] | None = None,
        needs_source: bool = True,
    ) -> None:
        """by_source: makes the bound background from the bound `base` and the source (B, L), whose tokens have no
        marks.

        A subclass may override `bind`, whose source tokens may have marks.

        Args:
            needs_source: whether it is `base` without a source; if not, `by_source` gets None for the source.
        """
        super().__init__(base.class_of, base.num_classes)
        self.base, self.by_source, self.needs_source = base, by_source, needs_source

    def bind(
        self, source: Tensor | None = None, text: Tensor | None = None, slots: ReadySlots = None
    ) -> BoundBackground:
        """As in the base class. slots: of the source, if a data set has made them (evidence/slots.py)."""
        base = bound_to(self.base, source, text, slots)
        if self.by_source is None or (source is None and self.needs_source):
            return base
        return self.by_source(base, None if source is None else plain(source))
