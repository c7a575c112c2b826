"""Trees built in one pass (clusters, Huffman, random, by class vectors), and a matching of items to groups.

Sizes: S classes, M maximal number of children, C clusters, G groups.

`matched` assigns items to groups with limited room, the heaviest pair of item and group first.

Algorithms 3.2 and 3.3 of Jernite (2018) assign labels to children in this way. They repeatedly take the heaviest pair
(i, j) of an unassigned item and a group with room, ties by the smallest i, then j. Both sides rank pairs by the same
order, so there is one stable matching (Gale & Shapley 1962, *College admissions and the stability of marriage*). The
loop finds it, because a blocking pair would have been taken earlier. Deferred acceptance finds the same matching in few
rounds over whole arrays: items propose to the best group that has not rejected them, and groups keep the best.

Items may be split among several owners. Each owner has G groups.
"""

from __future__ import annotations

import math

import numpy as np

from fairseq_llrnn.errors import OptionError
from llrnn_research.output_trees.tree import NONE, Tree, numbered


def matched(weights: np.ndarray, owner: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Return the group of every item, (n,) from 0 to G − 1.

    Args:
        weights: (n, G), above −inf: of an item and each group of its owner. Not modified.
        owner: (n,) from 0 to O − 1.
        room: (O, G) capacity of each group. An owner's groups must have room for all its items.
    """
    number, groups = weights.shape
    taken = np.zeros(number, dtype=np.int64)
    if not number:
        return taken
    left = weights.copy()  # −inf: rejected
    asking = np.arange(number)
    best = np.empty(number)
    flat_room = room.reshape(-1)
    counts = np.zeros(room.size, dtype=np.int64)
    place = owner * groups
    while len(asking):
        choice = left[asking].argmax(1)  # the first among ties
        taken[asking], best[asking] = choice, left[asking, choice]
        proposed = place[asking] + choice
        counts += np.bincount(proposed, minlength=len(counts))
        is_over = counts > flat_room
        if not is_over.any():
            break
        if not np.isfinite(best[asking]).all():
            raise ValueError("room: expected places for all items of an owner, found fewer")
        rivals = np.flatnonzero(is_over[place + taken])  # ascending, so that equal weights stay in order
        rivals = rivals[np.lexsort((-best[rivals], place[rivals] + taken[rivals]))]
        group = place[rivals] + taken[rivals]
        first = np.concatenate([[True], group[1:] != group[:-1]])
        rank = np.arange(len(rivals)) - np.flatnonzero(first)[np.cumsum(first) - 1]
        asking = np.sort(rivals[rank >= flat_room[group]])
        left[asking, taken[asking]] = -np.inf
        counts = np.minimum(counts, flat_room)
    return taken


def check_arity(arity: int) -> None:
    """Raise OptionError for an arity below 2."""
    if arity < 2:
        raise OptionError(f"arity of the tree: expected at least 2 children of a node, found {arity}; give more")


def least_depth(leaves: int, arity: int) -> int:
    """Return the least depth of a tree of this arity with room for the leaves."""
    depth = 1
    while arity**depth < leaves:
        depth += 1
    return depth


def least_arity(leaves: int, depth: int) -> int:
    """Return the least arity of a tree of this depth with room for the leaves."""
    arity = max(2, int(leaves ** (1 / depth)))  # exact, or one too small
    while arity**depth < leaves:
        arity += 1
    return arity


def check_room(leaves: int, arity: int, depth: int | None) -> None:
    """Check the arity, and that a tree of the depth (if given) has room for the leaves.

    Raises:
        OptionError: with the room found, and a sufficient depth or arity.
    """
    check_arity(arity)
    if depth is not None and (depth < 1 or arity**depth < leaves):
        room = f"{arity:,}^{depth} = {arity**depth:,}" if depth >= 1 else "no"
        raise OptionError(
            f"depth of the tree: expected room for {leaves:,} leaves, found {room} in a tree of arity {arity:,} and "
            f"depth {depth}; give a depth of {least_depth(leaves, arity)}"
            + (f", or an arity of {least_arity(leaves, depth):,}" if depth >= 1 else "")
        )


def check_masses(class_weights: np.ndarray) -> None:
    """Raise ValueError unless masses are finite and not negative, (S,), for at least one leaf."""
    if (
        class_weights.ndim != 1
        or len(class_weights) < 1
        or not np.isfinite(class_weights).all()
        or (class_weights < 0).any()
    ):
        raise ValueError(
            "masses: expected a vector of finite numbers of at least 0, one for each of at least one leaf, found the "
            f"shape {class_weights.shape} or other numbers"
        )


def cut_evenly(order: np.ndarray, arity: int) -> Tree:
    """Return the flattest tree of an arity, in which sizes of siblings differ by at most one.

    Each node with more than `arity` classes has `arity` children. The leaves of a node are contiguous in `order`.

    Args:
        order: (S,) all classes.

    Raises:
        OptionError: an arity below 2.
    """
    check_arity(arity)
    leaf_parent = np.empty(len(order), dtype=np.int64)
    parents = [np.array([NONE])]
    numbers, begins, sizes = np.zeros(1, int), np.zeros(1, int), np.array([len(order)])
    num_nodes = 1
    while len(numbers):
        is_last = sizes <= arity
        attach_children(leaf_parent, order, numbers[is_last], begins[is_last], sizes[is_last])
        numbers, begins, sizes = numbers[~is_last], begins[~is_last], sizes[~is_last]
        slots = np.arange(arity)
        parts = sizes[:, None] // arity + (slots < sizes[:, None] % arity)  # (nodes, M)
        ends = begins[:, None] + parts.cumsum(1)
        above, begins, sizes = np.repeat(numbers, arity), (ends - parts).ravel(), parts.ravel()
        single = sizes == 1  # a single leaf hangs directly below the parent
        leaf_parent[order[begins[single]]] = above[single]
        above, begins, sizes = above[~single], begins[~single], sizes[~single]
        numbers = num_nodes + np.arange(len(above))
        num_nodes += len(above)
        parents.append(above)
    return Tree.from_parents(np.concatenate([*parents, leaf_parent]), len(order))


def attach_children(
    leaf_parent: np.ndarray, order: np.ndarray, nodes: np.ndarray, begins: np.ndarray, sizes: np.ndarray
) -> None:
    """Make all classes of each node its children."""
    offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    leaf_parent[order[np.repeat(begins, sizes) + offsets]] = np.repeat(nodes, sizes)


def cluster_tree(class_weights: np.ndarray, number: int | None = None) -> Tree:
    """Return a tree of two levels: clusters of classes with similar mass, heaviest first, then the classes.

    Sources: Jernite 2018, §2.3, eq. 2.6; Goodman 2001, *Classes for fast maximum entropy training*. Clusters of equal
    mass 1/C would need the same number of scores, C + Σ_c size_c / C = C + S/C, minimal at C = √S. Clusters of equal
    size have two advantages: none is large, which bounds the cost of a search that opens one, and a few have most of
    the mass, so a batch visits fewer.

    Args:
        class_weights: (S,) masses of the classes, in any unit.
        number: C (default √S, rounded up).

    Raises:
        OptionError: fewer than 1 cluster or more than S.
    """
    check_masses(class_weights)
    size = len(class_weights)
    number = math.isqrt(size - 1) + 1 if number is None else number
    if not 1 <= number <= size:
        raise OptionError(f"number of clusters: expected 1 to {size:,}, one per class, found {number:,}; give another")
    cluster = np.empty(size, dtype=np.int64)
    cluster[np.argsort(-class_weights, kind="stable")] = np.arange(size) * number // size
    return Tree.from_parents(np.concatenate([[NONE], np.zeros(number, dtype=np.int64), 1 + cluster]), size)


LEAST_SHARE = 1e-12  # minimal share of a leaf's mass, which bounds the depth of light leaves


def huffman_tree(class_weights: np.ndarray, arity: int) -> Tree:
    """Return the tree with the least mean depth for masses of the classes, (S,).

    Source: Huffman 1952, *A method for the construction of minimum-redundancy codes*. The M lightest nodes become
    children of a new node, until one node is left. The last step merges M nodes only if S ≡ 1 modulo M − 1. Therefore
    nodes without mass are added first, and dropped at the end. So one of the deepest nodes may have fewer children.

    Raises:
        OptionError: an arity below 2.
    """
    check_arity(arity)
    check_masses(class_weights)
    size = len(class_weights)
    total = class_weights.sum()
    weights = np.maximum(class_weights / total, LEAST_SHARE) if total > 0 else np.ones(size)
    order = np.argsort(weights, kind="stable")
    padding = -(size - 1) % (arity - 1)
    steps = max(1, (size + padding - 1) // (arity - 1))
    leaves = [NONE] * padding + order.tolist()  # two queues, both ascending: leaves, and the nodes made of them
    light = [0.0] * padding + weights[order].tolist()
    inner: list[float] = []
    parent = np.full(steps + size, NONE)  # node k is the k-th that is made; the leaf of class s is steps + s
    leaf = node = 0
    for step in range(steps):
        weight = 0.0
        for _ in range(min(arity, len(leaves))):
            if node == len(inner) or leaf < len(leaves) and light[leaf] <= inner[node]:
                weight += light[leaf]
                if leaves[leaf] != NONE:
                    parent[steps + leaves[leaf]] = step
                leaf += 1
            else:
                weight += inner[node]
                parent[node] = step
                node += 1
        inner.append(weight)
    parent = np.where(parent == NONE, NONE, steps - 1 - parent)  # the root, made last, becomes node 0
    tree, _ = numbered(np.concatenate([parent[:steps][::-1], parent[steps:]]), size)
    return tree


def random_tree(leaves: int, arity: int, depth: int | None = None, seed: int = 1) -> Tree:
    """Return the flattest tree of an arity over randomly ordered classes, determined by the seed.

    Args:
        depth: maximal number of levels (None: unlimited).

    Raises:
        OptionError: an arity below 2, a depth without room.
    """
    check_room(leaves, arity, depth)
    return cut_evenly(np.random.default_rng(seed).permutation(leaves), arity)


STEPS = 10  # of k-means


def clustering_tree(vectors: np.ndarray, arity: int, depth: int | None = None, seed: int = 1) -> Tree:
    """Return the flattest tree of an arity in which classes with similar vectors share most of their paths.

    The baseline of Jernite (2018, §3.5, Table 3.3), after Mnih & Hinton (2008), *A scalable hierarchical distributed
    language model*. K-means (Lloyd 1982) splits the classes of a node among its M children. Its last step makes the
    children equally large: nearest pairs of class and centre first, while the child has room. The seed determines the
    result.

    Args:
        vectors: (S, H) of the classes, finite.
        depth: maximal number of levels (None: unlimited).

    Raises:
        OptionError: an arity below 2, a depth without room.
    """
    check_room(len(vectors), arity, depth)
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise ValueError(f"vectors: expected finite ones of all classes, (S, H), found {vectors.shape}, or others")
    random = np.random.default_rng(seed)
    vectors = vectors.astype(np.float64)
    parts, done = [np.arange(len(vectors))], []
    while parts:
        part = parts.pop()
        if len(part) <= arity:
            done.append(part)
        else:
            parts += reversed(_split(part, vectors[part], arity, random))
    return cut_evenly(np.concatenate(done), arity)


def _split(part: np.ndarray, vectors: np.ndarray, arity: int, random: np.random.Generator) -> list[np.ndarray]:
    """Split a part into `arity` parts of the sizes of `cut_evenly`."""
    centres = vectors[np.sort(random.choice(len(part), arity, replace=False))]
    for _ in range(STEPS):
        nearest = _nearness(vectors, centres).argmax(1)
        counts = np.bincount(nearest, minlength=arity)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, vectors)
        centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
    sizes = len(part) // arity + (np.arange(arity) < len(part) % arity)
    child = matched(_nearness(vectors, centres), np.zeros(len(part), dtype=np.int64), sizes[None])
    return [part[child == j] for j in range(arity)]


def _nearness(vectors: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return minus the squared distance to each centre, (n, M)."""
    return 2 * vectors @ centres.T - (centres**2).sum(1) - (vectors**2).sum(1)[:, None]
