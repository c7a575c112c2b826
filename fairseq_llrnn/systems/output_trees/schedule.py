"""When a learned tree is changed: evenly in the first part of training, then never."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """So many times in `updates_per_epoch` updates, up to the update `until`."""

    times: int
    updates_per_epoch: int
    until: float

    @classmethod
    def spread(cls, times: int, updates_per_epoch: int, updates: float, share: float) -> Schedule:
        """A number of times an epoch, in the first `share` of all updates (infinite: always)."""
        return cls(times, max(1, updates_per_epoch), updates * share)

    def is_due(self, updates: int) -> bool:
        """Whether the tree is to be changed after so many updates."""
        done, before = (count * self.times // self.updates_per_epoch for count in (updates, updates - 1))
        return 0 < updates <= self.until and done > before
