"""A background along the positions of a batch: its states found once, its masses in the form that serves best.

Sizes: B batch, T time, V words, S signatures.
"""

from __future__ import annotations

from functools import cached_property

from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.sparse_mass import Corrections


class Positions:
    """What a background says at every position of a batch whose inputs are `previous` (B, T).

    `masses` are corrections of B·T rows where the background has them, and else log masses that broadcast to (B, T, S).
    """

    def __init__(self, background: Background, previous: Tensor) -> None:
        self.background, self.previous = background, previous
        self.states = background.flat_states(previous) if background.sparse else None  # shape: (B·T, …)
        corrections = None if self.states is None else background.corrections(self.states)
        self.masses: Tensor | Corrections
        self.masses = background.log_mass_per_position(previous) if corrections is None else corrections

    @cached_property
    def log_mass(self) -> Tensor:
        """log B_K(σ), broadcasting to (B, T, S): an N×S tensor where there are corrections, so only on demand."""
        return self.dense(self.masses)

    def dense(self, masses: Tensor | Corrections) -> Tensor:
        """Log masses in the form of `masses`, whichever it is, as a tensor that broadcasts to (B, T, S)."""
        if isinstance(masses, Corrections):
            return masses.dense(self.previous.numel()).view(*self.previous.shape, -1)
        return masses

    def log_share(self, targets: Tensor) -> Tensor:
        """log b(K, x) − log B_K(σ(x)) of the targets: (B, T) -> (B, T)."""
        if self.states is None:
            return self.background.log_share_per_position(self.previous, targets)
        return self.background.log_share(self.states, targets.flatten()).view_as(targets)
