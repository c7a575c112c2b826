"""Arrays of numbers in checkpoints are read; nothing of what numpy would believe a file is taken from it."""

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from fairseq_llrnn.plugin.compat.plain_arrays import CODE, NumberArray
from fairseq_llrnn.plugin.compat.safe_checkpoints import safe_loading

POINTER = b"A" * 8
scalar, reconstruct = np.float64(0).__reduce__()[0], np.zeros(1).__reduce__()[0]


class Says:
    """Is pickled as a call, and the state that follows it."""

    def __init__(self, function: Any, *arguments: Any, state: Any = None) -> None:
        self.said = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self) -> tuple:
        return self.said


def read(value: Any) -> Any:
    file = io.BytesIO()
    torch.save({"x": value}, file)
    file.seek(0)
    with safe_loading():
        return torch.load(file)["x"]


def dtype(code: str, *state: Any) -> Says:
    return Says(np.dtype, code, False, True, state=state or None)


def array(shape: Any, kind: Any, content: Any) -> Says:
    return Says(reconstruct, np.ndarray, (0,), b"b", state=(1, shape, kind, False, content))


OBJECTS = dtype("O", 3, "|", None, None, None, -1, -1, 63)
FIELDS = (3, "|", None, ("a",), {"a": (Says(np.dtype, "O"), 0)}, 8, 1, 0)  # an object that says it is none
HOSTILE: dict[str, Callable[[], Any]] = {
    "pointers": lambda: Says(np.ndarray, (1,), "O", POINTER),
    "outside of the buffer": lambda: Says(np.ndarray, (1,), "O", POINTER, -24),
    "numbers outside of the buffer": lambda: Says(np.ndarray, (1,), "f8", POINTER, -24),
    "strides": lambda: Says(np.ndarray, (9,), "f8", POINTER, 0, (-8,)),
    "an array of another kind": lambda: Says(reconstruct, np.ndarray, (1,), b"O"),
    "an array with room": lambda: Says(reconstruct, np.ndarray, (1 << 40,), b"b"),
    "an array of another class": lambda: Says(reconstruct, dict, (0,), b"b"),
    "a dtype of objects": lambda: np.dtype("O"),
    "a dtype of fields": lambda: Says(np.dtype, [("a", "O")]),
    "a dtype of bytes": lambda: Says(np.dtype, "V8"),
    "fields in a number": lambda: dtype("f8", *FIELDS),
    "an array in a number": lambda: dtype("f8", 3, "<", (Says(np.dtype, "f8"), (9,)), None, None, -1, -1, 0),
    "flags of a number": lambda: dtype("f8", 3, "<", None, None, None, -1, -1, 63),
    "a larger number": lambda: dtype("f8", 3, "<", None, None, None, 800, -1, 0),
    "a state that is none": lambda: dtype("f8", "x"),
    "objects": lambda: np.array([["a"]], dtype=object),
    "objects of bytes": lambda: array((1,), OBJECTS, POINTER),
    "strings": lambda: np.array(["a"]),
    "times": lambda: np.array(["2026-01-01"], dtype="M8[D]"),
    "records": lambda: np.zeros(1, dtype=[("a", "f8")]),
    "fewer bytes": lambda: array((2,), np.dtype("f8"), POINTER),
    "more bytes": lambda: array((1,), np.dtype("f8"), POINTER * 2),
    "a negative size": lambda: array((-1,), np.dtype("f8"), POINTER),
    "sizes whose product is too large": lambda: array((1 << 32, 1 << 32), np.dtype("f8"), b""),
    "no sizes": lambda: array("x", np.dtype("f8"), POINTER),
    "no bytes": lambda: array((1,), np.dtype("f8"), [1.0]),
    "no type": lambda: array((1,), "f8", POINTER),
    "no state": lambda: Says(reconstruct, np.ndarray, (0,), b"b", state=(1,)),
    "an object as a number": lambda: Says(scalar, np.dtype("O"), "x"),
    "fields as a number": lambda: Says(scalar, Says(np.dtype, [("a", "O")]), POINTER),
    "a number of fewer bytes": lambda: Says(scalar, np.dtype("f8"), b"x"),
    "a string": lambda: np.str_("a"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_array_of_numbers_is_refused(name: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match="Cannot |Unsupported"):
        read(HOSTILE[name]())


def test_no_array_is_made_by_its_class() -> None:
    """Which a file may say, too."""
    with pytest.raises(pickle.UnpicklingError, match="Cannot make an array by calling its class"):
        NumberArray.__new__(NumberArray, (1,), "O", POINTER)


@pytest.mark.parametrize("code", ["?", "b", "h", "i", "l", "B", "H", "I", "L", "e", "f", "d", ">f8", ">i4"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_arrays_and_numbers_are_read(code: str, shape: tuple[int, ...]) -> None:
    assert CODE.fullmatch(np.dtype(code).str)
    whole = np.arange(6).reshape(2, 3).astype(code)
    said = whole[: shape[0]] if len(shape) == 2 else whole.ravel()[: shape[0]] if shape else whole[1, 2]
    found = read({"array": said, "columns": whole.T, "again": [said]})
    assert found["array"].dtype == said.dtype.newbyteorder("=")
    np.testing.assert_array_equal(found["array"], said)
    np.testing.assert_array_equal(found["columns"], whole.T)
    np.testing.assert_array_equal(found["again"][0], said)


def test_what_was_read_is_written_as_numpy_does() -> None:
    array = read(np.array([1.0, 2.0]))
    array += 1
    for again in (pickle.loads(pickle.dumps(array, protocol)) for protocol in (2, 4, 5)):
        assert type(again) is np.ndarray and again.tolist() == [2.0, 3.0]
    assert copy.deepcopy(array).tolist() == read(array).tolist() == [2.0, 3.0]
