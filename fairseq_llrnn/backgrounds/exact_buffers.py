"""Buffers that never go to half precision: log weights of rare words need their digits, and so do counts above 256."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn


class ExactBuffers(nn.Module):
    """A module whose buffers of numbers follow the model to its device, but not into half precision."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = {name: b for name, b in self._buffers.items() if b is not None and b.is_floating_point()}
        super()._apply(fn, recurse)
        for name, exact in before.items():
            moved = self._buffers[name]
            if moved is not None and moved.dtype in (torch.float16, torch.bfloat16):
                self._buffers[name] = exact.to(moved.device)
        return self
