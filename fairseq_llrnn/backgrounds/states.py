"""States of hypotheses: each background reads only its own.

Sizes: N hypotheses, M selected hypotheses, T time.

A state is a tensor whose first dimension is N, or any object with `__len__` and these two methods, for example a list
of parsers:

    select(index)              the states of the hypotheses index[0], index[1], …, (M,) int64
    concatenate(others)        these states, then those of each of `others`

A tensor may grow with each token. `JointStates` are the states of several backgrounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils import _pytree

States = Any  # a tensor, or an object as above


class JointStates:
    """The states of several backgrounds for the same hypotheses."""

    def __init__(self, parts: Sequence[States]) -> None:
        self.parts = list(parts)

    def __len__(self) -> int:
        return len(self.parts[0])

    def select(self, index: Tensor) -> JointStates:
        return JointStates([select(part, index) for part in self.parts])

    def concatenate(self, others: Sequence[JointStates]) -> JointStates:
        by_part = zip(self.parts, *(each.parts for each in others), strict=True)
        return JointStates([concatenate(states) for states in by_part])


# torch.compile and torch.export then read the tensors
_pytree.register_pytree_node(JointStates, lambda joint: (joint.parts, None), lambda parts, _: JointStates(list(parts)))


def select(states: States, index: Tensor) -> States:
    """Return the states of the hypotheses index[0], index[1], …: reordered, repeated or removed. index: (M,) int64."""
    return states.index_select(0, index) if isinstance(states, Tensor) else states.select(index)


def repeat(states: States, times: int) -> States:
    """Repeat each state `times` times, one after the other: N · times states."""
    if isinstance(states, Tensor):
        return states.repeat_interleave(times, 0)
    if isinstance(states, JointStates):
        return JointStates([repeat(part, times) for part in states.parts])
    return states.select(torch.arange(len(states)).repeat_interleave(times))


def concatenate(states: Sequence[States]) -> States:
    """Return the states of several groups of hypotheses, one after the other.

    Raises:
        ValueError: tensors of different shapes, as of texts with different lengths.
    """
    first = states[0]
    if not isinstance(first, Tensor):
        return first.concatenate(states[1:])
    shapes = {tuple(each.shape[1:]) for each in states}
    if len(shapes) > 1:
        found = " and ".join(f"(N, {', '.join(map(str, shape))})" for shape in sorted(shapes))
        raise ValueError(f"expected states of one shape, found {found}; pad them in `flat_states`, or keep one shape")
    return torch.cat(list(states))


def distinct_runs(states: States) -> tuple[States, Tensor]:
    """Return one state for each run of equal ones, and the run of each hypothesis: (N,) int64.

    The states of objects other than tensors count as different.
    """
    begins = _begins(states)
    return select(states, begins.nonzero().squeeze(1)), begins.cumsum(0) - 1


def _begins(states: States) -> Tensor:
    """Return whether each state differs from the previous one: (N,) bool."""
    if isinstance(states, JointStates):
        return torch.stack([_begins(part) for part in states.parts]).any(0)
    if isinstance(states, Tensor):
        differs = states[1:] != states[:-1]
        differs = differs if differs.dim() == 1 else differs.flatten(1).any(1)
        return functional.pad(differs, (min(1, len(states)), 0), value=True)
    return torch.ones(len(states), dtype=torch.bool)
