"""What is said of a tree before there is one: its kind and its sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.trees.clustering import clustering_tree
from fairseq_llrnn.trees.clusters import cluster_tree
from fairseq_llrnn.trees.huffman import huffman_tree
from fairseq_llrnn.trees.limits import check_arity, least_arity
from fairseq_llrnn.trees.random_tree import random_tree
from fairseq_llrnn.trees.tree import Tree

DEPTH = 3  # where neither arity nor depth is given: that of the thesis' trees (Jernite 2018, §3.5)
CLUSTERS, HUFFMAN, CLUSTERING, RANDOM, LEARNED = "clusters", "huffman", "clustering", "random", "learned"
KINDS = (CLUSTERS, HUFFMAN, CLUSTERING, RANDOM, LEARNED)
USERS = {"arity": KINDS[1:], "depth": KINDS[2:], "clusters": KINDS[:1], "vectors": (CLUSTERING,)}


@dataclass(frozen=True, eq=False)
class TreeOptions:
    """One of KINDS, and its sizes; None: a default that depends on the number of leaves.

    A learned tree begins as one in random order.
    """

    kind: str
    arity: int | None = None  # M, the most children of a node; None: the least that the depth has room with
    depth: int | None = None  # the most levels; None: DEPTH, or with an arity the least
    clusters: int | None = None  # None: √S
    vectors: np.ndarray | None = None  # (S, D), for a clustering
    seed: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise OptionError(f"--output-tree {self.kind}: expected one of {', '.join(KINDS)}, or a file with a tree")
        for name, users in USERS.items():
            if getattr(self, name) is not None and self.kind not in users:
                value = "" if name == "vectors" else f" {getattr(self, name)}"
                raise OptionError(
                    f"--tree-{name}{value}: expected --output-tree {' or '.join(users)}, found {self.kind}; leave one "
                    "of them out"
                )

    def build(self, masses: np.ndarray) -> Tree:
        """The tree for leaves of these masses, (S,).

        Raises:
            OptionError: sizes in which there is no room, or that no tree can have.
        """
        leaves = len(masses)
        if self.kind == CLUSTERS:
            return cluster_tree(masses, self.clusters)
        depth = DEPTH if self.arity is None and self.depth is None else self.depth
        arity = least_arity(leaves, max(1, depth or 1)) if self.arity is None else self.arity
        if self.kind == HUFFMAN:
            return huffman_tree(masses, arity)
        if self.kind == CLUSTERING:
            if self.vectors is None:
                raise OptionError(
                    "--output-tree clustering: expected vectors of the words, found none; give them with "
                    "--tree-embeddings"
                )
            return clustering_tree(self.vectors, arity, depth, self.seed)
        check_arity(arity)
        return random_tree(leaves, arity, depth, self.seed)
