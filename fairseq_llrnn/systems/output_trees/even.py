"""The tree that cuts a row of classes into equal parts, those again, until parts are small enough."""

from __future__ import annotations

import numpy as np

from fairseq_llrnn.systems.output_trees.limits import check_arity
from fairseq_llrnn.systems.output_trees.tree import NONE, Tree


def cut_evenly(order: np.ndarray, arity: int) -> Tree:
    """A node of more than `arity` classes has `arity` children, whose sizes differ by at most one.

    The leaves of a node follow each other in `order`; the tree is as flat as its arity allows.

    Args:
        order: (S,) all classes.

    Raises:
        OptionError: an arity below 2.
    """
    check_arity(arity)
    leaf_parent = np.empty(len(order), dtype=np.int64)
    parents = [np.array([NONE])]
    numbers, begins, sizes = np.zeros(1, int), np.zeros(1, int), np.array([len(order)])
    made = 1
    while len(numbers):
        is_last = sizes <= arity
        _hang(leaf_parent, order, numbers[is_last], begins[is_last], sizes[is_last])
        numbers, begins, sizes = numbers[~is_last], begins[~is_last], sizes[~is_last]
        slots = np.arange(arity)
        parts = sizes[:, None] // arity + (slots < sizes[:, None] % arity)  # (nodes, M)
        ends = begins[:, None] + parts.cumsum(1)
        above, begins, sizes = np.repeat(numbers, arity), (ends - parts).ravel(), parts.ravel()
        single = sizes == 1  # a leaf needs no node of its own
        leaf_parent[order[begins[single]]] = above[single]
        above, begins, sizes = above[~single], begins[~single], sizes[~single]
        numbers = made + np.arange(len(above))
        made += len(above)
        parents.append(above)
    return Tree.from_parents(np.concatenate([*parents, leaf_parent]), len(order))


def _hang(leaf_parent: np.ndarray, order: np.ndarray, nodes: np.ndarray, begins: np.ndarray, sizes: np.ndarray) -> None:
    """All classes of these nodes become their children."""
    offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    leaf_parent[order[np.repeat(begins, sizes) + offsets]] = np.repeat(nodes, sizes)
