"""Buffers that never lose digits: log weights are differences of large numbers, and counts may be above 256."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn


class ExactBuffers(nn.Module):
    """A module whose buffers of numbers follow the model to its device, but never to a lower precision."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = {name: b for name, b in self._buffers.items() if b is not None and b.is_floating_point()}
        super()._apply(fn, recurse)
        for name, exact in before.items():
            moved = self._buffers[name]
            if moved is not None and torch.finfo(moved.dtype).eps > torch.finfo(exact.dtype).eps:
                self._buffers[name] = exact.to(moved.device)
        return self
