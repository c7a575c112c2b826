"""Count the bytes of tensors that are alive at once during a computation, on any device."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Alive(TorchDispatchMode):
    """Record the largest tensor that an operation returned (numbers), and the maximum bytes of such tensors alive at
    once.

    Operations are slower inside it, so that times are meaningless. Earlier tensors, and scratch memory inside an
    operation, are not counted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.largest = self.bytes = self.peak = 0
        self.known: set[int] = set()

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for tensor in tree_leaves((args, kwargs)):
            if isinstance(tensor, Tensor):  # was there before, if it is met here first; views of it are nothing new
                self._count(tensor.untyped_storage(), 0)
        result = operation(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self.largest = max(self.largest, tensor.numel())
                self._count(tensor.untyped_storage(), tensor.untyped_storage().nbytes())
        return result

    def _count(self, storage: torch.UntypedStorage, size: int) -> None:
        if storage._cdata in self.known:
            return
        self.known.add(storage._cdata)
        self.bytes += size
        self.peak = max(self.peak, self.bytes)
        weakref.finalize(storage, self._gone, storage._cdata, size)

    def _gone(self, place: int, size: int) -> None:
        self.known.discard(place)
        self.bytes -= size
