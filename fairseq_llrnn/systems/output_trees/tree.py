"""A tree whose leaves are classes, in memory and in a file.

With S leaves and I internal nodes, nodes 0 … I − 1 are internal, in breadth-first order, 0 the root; node I + s is the
leaf of class s. The slots of a node are its children in the order of their numbers. An internal node may be empty: then
no leaf is below it.

A file is an .npz of its parents and of what says which classes its leaves are.

    parent    (I + S,) int64
    leaves    (1,) int64: S
    classes   (32,) uint8: a SHA-256, the fingerprint of the prior whose classes they are

The file is untrusted input (files/array_file.py).
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.array_file import map_file, read_arrays, write_arrays
from fairseq_llrnn.files.atomic_write import whole_binary, writing
from fairseq_llrnn.files.reading import check_regular_file

NONE = -1  # the root's parent; no node
DEEPEST = 256  # of a leaf: longer paths are no use, and a file could ask for the memory of S × S


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree that `from_parents` has checked.

    Attributes:
        parent: (I + S,) int64, of every node; NONE for the root.
        leaves: S.
    """

    parent: np.ndarray
    leaves: int

    @classmethod
    def from_parents(cls, parent: np.ndarray, leaves: int) -> Tree:
        """The tree with these parents, (I + S,) whole numbers, of which the last S are those of the leaves.

        Raises:
            DataError: no such tree, or leaves deeper than DEEPEST.
        """
        parent = np.asarray(parent)
        if parent.ndim != 1 or parent.dtype.kind not in "iu" or not 1 <= leaves < len(parent):
            raise DataError(
                f"tree: expected a row of parents, whole numbers, of {leaves:,} leaves and at least one node above "
                f"them, found {parent.dtype} of shape {parent.shape}; use a tree that this package has made"
            )
        parent = parent.astype(np.int64)
        internal = len(parent) - leaves
        above = parent[1:internal]
        is_outside = (parent[1:] < 0) | (parent[1:] >= internal)
        if parent[0] != NONE or is_outside.any():
            wrong = 0 if parent[0] != NONE else 1 + int(np.flatnonzero(is_outside)[0])
            expected = f"{NONE}, for the root" if wrong == 0 else f"a number from 0 to {internal - 1:,}"
            raise DataError(f"tree: parent of node {wrong:,}: expected {expected}, found {parent[wrong]:,}")
        if (above >= np.arange(1, internal)).any() or (np.diff(above) < 0).any():
            raise DataError(
                "tree: expected internal nodes in breadth-first order (each behind its parent, parents ascending), "
                "found others; number them so"
            )
        tree = cls(parent, leaves)
        if tree.levels > DEEPEST:
            raise DataError(
                f"tree: expected leaves at most {DEEPEST} levels below the root, found {tree.levels:,}; "
                "build a tree that is more even"
            )
        return tree

    @property
    def internal(self) -> int:
        """I."""
        return len(self.parent) - self.leaves

    @cached_property
    def child(self) -> np.ndarray:
        """(I + S − 1,) all nodes but the root; those of node n, in the order of slots, are first[n] … first[n + 1]."""
        return 1 + np.argsort(self.parent[1:], kind="stable")

    @cached_property
    def first(self) -> np.ndarray:
        """(I + 1,) where a node's children begin in `child`."""
        return np.concatenate([[0], np.cumsum(self.children)])

    @cached_property
    def children(self) -> np.ndarray:
        """(I,) number of children of an internal node; 0: it is empty."""
        return np.bincount(self.parent[1:], minlength=self.internal)

    @property
    def arity(self) -> int:
        """The most children of a node."""
        return int(self.children.max())

    @cached_property
    def place(self) -> np.ndarray:
        """(I + S,) slot of a node among its siblings; 0 for the root."""
        place = np.zeros_like(self.parent)
        place[self.child] = np.arange(len(self.child)) - self.first[self.parent[self.child]]
        return place

    @cached_property
    def depth(self) -> np.ndarray:
        """(I + S,) number of choices from the root to a node."""
        depth = np.zeros_like(self.parent)
        begin, end, level = 0, 1, 0
        above = self.parent[1 : self.internal]
        while begin < end:
            depth[begin:end] = level
            begin, end, level = end, 1 + int(np.searchsorted(above, end)), level + 1
        depth[self.internal :] = 1 + depth[self.parent[self.internal :]]
        return depth

    @cached_property
    def levels(self) -> int:
        """D: the depth of the deepest leaf."""
        return int(self.depth[self.internal :].max())

    @cached_property
    def path(self) -> np.ndarray:
        """(S, D) internal nodes from the root to a leaf, which is not among them; behind the last one NONE."""
        path = np.full((self.leaves, self.levels), NONE)
        node, depth = self.parent[self.internal :], self.depth[self.internal :] - 1
        left = np.arange(self.leaves)
        while len(left):
            path[left, depth] = node
            node, depth = self.parent[node], depth - 1
            goes_on = depth >= 0
            left, node, depth = left[goes_on], node[goes_on], depth[goes_on]
        return path

    @cached_property
    def chosen(self) -> np.ndarray:
        """(S, D) child of path[s, d] that is chosen on the way to the leaf s; behind the leaf NONE."""
        chosen = np.full_like(self.path, NONE)
        chosen[:, :-1] = self.path[:, 1:]
        chosen[np.arange(self.leaves), self.depth[self.internal :] - 1] = self.internal + np.arange(self.leaves)
        return chosen

    @cached_property
    def below(self) -> np.ndarray:
        """(I + S,) number of leaves in and below a node."""
        below = np.zeros_like(self.parent)
        below[self.internal :] = 1
        for nodes in reversed(self.by_depth[1:]):
            np.add.at(below, self.parent[nodes], below[nodes])
        return below

    @cached_property
    def span(self) -> np.ndarray:
        """(I + S, 2) begin and end of the leaves in and below a node, as places in `order`."""
        counts = self.below[self.child]
        before = np.concatenate([[0], np.cumsum(counts)])
        begin = np.zeros_like(self.parent)
        begin[self.child] = before[:-1] - before[self.first[self.parent[self.child]]]  # among siblings
        for nodes in self.by_depth[1:]:
            begin[nodes] += begin[self.parent[nodes]]
        return np.stack([begin, begin + self.below], axis=1)

    @cached_property
    def order(self) -> np.ndarray:
        """(S,) classes, so that those below any node follow each other."""
        order = np.empty(self.leaves, dtype=np.int64)
        order[self.span[self.internal :, 0]] = np.arange(self.leaves)
        return order

    @cached_property
    def by_depth(self) -> list[np.ndarray]:
        """For every depth, from the root's on, the nodes that are that deep."""
        order = np.argsort(self.depth, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.depth))[:-1])


