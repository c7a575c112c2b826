"""Huffman's tree of arity M: no other one has a smaller mean depth (Huffman 1952, *A method for the construction of
minimum-redundancy codes*).

The M lightest nodes become children of a new one, until one is left. The last step merges M nodes only if S ≡ 1 modulo
M − 1, so nodes of no mass are added until it is so; they are among the first to be merged, and then left out. So one
node, one of the deepest, may have fewer children.
"""

from __future__ import annotations

import numpy as np

from fairseq_llrnn.systems.output_trees.limits import check_arity, check_masses
from fairseq_llrnn.systems.output_trees.tree import NONE, Tree, numbered

LEAST_SHARE = 1e-12  # of all mass; lighter leaves, and those of no mass, weigh as much, so that they are not too deep


def huffman_tree(masses: np.ndarray, arity: int) -> Tree:
    """The tree with the least mean depth for these masses, (S,).

    Raises:
        OptionError: an arity below 2.
    """
    check_arity(arity)
    check_masses(masses)
    size = len(masses)
    total = masses.sum()
    weights = np.maximum(masses / total, LEAST_SHARE) if total > 0 else np.ones(size)
    order = np.argsort(weights, kind="stable")
    padding = -(size - 1) % (arity - 1)
    steps = max(1, (size + padding - 1) // (arity - 1))
    leaves = [NONE] * padding + order.tolist()  # two queues, both ascending: leaves, and the nodes made of them
    light = [0.0] * padding + weights[order].tolist()
    made: list[float] = []
    parent = np.full(steps + size, NONE)  # node k is the k-th that is made; the leaf of class s is steps + s
    leaf = node = 0
    for step in range(steps):
        weight = 0.0
        for _ in range(min(arity, len(leaves))):
            if node == len(made) or leaf < len(leaves) and light[leaf] <= made[node]:
                weight += light[leaf]
                if leaves[leaf] != NONE:
                    parent[steps + leaves[leaf]] = step
                leaf += 1
            else:
                weight += made[node]
                parent[node] = step
                node += 1
        made.append(weight)
    parent = np.where(parent == NONE, NONE, steps - 1 - parent)  # the root, made last, becomes node 0
    tree, _ = numbered(np.concatenate([parent[:steps][::-1], parent[steps:]]), size)
    return tree
