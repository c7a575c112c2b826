"""How much work and memory an automaton may cost before it is refused.

Determinising can make a file of a few lines exponentially large. The work is counted in steps: looking at one arc of a
state, or at one member of a set of states (two with weights, whose sums take longer). Whatever is kept was looked at
first, so steps bound the memory as well. They are counted and not timed: a file is refused everywhere or nowhere.
"""

from __future__ import annotations

MOST_STEPS = 4_000_000  # seconds, and less than 2 GB; GeoQuery's grammar takes 1,311,000


class TooMuchWorkError(ValueError):
    """An automaton that costs more steps than it may."""


class Budget:
    """Steps that may still be taken."""

    def __init__(self, steps: int | None = None) -> None:
        """steps: MOST_STEPS without it."""
        self.steps = MOST_STEPS if steps is None else steps
        self.spent = 0

    def spend(self, steps: int) -> None:
        """To be called before the work is done. Raises TooMuchWorkError when there are not so many left."""
        self.spent += steps
        if self.spent > self.steps:
            raise TooMuchWorkError(f"the automaton takes more than {self.steps:,} steps to be made deterministic")
