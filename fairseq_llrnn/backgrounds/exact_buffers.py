"""Modules whose tables keep their precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn


class ExactBuffers(nn.Module):
    """A module whose floating-point buffers follow the model to its device, but never to a lower precision.

    Log weights are differences of large numbers, and counts may exceed 256. Checkpoints do not contain these buffers.
    """

    def keep(self, **tensors: Tensor) -> None:
        """Register buffers."""
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor, persistent=False)

    def learn(self, name: str, begin: Tensor, learned: bool) -> None:
        """Register a parameter with the initial value `begin`, or a buffer if `learned` is false."""
        if learned:
            self.register_parameter(name, nn.Parameter(begin))
        else:
            self.keep(**{name: begin})

    def learn_share(self, name: str, share: float, learned: bool, dtype: torch.dtype) -> None:
        """Call `learn` with the log odds of a share in (0, 1), or (0, 1] if it is not learned."""
        self.learn(name, torch.tensor(share, dtype=torch.float64).logit().to(dtype), learned)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = {name: b for name, b in self._buffers.items() if b is not None and b.is_floating_point()}
        super()._apply(fn, recurse)
        for name, exact in before.items():
            moved = self._buffers[name]
            if moved is not None and torch.finfo(moved.dtype).eps > torch.finfo(exact.dtype).eps:
                self._buffers[name] = exact.to(moved.device)
        return self