def numbered(parent: np.ndarray, leaves: int) -> tuple[Tree, np.ndarray]:
    """The tree of parents whose internal nodes, but for the root, have any order; siblings keep theirs.

    Returns:
        the tree, and (I,) which of the given nodes its internal nodes are.

    Raises:
        DataError: as of `Tree.from_parents`; nodes that are not below the root.
    """
    internal = len(parent) - leaves
    above = np.asarray(parent)[1:internal]
    slots = 1 + np.argsort(above, kind="stable")
    begin = np.searchsorted(above[slots - 1], np.arange(internal + 1))
    level, levels = np.zeros(1, dtype=np.int64), []
    while len(level):
        levels.append(level)
        if sum(map(len, levels)) > internal:
            break
        counts = begin[level + 1] - begin[level]
        offsets = np.repeat(begin[level] - (np.cumsum(counts) - counts), counts)
        level = slots[offsets + np.arange(counts.sum())] if len(slots) else level[:0]
    origin = np.concatenate(levels)
    if len(origin) != internal:
        raise DataError(f"tree: expected {internal:,} internal nodes below its root, found {len(origin):,}")
    number = np.empty(internal, dtype=np.int64)
    number[origin] = np.arange(internal)
    new = np.asarray(parent).copy()
    new[1:] = number[new[1:]]
    new[:internal] = np.concatenate([[NONE], new[1:internal][origin[1:] - 1]])
    return Tree.from_parents(new, leaves), origin


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
    check_regular_file(path, may_be_pipe=False)
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
