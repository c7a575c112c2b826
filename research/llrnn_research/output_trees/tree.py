"""A tree whose leaves are classes, in memory and in a file.

With S leaves and I internal nodes, nodes 0 … I − 1 are internal, in breadth-first order, and 0 is the root. Node I + s
is the leaf of class s. The slots of a node are its children in the order of their numbers. An internal node without
leaves below it is empty.

A tree file is an .npz with

    parent    (I + S,) int64
    leaves    (1,) int64: S
    classes   (32,) uint8: a SHA-256, the fingerprint of the prior that the classes belong to

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

NONE = -1  # the root's parent, or no node
DEEPEST = 256  # maximal depth of a leaf, which limits the memory that a file can demand


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree, checked by `from_parents`.

    Attributes:
        parent: (I + S,) int64, of every node (NONE for the root).
        leaves: S.
    """

    parent: np.ndarray
    leaves: int

    @classmethod
    def from_parents(cls, parent: np.ndarray, leaves: int) -> Tree:
        """Return the tree with these parents, (I + S,) integers, the leaves' last.

        Raises:
            DataError: invalid parents, or leaves deeper than DEEPEST.
        """
        parent = np.asarray(parent)
        if parent.ndim != 1 or parent.dtype.kind not in "iu" or not 1 <= leaves < len(parent):
            raise DataError(
                f"tree: expected an integer vector of the parents of {leaves:,} leaves and at least one internal node, "
                f"found {parent.dtype} of shape {parent.shape}; use a tree made by this package"
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
                "tree: expected internal nodes in breadth-first order (each after its parent, parents ascending), "
                "found another order; renumber them"
            )
        tree = cls(parent, leaves)
        if tree.levels > DEEPEST:
            raise DataError(
                f"tree: expected leaves at most {DEEPEST} levels below the root, found {tree.levels:,}; "
                "build a more balanced tree"
            )
        return tree

    @property
    def internal(self) -> int:
        """Return I."""
        return len(self.parent) - self.leaves

    @cached_property
    def child(self) -> np.ndarray:
        """Return all nodes but the root, (I + S − 1,); first[n] … first[n + 1] are the children of n, by slot."""
        return 1 + np.argsort(self.parent[1:], kind="stable")

    @cached_property
    def first(self) -> np.ndarray:
        """Return the index in `child` at which a node's children begin, (I + 1,)."""
        return np.concatenate([[0], np.cumsum(self.children)])

    @cached_property
    def children(self) -> np.ndarray:
        """Return the number of children of each internal node, (I,), 0 for an empty one."""
        return np.bincount(self.parent[1:], minlength=self.internal)

    @property
    def arity(self) -> int:
        """Return the maximal number of children."""
        return int(self.children.max())

    @cached_property
    def place(self) -> np.ndarray:
        """Return the slot of a node among its siblings, (I + S,), 0 for the root."""
        place = np.zeros_like(self.parent)
        place[self.child] = np.arange(len(self.child)) - self.first[self.parent[self.child]]
        return place

    @cached_property
    def depth(self) -> np.ndarray:
        """Return the number of choices from the root to a node, (I + S,)."""
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
        """Return D, the depth of the deepest leaf."""
        return int(self.depth[self.internal :].max())

    @cached_property
    def path(self) -> np.ndarray:
        """Return the internal nodes from the root to each leaf, (S, D), padded with NONE."""
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
        """Return the child chosen at path[s, d] on the way to the leaf s, (S, D), padded with NONE."""
        chosen = np.full_like(self.path, NONE)
        chosen[:, :-1] = self.path[:, 1:]
        chosen[np.arange(self.leaves), self.depth[self.internal :] - 1] = self.internal + np.arange(self.leaves)
        return chosen

    @cached_property
    def below(self) -> np.ndarray:
        """Return the number of leaves in and below a node, (I + S,)."""
        below = np.zeros_like(self.parent)
        below[self.internal :] = 1
        for nodes in reversed(self.by_depth[1:]):
            np.add.at(below, self.parent[nodes], below[nodes])
        return below

    @cached_property
    def span(self) -> np.ndarray:
        """Return begin and end of the leaves in and below a node, as indices in `order`, (I + S, 2)."""
        counts = self.below[self.child]
        before = np.concatenate([[0], np.cumsum(counts)])
        begin = np.zeros_like(self.parent)
        begin[self.child] = before[:-1] - before[self.first[self.parent[self.child]]]  # among siblings
        for nodes in self.by_depth[1:]:
            begin[nodes] += begin[self.parent[nodes]]
        return np.stack([begin, begin + self.below], axis=1)

    @cached_property
    def order(self) -> np.ndarray:
        """Return classes in an order in which those below any node are contiguous, (S,)."""
        order = np.empty(self.leaves, dtype=np.int64)
        order[self.span[self.internal :, 0]] = np.arange(self.leaves)
        return order

    @cached_property
    def by_depth(self) -> list[np.ndarray]:
        """Return the nodes of each depth, from the root on."""
        order = np.argsort(self.depth, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.depth))[:-1])


def numbered(parent: np.ndarray, leaves: int) -> tuple[Tree, np.ndarray]:
    """Return the tree of parents whose internal nodes, except for the root, are in any order.

    Siblings keep their order.

    Returns:
        the tree, and the given number of each of its internal nodes, (I,).

    Raises:
        DataError: as in `Tree.from_parents`, or nodes that are not below the root.
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
    """Write a tree file atomically.

    Args:
        classes: fingerprint of the prior, 64 hexadecimal digits.

    Raises:
        DataError: the file cannot be written.
    """
    arrays = {
        "parent": tree.parent,
        "leaves": np.array([tree.leaves]),
        "classes": np.frombuffer(bytes.fromhex(classes), np.uint8),
    }
    with writing(path, "tree"), whole_binary(Path(path)) as file:
        write_arrays(file, arrays)


def load_tree(path: Path | str, classes: str | None, leaves: int | None = None) -> Tree:
    """Return the tree of a file.

    Args:
        classes: fingerprint of the prior to be used (None: any).
        leaves: number of that prior's classes.

    Raises:
        DataError: the file is missing or damaged, or is for the classes of another prior.
    """
    check_regular_file(path, may_be_pipe=False)
    try:
        arrays = read_arrays(Path(path), map_file(Path(path)))
        parent, size, fingerprint = (_array(arrays, name) for name in _KINDS)
    except (ValueError, TypeError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        reason = f"no array {error}" if isinstance(error, KeyError) else str(error)
        raise DataError(f"{path}: expected a tree file, found {reason}; give one of `save_tree`") from None
    if len(size) != 1 or len(fingerprint) != _BYTES:
        raise DataError(f"{path}: expected a tree file, found other arrays; give one of `save_tree`")
    if classes is not None and (fingerprint.tobytes().hex() != classes or leaves not in (None, int(size[0]))):
        raise DataError(
            f"{path}: expected a tree over the classes of this prior (fingerprint {classes[:12]}…), found one for "
            f"another prior ({fingerprint.tobytes().hex()[:12]}…); rebuild the tree, or give the prior that it was "
            "made for"
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
