"""All classes of a learned tree are assigned anew, by what its layer said of them (Jernite 2018, §3.3).

Sizes: S classes, M children of a node, O nodes (owners) that are worked on at once, n rows: one for each class, at
one node.

J_n says how well node n tells classes apart, and its derivative which child a class is to have. In these formulas,
q_i is the share of class i among the examples that reach n, p_j|i the mean probability that they give to child j, and
p_j = Σ_i q_i p_j|i:

    J_n  =  2/M Σ_i q_i Σ_j |p_j − p_j|i|                                             (3.10)
    ∂J_n / ∂ log p_j|i  =  2/M q_i (1 − q_i) p_j|i sign(p_j|i − p_j)                  (3.13)

0 ≤ J_n ≤ 4/M (1 − 1/M), and the upper bound is reached only by a node that sends each class to one child, and as many
examples to each child (Lemmas 3.2 and 3.3). (3.13) is the derivative of the i-th term. Through p_j, log p_j|i moves the
others, too, by −2/M q_i p_j|i Σ_{i' ≠ i} q_i' sign(p_j|i' − p_j); the thesis leaves that out.

`preferences` have one weight for each pair of a class and a child, so that one matching decides all. In this order,

1. a class that has been seen at the node has the weights of its choices, (3.13) or of the same signs;
2. one that has not, but was below this node before, prefers the child that it had;
3. all others are dealt out in turn.

The thesis starts its counts at one, with equal probabilities for all children, so that its classes of the second and
third kind take the child that is chosen least. Our nodes know masses before they are trained, so equal probabilities
would say something of a class that nothing is known of.

In a tree of a given depth (Algorithm 3.3, `reassigned`), all addresses exist, and classes change theirs. A complete
tree of arity M and depth D has M^d nodes at depth d < D; child j of node n is node n M + 1 + j. Leaves are D levels
below the root, at most M to a node of the last level, in no order. What belongs to a node (its row in a layer) stays
with its address.

In a tree of any depth (Algorithm 3.2, `rebuilt`), a node with L classes, L ≡ 1 modulo M − 1, gives each of its M
children at least one, and again numbers that are ≡ 1: one class is a leaf, more are a node. So a tree over S classes
always has the same number of nodes. Where S is not ≡ 1, there are a few leaves more that nobody sees, and a node or
two have fewer children.

Nothing but its groups keeps classes from a child, so they rank children by log ratios: by (3.13) the heaviest child
gets nearly all of them, at every level, and trees become deep.

`take_groups` says which sizes are possible. With L = M + t (M − 1), a child's first class is free, and each M − 1
classes more take one of t *groups*. As long as a group is left, every child has room; then only those have that are
empty, or whose last group is not full. (CheckFull, as printed, closes a child before its last group is full; then
some labels find no place.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.systems.output_trees.builders import check_room, matched
from fairseq_llrnn.systems.output_trees.tree import NONE, Tree

ROUNDING = 1e-6  # nearer to p_j a p_j|i, a mean of probabilities in float32, has no sign
LARGEST_RATIO = 4.0  # so that weights are from −1 to 1


def choice_weights(counts: np.ndarray, means: np.ndarray, owner: np.ndarray, owners: int) -> np.ndarray:
    """(n, M) the derivatives (3.13).

    Args:
        counts: (n,) examples of a class that reached its owner. means: (n, M) p_j|i. owner: (n,). owners: O.
    """
    share, mean = _shares(counts, means, owner, owners)
    scale = 2 / means.shape[1] * share * (1 - share)
    apart = means - mean[owner]
    apart[np.abs(apart) <= ROUNDING * mean[owner]] = 0
    return scale[:, None] * means * np.sign(apart)


def log_ratio_weights(counts: np.ndarray, means: np.ndarray, owner: np.ndarray, owners: int) -> np.ndarray:
    """(n, M) 2/M q_i (1 − q_i) log(p_j|i / p_j), cut off at ±LARGEST_RATIO; arguments as of `choice_weights`.

    The derivative in p_j|i itself, 2/M q_i (1 − q_i) sign(p_j|i − p_j), is the same for all children that a class
    prefers. These weights have its signs, and rank such children by how much they are preferred, and not, as (3.13), by
    p_j|i, which is largest for the child with the greatest mass.
    """
    share, mean = _shares(counts, means, owner, owners)
    scale = 2 / means.shape[1] * share * (1 - share)
    floor = np.finfo(np.float32).tiny
    ratio = np.log(np.maximum(means, floor)) - np.log(np.maximum(mean, floor))[owner]
    ratio[np.abs(ratio) <= ROUNDING] = 0
    return scale[:, None] * ratio.clip(-LARGEST_RATIO, LARGEST_RATIO)


def _shares(counts: np.ndarray, means: np.ndarray, owner: np.ndarray, owners: int) -> tuple[np.ndarray, np.ndarray]:
    """q_i (n,) and p_j (O, M)."""
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
    """(n, M) weights, from more than DEAL − 1 to 1.

    Args:
        sums: (n, M) of the probabilities of the owner's children, over the examples of a class.
        counts: (n,) number of these examples.
        place: (n,) the child that a class had, or −1, if it was not below its owner.
        owner: (n,) node of a class, from 0 to O − 1. owners: O.
        weigh: what gives the weights of the first kind.
    """
    means = sums / np.maximum(counts, 1)[:, None]
    weights = weigh(counts, means, owner, owners)
    unknown = np.flatnonzero((weights == 0).all(1))  # a class without rivals, too, keeps its place
    weights[unknown] = DEAL - _in_turn(owner[unknown], sums.shape[1])
    kept = unknown[place[unknown] >= 0]
    weights[kept, place[kept]] = KEEP
    return weights


def _in_turn(owner: np.ndarray, children: int) -> np.ndarray:
    """(n, M) from 0 to less than 1: the k-th class of an owner prefers child k modulo M, then those behind it."""
    return (np.arange(children) - rank_among_equal(owner)[:, None]) % children / children


def rank_among_equal(keys: np.ndarray) -> np.ndarray:
    """(n,) how many equal keys, whole numbers from 0 on, are before one."""
    order = np.argsort(keys, kind="stable")
    begin = np.flatnonzero(np.diff(keys[order], prepend=-1))
    rank = np.empty(len(keys), dtype=np.int64)
    rank[order] = np.arange(len(keys)) - np.repeat(begin, np.diff(begin, append=len(keys)))
    return rank


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


EVEN_BELOW = 128  # deeper nodes divide their classes evenly, whatever they prefer, lest leaves be too deep


@dataclass(frozen=True)
class Rebuilt:
    """A new tree, and what of the old one is in it.

    Attributes:
        tree: with as many nodes as the old one.
        origin: (I,) number that a node had in the old tree; NONE: it is new.
        column: (I, M) where the children of a node were, if it is an old one: the place, in the old tree, of what is
            at each place now; NONE: no child.
    """

    tree: Tree
    origin: np.ndarray
    column: np.ndarray


def rebuilt(tree: Tree, arity: int, sums: np.ndarray, counts: np.ndarray, begin: np.ndarray) -> Rebuilt:
    """The tree in which each class has the child that its statistics prefer, from the root down.

    Args:
        sums: (R, M) of the probabilities of the children of the nodes of a class's path, over its examples; those of
            class s, from the root on, are the rows begin[s] … begin[s + 1].
        counts: (R,) number of these examples. begin: (S + 1,).
    """
    size = tree.leaves
    steps = max(1, -(-(size - 1) // (arity - 1)))
    label = np.arange(1 + steps * (arity - 1))  # those from S on are seen by nobody
    leaf_parent = np.full(len(label), NONE)
    owner = np.zeros(len(label), dtype=np.int64)
    parents, origins, taken = [np.array([NONE])], [np.zeros(1, dtype=np.int64)], []
    begin_level, level = 0, 0
    while len(label):
        old = origins[-1]
        seen, visits, place = np.zeros((len(label), arity)), np.zeros(len(label)), np.full(len(label), NONE)
        if level < min(tree.levels, EVEN_BELOW):
            here = np.flatnonzero(label < size)
            before = tree.path[label[here], level]
            here = here[(before == old[owner[here]]) & (before != NONE)]
            rows = begin[label[here]] + level
            seen[here], visits[here] = sums[rows], counts[rows]
            place[here] = tree.place[tree.chosen[label[here], level]]
        weights = preferences(seen, visits, place, owner, len(old), log_ratio_weights)
        weights[label >= size] -= 2  # behind all that are seen
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
    """The child of each class: pairs by weight, the heaviest first, among children that have room.

    Args:
        weights: (n, M). owner: (n,) from 0 to O − 1, ascending or not.
        groups: (O,) t; an owner has M + t (M − 1) classes.

    Returns:
        (n,).
    """
    arity = weights.shape[1]
    taken = weights.argmax(1)
    best = weights[np.arange(len(weights)), taken]
    order = np.lexsort((-best, owner))  # stable: of equal ones the first
    child = owner[order] * arity + taken[order]
    opens = rank_among_equal(child)
    opens = (opens > 0) & ((opens - 1) % (arity - 1) == 0)
    before = np.cumsum(opens) - opens  # groups that are taken before a class takes its child
    first = np.searchsorted(owner[order], np.arange(len(groups)))
    is_last = before - before[np.minimum(first, len(order) - 1)][owner[order]] >= groups[owner[order]]
    settled, rest = order[~is_last], np.sort(order[is_last])
    sizes = np.bincount(owner[settled] * arity + taken[settled], minlength=len(groups) * arity)
    room = np.where(sizes == 0, 1, (1 - sizes) % (arity - 1)).reshape(-1, arity)
    taken[rest] = matched(weights[rest], owner[rest], room)
    return taken


def _children(tree: Tree, nodes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Internal nodes of the old tree at places of nodes; NONE where there is no such node."""
    there = np.flatnonzero((nodes != NONE) & (places < tree.children[nodes]))
    children = np.full(len(nodes), NONE)
    children[there] = tree.child[tree.first[nodes[there]] + places[there]]
    return np.where(children < tree.internal, children, NONE)
