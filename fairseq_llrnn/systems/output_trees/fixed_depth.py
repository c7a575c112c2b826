"""Learned trees of a given depth: all addresses exist, and classes change theirs (Jernite 2018, Algorithm 3.3).

A complete tree of arity M and depth D has M^d nodes at depth d < D; child j of node n is node n M + 1 + j. Leaves are D
levels below the root, at most M to a node of the last level, in no order. What belongs to a node (its row in a layer)
stays with its address.
"""

from __future__ import annotations

import numpy as np

from fairseq_llrnn.systems.output_trees.limits import check_room
from fairseq_llrnn.systems.output_trees.matching import matched
from fairseq_llrnn.systems.output_trees.preferences import preferences
from fairseq_llrnn.systems.output_trees.tree import NONE, Tree


def complete_tree(order: np.ndarray, arity: int, depth: int) -> Tree:
    """Classes spread evenly over all nodes of the last level, so that neighbours in `order` (S,) are near.

    Raises:
        OptionError: an arity below 2, a depth without room.
    """
    check_room(len(order), arity, depth)
    last = arity ** (depth - 1)
    node = np.empty(len(order), dtype=np.int64)
    node[order] = np.arange(len(order)) * last // len(order)
    return _tree(node, arity, depth)


def reassigned(tree: Tree, arity: int, depth: int, sums: np.ndarray, counts: np.ndarray) -> Tree:
    """The tree in which each class has the child that its statistics prefer, from the root down.

    Args:
        tree: a complete one.
        sums: (S, D − 1, M) of the probabilities of the children of its nodes, over the examples of a class.
        counts: (S, D − 1) number of these examples.
    """
    classes = np.arange(tree.leaves)
    node = np.zeros(tree.leaves, dtype=np.int64)  # from 0 on at every level
    begin, number = 0, 1
    for level in range(depth - 1):
        stays = tree.path[:, level] == begin + node
        seen = np.where(stays, counts[:, level], 0)
        place = np.where(stays, tree.place[tree.chosen[classes, level]], NONE)
        weights = preferences(np.where(stays[:, None], sums[:, level], 0), seen, place, node, number)
        room = np.full((number, arity), arity ** (depth - 1 - level))
        node = node * arity + matched(weights, node, room)
        begin, number = begin + number, number * arity
    return _tree(node, arity, depth)


def _tree(node: np.ndarray, arity: int, depth: int) -> Tree:
    """Args: node: (S,) of the last level, from 0 on."""
    internal = (arity**depth - 1) // (arity - 1)
    above = (np.arange(internal) - 1) // arity
    above[0] = NONE
    return Tree.from_parents(np.concatenate([above, internal - arity ** (depth - 1) + node]), len(node))
