"""What backgrounds made of backgrounds share: states side by side, conditions and limits passed on.

Sizes: N hypotheses, B batch, T time, L source length, H hidden width, M pairs of a row and a word, K parts.

A state is the parts' states in one row of int64; a part's state may have any shape behind N, and floating-point numbers
are kept bit by bit. Only a part with `growth` may have a state that gets wider.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.explicit_background import ExplicitBackground


@dataclass(frozen=True)
class _Layout:
    """Where a part's state is in the state of all."""

    shape: tuple[int, ...]  # at the start, behind N
    dtype: torch.dtype

    @property
    def width(self) -> int:
        return math.prod(self.shape)


def check_parts(kind: str, parts: Sequence[Background]) -> None:
    """Raise ValueError unless there are parts, all over the same words and signatures; `kind` is for the message."""
    if not parts:
        raise ValueError(f"{kind}: expected at least one background, found none")
    first = parts[0]
    for part in parts[1:]:
        if part.num_classes != first.num_classes or not torch.equal(part.class_of, first.class_of):
            raise ValueError(
                f"{kind}: expected backgrounds over the same {len(first.class_of):,} words in "
                f"{first.num_classes:,} signatures, found one over {len(part.class_of):,} in {part.num_classes:,}"
            )


class Combined(ExplicitBackground):
    """A background made of `parts`, over the same words and signatures."""

    parts: nn.ModuleList

    def __init__(self, parts: Sequence[Background], root_log_weights: Tensor | None) -> None:
        """parts: that `check_parts` passed. root_log_weights: as in ExplicitBackground."""
        super().__init__(parts[0].class_of, parts[0].num_classes, root_log_weights)
        self.parts = nn.ModuleList(parts)
        self.constant = all(part.constant for part in parts)
        self.growth = sum(part.growth for part in parts)
        self.sparse = self.root is not None and not self.constant
        self._layouts: list[_Layout] | None = None

    def each(self) -> list[Background]:
        """The parts."""
        return [part for part in self.parts if isinstance(part, Background)]

    def with_parts(self, parts: Sequence[Background]) -> Self:
        """This background with other parts in the place of its own; itself where they are its own."""
        if all(new is old for new, old in zip(parts, self.parts, strict=True)):
            return self
        if any(part.num_classes != self.num_classes for part in parts):
            raise ValueError(
                f"{type(self).__name__}: a part has classes of its own for this sentence; evidence and open words go "
                "around a product or mixture, not into it"
            )
        made = self.copied()
        made._modules["parts"] = nn.ModuleList(parts)
        return made

    # ---- conditions and limits --------------------------------------------------------------------------------------

    def given(self, source: Tensor, leave_out: Tensor | None = None) -> Background:
        return self._of_rows([part.given(source, leave_out) for part in self.each()], len(source))

    def cross_fitted(self, tokens: Tensor) -> Background:
        return self._of_rows([part.cross_fitted(tokens) for part in self.each()], len(tokens))

    def _of_rows(self, parts: list[Background], rows: int) -> Background:
        made = self.with_parts(parts)
        if made is not self:
            made._layouts = [_layout(part.start(rows)) for part in parts]
        return made

    def gates(self, hidden_size: int) -> None:
        for part in self.each():
            part.gates(hidden_size)

    def with_hidden(self, hidden: Tensor) -> Background:
        return self.with_parts([part.with_hidden(hidden) for part in self.each()])

    def for_rows(self, index: Tensor) -> Background:
        return self.with_parts([part.for_rows(index) for part in self.each()])

    # ---- states -----------------------------------------------------------------------------------------------------

    def start(self, n: int) -> Tensor:
        states = [part.start(n) for part in self.each()]
        if self._layouts is None:
            self._layouts = [_layout(state) for state in states]
        return torch.cat([_packed(state) for state in states], dim=1)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        after = [part.advance(own, tokens) for part, own in self.of_parts(state)]
        return torch.cat([_packed(own) for own in after], dim=1)

    def flat_states(self, previous: Tensor) -> Tensor:
        self.start(len(previous))
        return torch.cat([_packed(part.flat_states(previous)) for part in self.each()], dim=1)

    def of_parts(self, state: Tensor) -> list[tuple[Background, Tensor]]:
        """Each part, and its state."""
        if self._layouts is None:
            self._layouts = [_layout(part.start(1)) for part in self.each()]
        first = sum(layout.width for layout in self._layouts)
        words = (state.size(1) - first) // self.growth if self.growth else 0
        found, begin = [], 0
        for part, layout in zip(self.each(), self._layouts, strict=True):
            end = begin + layout.width + words * part.growth
            shape = layout.shape if part.growth == 0 else (end - begin,)
            found.append((part, _unpacked(state[:, begin:end], shape, layout.dtype)))
            begin = end
        return found


def _layout(state: Tensor) -> _Layout:
    return _Layout(tuple(state.shape[1:]), state.dtype)


def _packed(state: Tensor) -> Tensor:
    flat = state.reshape(len(state), math.prod(state.shape[1:]))
    return flat.double().view(torch.int64) if flat.is_floating_point() else flat.long()


def _unpacked(columns: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    if dtype.is_floating_point:
        columns = columns.contiguous().view(torch.float64)
    return columns.to(dtype).reshape(len(columns), *shape)
