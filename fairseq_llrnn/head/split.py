"""Batches that are too large to be looked at as a whole: their sentences are, some at a time.

Sizes: B batch, T time, V words, S signatures, H hidden width, E encoder width, J₁ slots of evidence.

Where no gradient is asked for, what is asked of a position is all that has to be kept. So masses, scores and shares,
which have S numbers a position (V where a background knows no better), are made for some of the sentences, and
forgotten. A training step keeps the probabilities of its signatures for the gradient, and is never split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.head.records import CELLS, Batch, Condition, Rows


def sentences_at_once(background: Background, previous: Tensor) -> int:
    """How many sentences of a batch (B, T) are looked at together; one at least."""
    width = background.num_classes if background.sparse or background.constant else len(background.class_of)
    return max(1, CELLS // max(1, previous.size(1) * width))


def spans(many: int, at_once: int) -> list[slice]:
    """`many` sentences, at most `at_once` in each part."""
    return [slice(start, min(start + at_once, many)) for start in range(0, many, at_once)]


def some(tensor: Tensor | None, rows: slice) -> Tensor | None:
    """Those rows of what has a row for each sentence; None for None."""
    return None if tensor is None else tensor[rows]


@dataclass(frozen=True)
class SplitCondition:
    """As Condition, of a batch whose sentences are looked at some at a time."""

    rows: Sequence[slice]
    conditions: Sequence[Condition]

    def parts(self) -> list[tuple[slice, Condition]]:
        """Which sentences, and what is known of them."""
        return list(zip(self.rows, self.conditions, strict=True))

    @property
    def readable(self) -> Tensor:
        """(B, T), as a network can read them."""
        return torch.cat([part.readable for part in self.conditions])


@dataclass(frozen=True)
class SplitBatch:
    """As Batch, of a SplitCondition: what is asked of it, its parts answer one after the other."""

    hidden: Tensor  # (B, T, H)
    condition: SplitCondition
    source_states: Tensor | None  # (B, L, E)
    shared: Rows  # of the signatures and open classes, made once
    make: Callable[[Tensor, Condition, Tensor | None, Rows, Tensor | None], Batch]
    spelling: Tensor | None = None  # (B, T, X), of Batch

    def backgrounds(self) -> list[tuple[slice, Background]]:
        """Those of the parts, and which sentences each is of."""
        return [(rows, part.background) for rows, part in self.condition.parts()]

    def parts(self) -> Iterator[tuple[slice, Batch]]:
        """The parts, made as they are asked for."""
        for rows, condition in self.condition.parts():
            sources, spelling = some(self.source_states, rows), some(self.spelling, rows)
            yield rows, self.make(self.hidden[rows], condition, sources, self.shared, spelling)

    def per_position(self, ask: Callable[[Batch, slice], Tensor]) -> Tensor:
        """What each part answers, (B', T), together: (B, T)."""
        return torch.cat([ask(part, rows) for rows, part in self.parts()])

    def per_word(self, ask: Callable[[Batch], Tensor]) -> Tensor:
        """What each part answers of all words, (B', T, V + J₁), its own J₁, together; −inf where others have slots."""
        answers = [ask(part) for _, part in self.parts()]
        width = max(answer.size(2) for answer in answers)
        padded = [functional.pad(answer, (0, width - answer.size(2)), value=NEGATIVE_INFINITY) for answer in answers]
        return torch.cat(padded)
