"""What experts add: hidden states that know their weights, and rows of their exceptions.

Sizes: B batch (in a search, N hypotheses), T time, H hidden width, H' = H + G + E with the columns and weights of
experts (experts/features.py), J₁ slots of evidence, J exceptions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.experts.contexts import Contexts
from fairseq_llrnn.experts.features import ExpertFeatures
from fairseq_llrnn.head.records import RowPair, Rows
from fairseq_llrnn.output.context_classes import ContextClasses


def in_batch(
    experts: ExpertFeatures, bound: Background, hidden: Tensor, previous: Tensor, widen: Callable[[], Rows]
) -> tuple[Tensor, Rows, RowPair | None]:
    """Hidden states (B, T, H) -> (B, T, H'), wide rows, and the exceptions' rows (B, T, J, H') and biases, if any.

    `widen` makes the rows, once the experts have named all their columns.
    """
    assert isinstance(bound, ContextClasses) and isinstance(bound.source, Contexts)
    contexts = bound.source
    numbers = contexts.per_position(previous)
    wide, rows = experts.widen(hidden, numbers, contexts), widen()
    if not contexts.width:
        return wide, rows, None
    read = previous if experts.panel.looks_at_prefix else previous[:, :1]
    classes = bound.former_classes(bound.flat_states(read)).view(*read.shape, -1)
    numbers = numbers[:, : read.size(1)]
    return wide, rows, experts.exception_rows(rows.exact.composed, rows.slots, classes, numbers, contexts)


def in_step(
    experts: ExpertFeatures, bound: Background, hidden: Tensor, states: Tensor, rows: Rows, slots: RowPair | None
) -> tuple[Tensor, RowPair | None]:
    """As `in_batch`, of one step: hidden (N, 1, H), states (N, …). slots: of each hypothesis, (N, J₁, H')."""
    assert isinstance(bound, ContextClasses) and isinstance(bound.source, Contexts)
    numbers = bound.contexts_of(states).unsqueeze(1)
    wide = experts.widen(hidden, numbers, bound.source)
    if not bound.source.width:
        return wide, None
    classes = bound.former_classes(states).unsqueeze(1)  # shape: (N, 1, J)
    return wide, experts.exception_rows(rows.exact.composed, slots, classes, numbers, bound.source)


def refuse_other_experts(option: str, checkpoint: str, saved: Any, given: int) -> None:
    """Raise OptionError where not as many experts are `given` as a checkpoint has weights for, (E, H) or None."""
    trained = len(saved) if isinstance(saved, Tensor) and saved.dim() else 0
    if trained != given:
        fix = f"give those of its training, in their order, as {option} FILE:Class" if trained else "leave it out"
        raise OptionError(
            f"{option}: expected as many experts as {checkpoint} was trained with, which are {trained}, found {given}; "
            f"{fix}"
        )
