"""Reassign all classes of a learned tree by the statistics of its layer (Jernite 2018, §3.3).

Sizes: S classes, M children of a node, O nodes (owners) that are processed together, n rows: one per class, at one
node.

J_n measures how well node n separates classes, and its derivative gives the preferred child of a class. In these
formulas, q_i is the share of class i among the examples that reach n, p_j|i is their mean probability of child j, and
p_j = Σ_i q_i p_j|i:

    J_n  =  2/M Σ_i q_i Σ_j |p_j − p_j|i|                                             (3.10)
    ∂J_n / ∂ log p_j|i  =  2/M q_i (1 − q_i) p_j|i sign(p_j|i − p_j)                  (3.13)

0 ≤ J_n ≤ 4/M (1 − 1/M). A node reaches the upper bound only if it sends each class to one child, and as many examples
to each child (Lemmas 3.2 and 3.3). (3.13) is the derivative of the i-th term. The thesis omits the effect of log p_j|i
on the other terms through p_j, −2/M q_i p_j|i Σ_{i' ≠ i} q_i' sign(p_j|i' − p_j).

`preferences` gives one weight to each pair of a class and a child, so that one matching assigns all classes. In
descending order of weight:

1. a class observed at the node has the weights (3.13), or others with the same signs;
2. a class not observed, but below this node before, prefers its previous child;
3. other classes are distributed in turn.

The thesis initialises counts to one, with equal probabilities for all children, so classes of the second and third kind
take the least chosen child. Our nodes have masses before training, so equal probabilities would be evidence about a
class without observations.

In a tree of a given depth (Algorithm 3.3, `reassigned`), all addresses exist, and classes change theirs. A complete
tree of arity M and depth D has M^d nodes at depth d < D, and child j of node n is node n M + 1 + j. Leaves are D levels
below the root, at most M per node of the last level, in no order. A node's row in a layer stays with its address.

In a tree of any depth (Algorithm 3.2, `rebuilt`), a node with L classes, L ≡ 1 modulo M − 1, gives each of its M
children at least one class, and again a number ≡ 1: one class is a leaf, more are a node. So all trees over S classes
have the same number of nodes. If S is not ≡ 1, a few hidden leaves are added, and a node or two have fewer children.

Only groups limit the classes of a child there, so classes rank children by log ratios. With (3.13) the heaviest child
would get nearly all classes at every level, and trees would become deep.

`take_groups` limits the sizes. With L = M + t (M − 1), the first class of a child is free, and each further M − 1
classes take one of t *groups*. Every child has room while a group is left. After that, only empty children and children
whose last group is not full have room. (CheckFull, as printed, closes a child before its last group is full, so that
some labels find no place.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from llrnn_research.output_trees.builders import check_room, matched
from llrnn_research.output_trees.tree import NONE, Tree

ROUNDING = 1e-6  # relative rounding error of p_j|i, a mean of float32 probabilities
LARGEST_RATIO = 4.0  # keeps weights between −1 and 1


def choice_weights(counts: np.ndarray, means: np.ndarray, owner: np.ndarray, owners: int) -> np.ndarray:
    """Return the derivatives (3.13), (n, M).

    Args:
        counts: (n,) examples of a class that reached its owner.
        means: (n, M) p_j|i.
        owner: (n,).
        owners: O.
    """
    share, mean = _shares(counts, means, owner, owners)
    scale = 2 / means.shape[1] * share * (1 - share)
    apart = means - mean[owner]
    apart[np.abs(apart) <= ROUNDING * mean[owner]] = 0
    return scale[:, None] * means * np.sign(apart)


def log_ratio_weights(counts: np.ndarray, means: np.ndarray, owner: np.ndarray, owners: int) -> np.ndarray:
    """Return 2/M q_i (1 − q_i) log(p_j|i / p_j), (n, M), clipped at ±LARGEST_RATIO. Arguments as for `choice_weights`.

    The derivative in p_j|i itself, 2/M q_i (1 − q_i) sign(p_j|i − p_j), is equal for all children that a class prefers.
    These weights have the same signs, and rank preferred children by the strength of the preference. (3.13) ranks them
    by p_j|i instead, which is largest for the child with the largest mass.
    """
    share, mean = _shares(counts, means, owner, owners)
    scale = 2 / means.shape[1] * share * (1 - share)
    floor = np.finfo(np.float32).tiny
    ratio = np.log(np.maximum(means, floor)) - np.log(np.maximum(mean, floor))[owner]
    ratio[np.abs(ratio) <= ROUNDING] = 0
    return scale[:, None] * ratio.clip(-LARGEST_RATIO, LARGEST_RATIO)


def _shares(counts: np.ndarray, means: np.ndarray, owner: np.ndarray, owners: int) -> tuple[np.ndarray, np.ndarray]:
    """Return q_i, (n,), and p_j, (O, M)."""
    share = counts / np.maximum(np.bincount(owner, counts, owners), 1)[owner]
    order = np.argsort(owner, kind="stable")
    begin = np.flatnonzero(np.diff(owner[order], prepend=-1))
    mean = np.zeros((owners, means.shape[1]))
    if len(order):
        mean[owner[order[begin]]] = np.add.reduceat(share[order, None] * means[order], begin)
    return share, mean


KEEP, DEAL = -2.0, -3.0  # below all weights of the first kind, which are from −1 to 1


Weigh = Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]


def preferences(
    sums: np.ndarray,
    counts: np.ndarray,
    place: np.ndarray,
    owner: np.ndarray,
    owners: int,
    weigh: Weigh = choice_weights,
) -> np.ndarray:
    """Return weights, (n, M), above DEAL − 1 and at most 1.

    Args:
        sums: (n, M) summed probabilities of the owner's children, over the examples of a class.
        counts: (n,) number of these examples.
        place: (n,) the previous child of a class, or −1 if it was not below its owner.
        owner: (n,) node of a class, from 0 to O − 1.
        owners: O.
        weigh: returns the weights of the first kind.
    """
    means = sums / np.maximum(counts, 1)[:, None]
    weights = weigh(counts, means, owner, owners)
    unknown = np.flatnonzero((weights == 0).all(1))  # includes classes without rivals, which keep their place
    weights[unknown] = DEAL - _in_turn(owner[unknown], sums.shape[1])
    staying = unknown[place[unknown] >= 0]
    weights[staying, place[staying]] = KEEP
    return weights


def _in_turn(owner: np.ndarray, children: int) -> np.ndarray:
    """Return (n, M) from 0 to below 1: an owner's k-th class prefers child k modulo M, then the following children."""
    return (np.arange(children) - rank_among_equal(owner)[:, None]) % children / children


