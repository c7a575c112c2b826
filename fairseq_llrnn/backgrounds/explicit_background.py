"""Backgrounds that list the words whose weight differs from a static one, the root (listed_view.py)."""

from __future__ import annotations

from torch import Tensor

from fairseq_llrnn.backgrounds.background import Background, StaticBackground, View
from fairseq_llrnn.backgrounds.class_weights import ExplicitWeights
from fairseq_llrnn.backgrounds.listed_view import ListedView
from fairseq_llrnn.backgrounds.states import States


class ExplicitBackground(Background):
    """A background that lists words. A subclass defines `start`, `advance` and `sparse_weights`."""

    def __init__(self, class_of: Tensor, num_classes: int, root_log_weights: Tensor) -> None:
        """root_log_weights: (V,)."""
        super().__init__(class_of, num_classes)
        self.static = StaticBackground(class_of, num_classes, root_log_weights)

    @property
    def root(self) -> StaticBackground:
        return self.static

    def sparse_weights(self, states: States) -> ExplicitWeights:
        """Return the weights in N states as a factor of the root and exceptions."""
        raise NotImplementedError

    def view(self, states: States, hidden: Tensor | None = None, remaining: int | None = None) -> View:
        return ListedView(self, states, self.sparse_weights(states), remaining)
