"""How a background made of others packs their states into the rows of one tensor of int64.

Sizes: N hypotheses.

A state may have any shape after N and any type. Floating-point numbers keep their bits. Shape and type are those of
`start`, with one exception: if a background has `state_columns_per_token` = c, its state after t more tokens is (N, w +
c t), where (N, w) is the shape at the start. A combination could not cut other states, so they are an error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from fairseq_llrnn.backgrounds.base import BoundBackground


@dataclass(frozen=True)
class StateForm:
    """Shape and type of the states of one background."""

    name: str  # of the background's class
    shape: tuple[int, ...]  # after N, before the first token
    dtype: torch.dtype
    columns_per_token: int

    @classmethod
    def of(cls, background: BoundBackground, start: Tensor) -> StateForm:
        """Return the form of a background's states. start: some initial ones."""
        name, columns = type(background).__name__, background.state_columns_per_token
        return cls(name, tuple(start.shape[1:]), start.dtype, columns)

    @property
    def width(self) -> int:
        """The number of columns before the first token."""
        return math.prod(self.shape)

    def num_tokens(self, state: Tensor) -> int:
        """Return the number of tokens after which a state is so wide, 0 if the width does not depend on it.

        Raises:
            ValueError: the state has another shape or type.
        """
        shape = state.shape[1:]
        if state.dtype == self.dtype:
            if not self.columns_per_token and shape == self.shape:
                return 0
            if self.columns_per_token and len(shape) == len(self.shape) == 1:
                tokens, left = divmod(shape[0] - self.shape[0], self.columns_per_token)
                if tokens >= 0 and left == 0:
                    return tokens
        expected = ", ".join(map(str, ("N", *self.shape)))
        more = f", and {self.columns_per_token} more columns for each token" if self.columns_per_token else ""
        raise ValueError(
            f"{self.name}: expected states of the shape ({expected}){more}, and of the type {self.dtype}, found "
            f"{tuple(state.shape)} of {state.dtype}; keep one shape and type, or set `state_columns_per_token` to the "
            "number of columns that each token adds"
        )

    def pack(self, state: Tensor) -> Tensor:
        """Return states as rows of int64. Raises ValueError as `num_tokens`."""
        self.num_tokens(state)
        flat = state.reshape(len(state), math.prod(state.shape[1:]))
        return flat.double().view(torch.int64) if flat.is_floating_point() else flat.long()

    def unpack(self, columns: Tensor) -> Tensor:
        """Return the states of rows of int64."""
        if self.dtype.is_floating_point:
            columns = columns.contiguous().view(torch.float64)
        states = columns.to(self.dtype)
        return states if self.columns_per_token else states.reshape(len(columns), *self.shape)
