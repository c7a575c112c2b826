"""Arrays of numbers in checkpoints are read; nothing of what numpy would believe a file is taken from it."""

import argparse
import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.plugin.compat.loading import read_checkpoint
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
FIELDS = (3, "|", None, ("a",), {"a": (Says(np.dtype, "f8"), 0)}, 8, 1, 0)
CALLED = "Cannot make an array by calling its class"
BEGUN = "Cannot begin an array in another way than numpy"
KIND = "Cannot read numbers of the type ['\"]"
MORE, STATE = "Cannot read a type that is more than numbers", "Cannot read the type of numbers"
BYTES, SHAPE = "Cannot read an array of [0-9]+ bytes in another shape", "Cannot read an array of such a shape"
NO_BYTES, NO_NUMBERS = (f"Cannot read an array of something else than {what}" for what in ("bytes", "numbers"))
HOSTILE: dict[str, tuple[str, Callable[[], Any]]] = {
    "pointers": (CALLED, lambda: Says(np.ndarray, (1,), "O", POINTER)),
    "outside of the buffer": (CALLED, lambda: Says(np.ndarray, (1,), "O", POINTER, -24)),
    "numbers outside of the buffer": (CALLED, lambda: Says(np.ndarray, (1,), "f8", POINTER, -24)),
    "strides": (CALLED, lambda: Says(np.ndarray, (9,), "f8", POINTER, 0, (-8,))),
    "an array of another kind": (BEGUN, lambda: Says(reconstruct, np.ndarray, (1,), b"O")),
    "an array with room": (BEGUN, lambda: Says(reconstruct, np.ndarray, (1 << 40,), b"b")),
    "an array of another class": (BEGUN, lambda: Says(reconstruct, argparse.Namespace, (0,), b"b")),
    "a dtype of objects": (KIND, lambda: np.dtype("O")),
    "a dtype of fields": (KIND, lambda: Says(np.dtype, [("a", "O")])),
    "a dtype of bytes": (KIND, lambda: Says(np.dtype, "V8")),
    "fields in a number": (MORE, lambda: dtype("f8", *FIELDS)),
    "an array in a number": (MORE, lambda: dtype("f8", 3, "<", (Says(np.dtype, "f8"), (9,)), None, None, -1, -1, 0)),
    "flags of a number": (MORE, lambda: dtype("f8", 3, "<", None, None, None, -1, -1, 63)),
    "a larger number": (MORE, lambda: dtype("f8", 3, "<", None, None, None, 800, -1, 0)),
    "a state that is none": (STATE, lambda: dtype("f8", "x")),
    "objects": (KIND, lambda: np.array([["a"]], dtype=object)),
    "objects of bytes": (KIND, lambda: array((1,), OBJECTS, POINTER)),
    "strings": (KIND, lambda: np.array(["a"])),
    "times": (KIND, lambda: np.array(["2026-01-01"], dtype="M8[D]")),
    "records": (KIND, lambda: np.zeros(1, dtype=[("a", "f8")])),
    "fewer bytes": (BYTES, lambda: array((2,), np.dtype("f8"), POINTER)),
    "more bytes": (BYTES, lambda: array((1,), np.dtype("f8"), POINTER * 2)),
    "a negative size": (SHAPE, lambda: array((-1,), np.dtype("f8"), POINTER)),
    "sizes whose product is too large": (BYTES, lambda: array((1 << 32, 1 << 32), np.dtype("f8"), b"x")),
    "no sizes": (NO_BYTES, lambda: array("x", np.dtype("f8"), POINTER)),
    "no bytes": (NO_BYTES, lambda: array((1,), np.dtype("f8"), [1.0])),
    "no type": (NO_NUMBERS, lambda: array((1,), "f8", POINTER)),
    "no state": (NO_NUMBERS, lambda: Says(reconstruct, np.ndarray, (0,), b"b", state=(1,))),
    "an object as a number": (KIND, lambda: Says(scalar, np.dtype("O"), "x")),
    "fields as a number": (KIND, lambda: Says(scalar, Says(np.dtype, [("a", "O")]), POINTER)),
    "a number of fewer bytes": (BYTES, lambda: Says(scalar, np.dtype("f8"), b"x")),
    "a string": (KIND, lambda: np.str_("a")),
    "a number of no type": ("Cannot read something else than a number", lambda: Says(scalar, "f8", POINTER)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_array_of_numbers_is_refused(name: str) -> None:
    said, hostile = HOSTILE[name]
    with pytest.raises(pickle.UnpicklingError, match=said):
        read(hostile())


def test_a_checkpoint_with_such_an_array_is_refused_in_one_line(tmp_path: Path) -> None:
    torch.save({"cfg": HOSTILE["pointers"][1]()}, tmp_path / "m.pt")
    with pytest.raises(DataError, match=rf"m\.pt: refused: expected a checkpoint that fairseq saved, .*\({CALLED}\)"):
        read_checkpoint(str(tmp_path / "m.pt"))


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
