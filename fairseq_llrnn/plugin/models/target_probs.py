"""What fairseq's scorer gets in the place of the probabilities of all words: those of the targets, which it asks for.

Sizes: B batch, T time (with --softmax-batch, 1 and the positions of a part).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor


class TargetProbs:
    """As a tensor (B, T, words), as far as fairseq.sequence_scorer.SequenceScorer looks at it."""

    def __init__(self, of_targets: Tensor, targets: Tensor) -> None:
        """Both (B, T)."""
        self.of_targets, self.targets = of_targets, targets

    @property
    def data(self) -> TargetProbs:
        """What a tensor has here has no gradient; nor has this."""
        return self

    def size(self, dim: int) -> int:
        """Of (B, T, 1)."""
        return self.of_targets.unsqueeze(2).size(dim)

    def view(self, *shape: Any) -> TargetProbs:
        """The scorer gives it the shape that it has."""
        return self

    def new(self, size: int) -> Tensor:
        """An empty tensor of the same kind: (size,)."""
        return self.of_targets.new_empty(size)

    def gather(self, dim: int, index: Tensor) -> Tensor:
        """The probabilities of the targets: index (B, T, 1) -> (B, T, 1)."""
        if dim != 2 or not index.squeeze(2).equal(self.targets):
            raise ValueError("expected the targets of the sample that was handed over; hand over none for all words")
        return self.of_targets.unsqueeze(2)
