"""numpy's arrays and numbers in a checkpoint, made of its bytes by ourselves.

`--eval-bleu` leaves its counts in the meters of a checkpoint. numpy believes what a pickle says: `ndarray((1,), "O",
…)` is an array of pointers, a negative offset leads out of the buffer, and the state of a dtype says by itself
whether its bytes are pointers. Under the names of numpy, torch's reader finds what is here, which takes numbers alone
and as many bytes as they need.
"""

from __future__ import annotations

import math
import re
from pickle import UnpicklingError
from typing import Any

import numpy as np

CODE = re.compile("[<>|=]?(b1|[iu][1248]|f[248])")
CORES = ("numpy.core.multiarray", "numpy._core.multiarray")  # of numpy 1 and 2


class NumberType:
    """Stands for a dtype, in a file: `dtype("f8", False, True)`, then its state.

    Raises UnpicklingError for what is no number, and for a state beyond the order of its bytes.
    """

    def __init__(self, code: object, *flags: object) -> None:
        if not (isinstance(code, str) and CODE.fullmatch(code)):
            raise UnpicklingError(f"Cannot read numbers of the type {str(code)[:40]!r}")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: Any) -> None:
        if not (isinstance(state, tuple) and len(state) == 8 and state[1] in ("<", ">", "|", "=")):
            raise UnpicklingError("Cannot read the type of numbers")
        if state[2:] != (None, None, None, -1, -1, 0):
            raise UnpicklingError("Cannot read a type that is more than numbers")
        self.dtype = self.dtype.newbyteorder(state[1])

    def check(self, content: object, shape: object) -> None:
        """Raise UnpicklingError unless these are the bytes that numbers of that shape need."""
        if not (isinstance(shape, tuple) and isinstance(content, bytes)):
            raise UnpicklingError("Cannot read an array of something else than bytes")
        if any(type(size) is not int or size < 0 for size in shape):
            raise UnpicklingError("Cannot read an array of such a shape")
        if len(content) != math.prod(shape) * self.dtype.itemsize:
            raise UnpicklingError(f"Cannot read an array of {len(content)} bytes in another shape")


class NumberArray(np.ndarray):
    """An array that a file says. It is written as any other array of numpy."""

    def __new__(cls, *args: object) -> NumberArray:
        raise UnpicklingError("Cannot make an array by calling its class")

    def __setstate__(self, state: Any) -> None:
        if not (isinstance(state, tuple) and len(state) == 5 and isinstance(state[2], NumberType)):
            raise UnpicklingError("Cannot read an array of something else than numbers")
        _, shape, kind, by_columns, content = state
        kind.check(content, shape)
        super().__setstate__((1, shape, kind.dtype, bool(by_columns), content))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return np.asarray(self).__reduce_ex__(protocol)


def begun_array(kind: object, shape: object, code: object) -> NumberArray:
    """In the place of numpy's `_reconstruct`: an array whose state comes next."""
    if kind is not NumberArray or shape != (0,) or code not in (b"b", "b"):
        raise UnpicklingError("Cannot begin an array in another way than numpy")
    return np.ndarray.__new__(NumberArray, (0,), "b")


def number(kind: object, content: bytes) -> np.generic:
    """In the place of numpy's `scalar`."""
    if not isinstance(kind, NumberType):
        raise UnpicklingError("Cannot read something else than a number")
    kind.check(content, ())
    return np.frombuffer(content, kind.dtype)[0]


# What torch's reader may call, by the names that files have for it.
NUMBERS: tuple[tuple[Any, str], ...] = (
    (NumberArray, "numpy.ndarray"),
    (NumberType, "numpy.dtype"),
    *((begun_array, f"{core}._reconstruct") for core in CORES),
    *((number, f"{core}.scalar") for core in CORES),
)
