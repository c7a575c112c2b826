"""The folder of a trained field: a readable description, and plain arrays of numbers.

    field.json     format, version, kind, settings, names, hash of the arrays
    arrays.npz     parameters and derived numbers (files/array_file.py)
    training.npz   the state of an unfinished training

It is untrusted input: nothing in it is executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.array_file import map_file, read_arrays, write_arrays
from fairseq_llrnn.files.atomic_write import may_replace, recover, whole_folder, writing
from fairseq_llrnn.files.reading import check_regular_file

FORMAT, VERSION = "fairseq_llrnn markov field", 1
JSON_FILE, ARRAYS_FILE, TRAINING_FILE = "field.json", "arrays.npz", "training.npz"
WORDS, TAGS = "words", "tags"  # kinds of fields
AGAIN = "train it again with `llrnn mrf train`"


@dataclass(frozen=True)
class SavedField:
    """The contents of a folder, with unchecked arrays."""

    folder: str
    description: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]

    def array(self, name: str, dtype: type, *shape: int | None) -> np.ndarray:
        """Return the array with this name. None in its shape matches any size. Raises DataError for a mismatch."""
        array = self.arrays.get(name)
        sound = array is not None and array.dtype == dtype and array.ndim == len(shape)
        if array is None or not sound or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True)):
            content = "none" if array is None else f"{array.dtype} of the shape {array.shape}"
            sizes = " × ".join("any" if n is None else f"{n}" for n in shape)
            raise DataError(f"{self.folder}: {name}: expected {np.dtype(dtype)}, {sizes}, found {content}; {AGAIN}")
        return array

    def numbers(self, name: str, *shape: int | None) -> Tensor:
        """Return the finite float64 numbers with this name. Raises DataError."""
        array = self.array(name, np.float64, *shape)
        if not np.isfinite(array).all():
            raise DataError(f"{self.folder}: {name}: expected finite numbers, found others; {AGAIN}")
        return torch.from_numpy(array.copy())


def write_folder(
    folder: str,
    kind: str,
    description: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    training: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Write the folder atomically.

    Raises:
        DataError: it cannot be written, or the name is taken by something else.
    """
    place = Path(folder).resolve()
    with writing(folder, "field", ", or give another --out"):
        recover(place)
        check_free(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        with whole_folder(place) as new:
            with (new / ARRAYS_FILE).open("wb") as file:
                write_arrays(file, arrays)
            if training is not None:
                with (new / TRAINING_FILE).open("wb") as file:
                    write_arrays(file, training)
            digest = hashlib.sha256(map_file(new / ARRAYS_FILE)).hexdigest()
            head = {"format": FORMAT, "version": VERSION, "kind": kind, "arrays_sha256": digest}
            text = json.dumps({**head, **description}, ensure_ascii=False, indent=1)
            (new / JSON_FILE).write_text(text + "\n", encoding="utf-8", newline="\n")


def check_free(folder: str) -> None:
    """Raise DataError unless `folder` is free, or holds a field and nothing else."""
    place, names = Path(folder), {JSON_FILE, ARRAYS_FILE, TRAINING_FILE}
    if os.path.exists(place) and not (os.path.isfile(place / JSON_FILE) and may_replace(place, names.__contains__)):
        raise DataError(
            f"{folder}: expected a free name or a field of `llrnn mrf train`, found something else; give another --out"
        )


def read_folder(folder: str, kind: str) -> SavedField:
    """Return a field of this kind.

    Raises:
        DataError: the folder is missing, damaged, or of another kind or version.
    """
    path = Path(folder) / JSON_FILE
    try:
        check_regular_file(path, may_be_pipe=False)
        description = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        expected = f"expected a field (a folder with {JSON_FILE}), found none; make one with `llrnn mrf train`"
        raise DataError(f"{folder}: {expected}", folder) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected JSON, found damage ({error}); {AGAIN}") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise DataError(f"{path}: expected the description of a field, found something else; {AGAIN}")
    if description.get("version") != VERSION:
        raise DataError(f"{path}: expected version {VERSION}, found {description.get('version')!r}; {AGAIN}")
    if description.get("kind") != kind:
        other = description.get("kind")
        raise DataError(f"{folder}: expected a field of {kind}, found one of {other!r}; give another folder")
    arrays = _arrays(folder, ARRAYS_FILE, description.get("arrays_sha256"))
    return SavedField(folder, description, arrays)


def read_training(folder: str) -> dict[str, Tensor] | None:
    """Return the state of an unfinished training, or None if training has ended. Raises DataError for a damaged file.
    """
    if not os.path.exists(Path(folder) / TRAINING_FILE):
        return None
    arrays = _arrays(folder, TRAINING_FILE, None)
    if any(array.dtype != np.float64 for array in arrays.values()):
        raise DataError(f"{folder}: {TRAINING_FILE}: expected float64, found other numbers; {AGAIN}")
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


def _arrays(folder: str, name: str, digest: object) -> dict[str, np.ndarray]:
    path = Path(folder) / name
    try:
        check_regular_file(path, may_be_pipe=False)
        raw = map_file(path)
        if digest is not None and hashlib.sha256(raw).hexdigest() != digest:
            raise ValueError("checksum mismatch")
        return read_arrays(path, raw)
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: expected the arrays of a field, found damage ({error}); {AGAIN}") from None
