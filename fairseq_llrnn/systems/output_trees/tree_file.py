"""A tree in one file: an .npz of its parents and of what says which classes its leaves are.

    parent    (I + S,) int64
    leaves    (1,) int64: S
    classes   (32,) uint8: a SHA-256, the fingerprint of the prior whose classes they are

The file is untrusted input (files/array_file.py).
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.array_file import map_file, read_arrays, write_arrays
from fairseq_llrnn.files.atomic_write import whole_binary, writing
from fairseq_llrnn.files.reading import refuse_special
from fairseq_llrnn.systems.output_trees.tree import Tree

_BYTES = 32
_KINDS = {"parent": np.int64, "leaves": np.int64, "classes": np.uint8}


def save_tree(path: Path | str, tree: Tree, classes: str) -> None:
    """Write the file, whole or not at all.

    Args:
        classes: fingerprint of the prior, 64 hexadecimal digits.

    Raises:
        DataError: it cannot be written.
    """
    arrays = {
        "parent": tree.parent,
        "leaves": np.array([tree.leaves]),
        "classes": np.frombuffer(bytes.fromhex(classes), np.uint8),
    }
    with writing(path, "tree"), whole_binary(Path(path)) as file:
        write_arrays(file, arrays)


def load_tree(path: Path | str, classes: str | None, leaves: int | None = None) -> Tree:
    """The tree of a file.

    Args:
        classes: fingerprint of the prior beside which it is to be used; None: of any.
        leaves: number of that prior's classes.

    Raises:
        DataError: no such file, a damaged one, a tree over the classes of another prior.
    """
    refuse_special(path, may_be_pipe=False)
    try:
        arrays = read_arrays(Path(path), map_file(Path(path)))
        parent, size, fingerprint = (_array(arrays, name) for name in _KINDS)
    except (ValueError, TypeError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        reason = f"nothing called {error}" if isinstance(error, KeyError) else str(error)
        raise DataError(f"{path}: expected a tree, found {reason}; give a file that a tree was saved to") from None
    if len(size) != 1 or len(fingerprint) != _BYTES:
        raise DataError(f"{path}: expected a tree, found other arrays; give a file that a tree was saved to")
    if classes is not None and (fingerprint.tobytes().hex() != classes or leaves not in (None, int(size[0]))):
        raise DataError(
            f"{path}: expected a tree over the classes of this prior (fingerprint {classes[:12]}…), found "
            f"one over those of another ({fingerprint.tobytes().hex()[:12]}…); build the tree anew, or give the prior "
            "that it was made for"
        )
    try:
        return Tree.from_parents(parent.copy(), int(size[0]))
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _array(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    array = arrays[name]
    if array.dtype != _KINDS[name] or array.ndim != 1:
        raise ValueError(f"{name} of {array.dtype} and the shape {array.shape}")
    return array