def rank_among_equal(keys: np.ndarray) -> np.ndarray:
    """Return the number of equal keys (integers from 0 on) before each key, (n,)."""
    order = np.argsort(keys, kind="stable")
    begin = np.flatnonzero(np.diff(keys[order], prepend=-1))
    rank = np.empty(len(keys), dtype=np.int64)
    rank[order] = np.arange(len(keys)) - np.repeat(begin, np.diff(begin, append=len(keys)))
    return rank


def complete_tree(order: np.ndarray, arity: int, depth: int) -> Tree:
    """Return a complete tree with classes spread evenly over the last level, in the order of `order`, (S,).

    Raises:
        OptionError: an arity below 2, a depth without room.
    """
    check_room(len(order), arity, depth)
    last = arity ** (depth - 1)
    node = np.empty(len(order), dtype=np.int64)
    node[order] = np.arange(len(order)) * last // len(order)
    return _tree(node, arity, depth)


def reassigned(tree: Tree, arity: int, depth: int, sums: np.ndarray, counts: np.ndarray) -> Tree:
    """Return the tree in which each class has the child that its statistics prefer, from the root down.

    Args:
        tree: a complete tree.
        sums: (S, D − 1, M) summed probabilities of the children of its nodes, over the examples of a class.
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
    """Return the complete tree with these nodes of the last level, (S,) from 0 on, as the leaves' parents."""
    internal = (arity**depth - 1) // (arity - 1)
    above = (np.arange(internal) - 1) // arity
    above[0] = NONE
    return Tree.from_parents(np.concatenate([above, internal - arity ** (depth - 1) + node]), len(node))


EVEN_BELOW = 128  # deeper nodes split their classes evenly, which limits the depth of leaves


@dataclass(frozen=True)
class Rebuilt:
    """A new tree, and the mapping from the old one.

    Attributes:
        tree: with as many nodes as the old one.
        origin: (I,) old number of each node (NONE: it is new).
        column: (I, M) for an old node, the old place of the child at each place (NONE: no child).
    """

    tree: Tree
    origin: np.ndarray
    column: np.ndarray


