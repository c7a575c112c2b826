"""What is said of a tree before there is one: its kind and its sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.errors import OptionError, check_least, refuse_idle
from fairseq_llrnn.systems.output_trees import CLUSTERS, DEPTH, HUFFMAN, KINDS, LEARNED
from fairseq_llrnn.systems.output_trees.builders import (
    check_arity,
    check_room,
    cluster_tree,
    huffman_tree,
    least_arity,
    least_depth,
    random_tree,
)
from fairseq_llrnn.systems.output_trees.tree import Tree

USERS = {
    "arity": KINDS[1:],
    "depth": KINDS[2:],
    "clusters": (CLUSTERS,),
    "reassign": (LEARNED,),
    "reassign_epochs": (LEARNED,),
}


@dataclass(frozen=True, eq=False)
class TreeOptions:
    """One of KINDS, and its sizes; None: a default that depends on the number of leaves.

    A learned tree begins with leaves sorted by mass, and is its layer's to make (output_tree.py).
    """

    kind: str
    arity: int | None = None  # M, the most children of a node; None: the least that the depth has room with
    depth: int | None = None  # the most levels; None: DEPTH, or with an arity the least; 0: any, of a learned tree
    clusters: int | None = None  # None: √S
    reassign: int | None = None  # how often in an epoch a learned tree changes; None: REASSIGN
    reassign_epochs: float | None = None  # in how many epochs; None: in all
    seed: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise OptionError(f"--output-tree {self.kind}: expected one of {', '.join(KINDS)}, or a file with a tree")
        for name, users in USERS.items():
            if self.kind not in users:
                refuse_idle(
                    {f"tree_{name}": getattr(self, name)},
                    f"expected --output-tree {' or '.join(users)}, found {self.kind}; leave one of them out",
                )
        check_least("--tree-reassign", self.reassign, 1, "times an epoch")
        if self.reassign_epochs is not None and not self.reassign_epochs >= 0:
            raise OptionError(f"--tree-reassign-epochs {self.reassign_epochs}: expected a number of at least 0")

    def build(self, masses: np.ndarray) -> Tree:
        """The tree for leaves of these masses, (S,).

        Raises:
            OptionError: sizes in which there is no room, or that no tree can have.
        """
        leaves = len(masses)
        if self.kind == CLUSTERS:
            return cluster_tree(masses, self.clusters)
        arity, depth = self.sizes(leaves)
        assert depth is not None
        if self.kind == HUFFMAN:
            return huffman_tree(masses, arity)
        return random_tree(leaves, arity, depth, self.seed)

    def sizes(self, leaves: int) -> tuple[int, int | None]:
        """Arity and depth, those that are not given so that there is room. None: any depth.

        Raises:
            OptionError: an arity below 2, a depth without room.
        """
        if self.kind == LEARNED and self.depth == 0:
            arity = least_arity(leaves, DEPTH) if self.arity is None else self.arity
            check_arity(arity)
            return arity, None
        if self.arity is not None:
            check_arity(self.arity)
            arity, depth = self.arity, least_depth(leaves, self.arity) if self.depth is None else self.depth
        else:
            depth = DEPTH if self.depth is None else self.depth
            arity = least_arity(leaves, max(1, depth))
            check_room(leaves, arity, depth)
        if self.kind == LEARNED:  # it has all addresses of its depth
            depth = min(depth, least_depth(leaves, arity))
        return arity, depth
