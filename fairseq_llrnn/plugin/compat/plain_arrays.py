"""Build numpy's arrays and numbers in a checkpoint from their bytes, without numpy's unpickling.

`--eval-bleu` leaves its counts in the meters of a checkpoint. numpy trusts a pickle: `ndarray((1,), "O", …)` is an
array of pointers, a negative offset leads out of the buffer, and the state of a dtype decides whether its bytes are
pointers. Under numpy's names, torch's reader finds the classes of this module. They accept only numbers, and exactly
the bytes that these need.
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
    """Replaces a dtype in a file: `dtype("f8", False, True)`, then its state.

    Raises UnpicklingError unless it is a number type, and its state sets only the byte order.
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
        """Raise UnpicklingError unless these are the bytes of numbers of that shape."""
        if not (isinstance(shape, tuple) and isinstance(content, bytes)):
            raise UnpicklingError("Cannot read an array of something else than bytes")
        if any(type(size) is not int or size < 0 for size in shape):
            raise UnpicklingError("Cannot read an array of such a shape")
        if len(content) != math.prod(shape) * self.dtype.itemsize:
            raise UnpicklingError(f"Cannot read an array of {len(content)} bytes in another shape")


class NumberArray(np.ndarray):
    """An array from a file. It is written like any other array of numpy."""

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
    """Replace numpy's `_reconstruct`: return an array whose state follows."""
    if kind is not NumberArray or shape != (0,) or code not in (b"b", "b"):
        raise UnpicklingError("Cannot begin an array in another way than numpy")
    return np.ndarray.__new__(NumberArray, (0,), "b")


def number(kind: object, content: bytes) -> np.generic:
    """Replace numpy's `scalar`."""
    if not isinstance(kind, NumberType):
        raise UnpicklingError("Cannot read something else than a number")
    kind.check(content, ())
    return np.frombuffer(content, kind.dtype)[0]


# replacements for torch's reader, by their names in files
NUMBERS: tuple[tuple[Any, str], ...] = (
    (NumberArray, "numpy.ndarray"),
    (NumberType, "numpy.dtype"),
    *((begun_array, f"{core}._reconstruct") for core in CORES),
    *((number, f"{core}.scalar") for core in CORES),
)