def rebuilt(tree: Tree, arity: int, sums: np.ndarray, counts: np.ndarray, begin: np.ndarray) -> Rebuilt:
    """Return the tree in which each class has the child that its statistics prefer, from the root down.

    Args:
        sums: (R, M) summed probabilities of the children of nodes on a class's path, over its examples. Rows begin[s] …
            begin[s + 1] belong to class s, from the root on.
        counts: (R,) number of these examples.
        begin: (S + 1,).
    """
    size = tree.leaves
    steps = max(1, -(-(size - 1) // (arity - 1)))
    label = np.arange(1 + steps * (arity - 1))  # hidden from S on
    leaf_parent = np.full(len(label), NONE)
    owner = np.zeros(len(label), dtype=np.int64)
    parents, origins, taken = [np.array([NONE])], [np.zeros(1, dtype=np.int64)], []
    begin_level, level = 0, 0
    while len(label):
        old = origins[-1]
        seen, visits, place = np.zeros((len(label), arity)), np.zeros(len(label)), np.full(len(label), NONE)
        if level < min(tree.levels, EVEN_BELOW):
            real_labels = np.flatnonzero(label < size)
            before = tree.path[label[real_labels], level]
            real_labels = real_labels[(before == old[owner[real_labels]]) & (before != NONE)]
            rows = begin[label[real_labels]] + level
            seen[real_labels], visits[real_labels] = sums[rows], counts[rows]
            place[real_labels] = tree.place[tree.chosen[label[real_labels], level]]
        weights = preferences(seen, visits, place, owner, len(old), log_ratio_weights)
        weights[label >= size] -= 2  # hidden labels come last
        slot = take_groups(weights, owner, (np.bincount(owner, minlength=len(old)) - arity) // (arity - 1))
        real = np.flatnonzero(label < size)
        taken.append((label[real], slot[real]))

        child = owner * arity + slot
        sizes = np.bincount(child, minlength=len(old) * arity)
        is_leaf = sizes[child] == 1
        leaf_parent[label[is_leaf]] = begin_level + owner[is_leaf]
        inner = np.flatnonzero(sizes > 1)
        number = np.zeros(len(sizes), dtype=np.int64)
        number[inner] = np.arange(len(inner))
        parents.append(begin_level + inner // arity)
        origins.append(_children(tree, old[inner // arity], inner % arity))
        label, owner = label[~is_leaf], number[child[~is_leaf]]
        begin_level, level = begin_level + len(old), level + 1
    new = Tree.from_parents(np.concatenate([*parents, leaf_parent[:size]]), size)
    column = np.full((new.internal, arity), NONE)
    for depth, (classes, slots) in enumerate(taken):
        column[new.path[classes, depth], new.place[new.chosen[classes, depth]]] = slots
    return Rebuilt(new, np.concatenate(origins), column)


def take_groups(weights: np.ndarray, owner: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the child of each class, (n,): the heaviest pair first, among children with room.

    Args:
        weights: (n, M).
        owner: (n,) from 0 to O − 1, in any order.
        groups: (O,) t. An owner has M + t (M − 1) classes.
    """
    arity = weights.shape[1]
    taken = weights.argmax(1)
    best = weights[np.arange(len(weights)), taken]
    order = np.lexsort((-best, owner))  # stable: the first among ties
    child = owner[order] * arity + taken[order]
    opens = rank_among_equal(child)
    opens = (opens > 0) & ((opens - 1) % (arity - 1) == 0)
    before = np.cumsum(opens) - opens  # groups taken before a class takes its child
    first = np.searchsorted(owner[order], np.arange(len(groups)))
    is_last = before - before[np.minimum(first, len(order) - 1)][owner[order]] >= groups[owner[order]]
    settled, rest = order[~is_last], np.sort(order[is_last])
    sizes = np.bincount(owner[settled] * arity + taken[settled], minlength=len(groups) * arity)
    room = np.where(sizes == 0, 1, (1 - sizes) % (arity - 1)).reshape(-1, arity)
    taken[rest] = matched(weights[rest], owner[rest], room)
    return taken


def _children(tree: Tree, nodes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the internal nodes at the given places of nodes of the old tree (NONE if there is none)."""
    existing = np.flatnonzero((nodes != NONE) & (places < tree.children[nodes]))
    children = np.full(len(nodes), NONE)
    children[existing] = tree.child[tree.first[nodes[existing]] + places[existing]]
    return np.where(children < tree.internal, children, NONE)
