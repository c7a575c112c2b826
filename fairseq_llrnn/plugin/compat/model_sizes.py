"""A model that a checkpoint's options describe is no larger than the checkpoint: that is seen while it is built.

The options are untrusted input. A hidden size of 10⁹ asks for memory, 10⁸ layers for time without end, and which
options say so, each kind of model knows for itself. But whatever they are, every parameter of a model stands in its
checkpoint. So while one is built, what it has registered is counted, and what it asks torch to make is looked at
before it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

# What takes sizes and makes a tensor of them
MAKERS = frozenset((torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.arange, torch.eye))
PRODUCTS = frozenset((Tensor.mul, Tensor.__mul__, torch.mul))  # a table of positions is one
REPEATED = 4  # a tied parameter is made and thrown away; a table may be made in double precision first
BESIDE_NUMBERS, BESIDE_TENSORS = 1 << 20, 1000  # what a model may register that no checkpoint has
BESIDE_AT_ONCE = 1 << 26  # numbers of one tensor that is no parameter, as of positions or of the prior: 256 MiB
_counts: list[_Sizes] = []  # the models that are being built, one for the background of the other: the last one counts


@contextmanager
def no_larger_than(weights: Mapping[str, Any]) -> Iterator[None]:
    """Around what builds the model of a checkpoint.

    Args:
        weights: its tensors by name.

    Raises, from what is inside:
        ValueError: a model that is larger than they are.
    """
    sizes = _Sizes([value.numel() for value in weights.values() if isinstance(value, Tensor)])
    hook = register_module_parameter_registration_hook(sizes.count)
    _counts.append(sizes)
    try:
        with sizes:
            yield
    finally:
        _counts.pop()
        hook.remove()


class _Sizes(TorchFunctionMode):
    """Of one model."""

    def __init__(self, stored: Sequence[int]) -> None:
        super().__init__()
        self.stored, self.numbers, self.tensors = stored, 0, 0
        self.at_once = REPEATED * sum(stored) + BESIDE_AT_ONCE

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if _counts[-1] is self:
            if function in MAKERS:
                self._check(function(*args, **{**named, "device": "meta", "pin_memory": False}).numel())
            elif function in PRODUCTS and all(isinstance(one, Tensor) for one in args[:2]):
                self._check(torch.Size(torch.broadcast_shapes(*(one.shape for one in args[:2]))).numel())
        return function(*args, **named)

    def _check(self, numbers: int) -> None:
        if numbers > self.at_once:
            raise self._error(f"a tensor of {numbers:,} numbers")

    def count(self, module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        """To be called with every parameter that a module gets."""
        if parameter is None or _counts[-1] is not self:
            return
        self.numbers, self.tensors = self.numbers + parameter.numel(), self.tensors + 1
        if self.numbers > REPEATED * sum(self.stored) + BESIDE_NUMBERS:
            raise self._error(f"more than {self.numbers:,} numbers")
        if self.tensors > REPEATED * len(self.stored) + BESIDE_TENSORS:
            raise self._error(f"more than {self.tensors:,} tensors")

    def _error(self, found: str) -> ValueError:
        numbers, tensors = sum(self.stored), len(self.stored)
        return ValueError(f"a model of {found}, where the checkpoint holds {numbers:,} numbers in {tensors:,} tensors")
