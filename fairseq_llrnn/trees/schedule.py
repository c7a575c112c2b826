"""When a learned tree is changed: evenly in the first part of training, then never."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """Attributes: every: so many updates. until: the last update after which the tree may change."""

    every: int
    until: float

    @classmethod
    def spread(cls, times: int, updates_per_epoch: int, updates: float, share: float) -> Schedule:
        """A number of times an epoch, in the first `share` of all updates (infinite: always)."""
        return cls(max(1, updates_per_epoch // times), updates * share)

    def is_due(self, updates: int) -> bool:
        """Whether the tree is to be changed after so many updates."""
        return 0 < updates <= self.until and updates % self.every == 0
