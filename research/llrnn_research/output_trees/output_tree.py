"""The tree of a head, from options, a file or a checkpoint, and a tree learned together with its rows.

Sizes: S signatures, I internal nodes, H hidden width.

`TreeOptions` are the kind and the sizes of a tree, before its prior is known. A head is given an `OutputTree`:

    LogLinearHead(prior, H, normaliser=OutputTree(TreeOptions("huffman", arity=8)))

A `LearnedTreeLayer` counts its probabilities of nodes, and from time to time moves signatures (Jernite 2018, Algorithms
3.1, 3.2 and 3.3; learner.py). With a limit of depth, rows of internal nodes stay with the addresses of nodes. Without
one, nodes keep their rows when their numbers change. The row of a leaf belongs to its signature, and moves with it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.errors import OptionError, check_least, check_unused_options
from fairseq_llrnn.output.class_source import Head, check_row_sources
from llrnn_research.output_trees import CLUSTERS, DEPTH, HUFFMAN, KINDS, LEARNED, REASSIGN
from llrnn_research.output_trees.builders import (
    check_arity,
    check_room,
    cluster_tree,
    huffman_tree,
    least_arity,
    least_depth,
    random_tree,
)
from llrnn_research.output_trees.learner import Schedule, TreeLearner
from llrnn_research.output_trees.tree import NONE, Tree
from llrnn_research.output_trees.tree_layer import TreeLayer
from llrnn_research.output_trees.tree_scores import VisitProbabilities

USERS = {
    "arity": KINDS[1:],
    "depth": KINDS[2:],
    "clusters": (CLUSTERS,),
    "reassign": (LEARNED,),
    "reassign_epochs": (LEARNED,),
}


@dataclass(frozen=True, eq=False)
class TreeOptions:
    """The kind of a tree (one of KINDS), and its sizes. None: a default that depends on the number of leaves.

    A learned tree begins with leaves sorted by mass. Its layer builds it.
    """

    kind: str
    arity: int | None = None  # M, most children of a node; None: the least one that the depth allows
    depth: int | None = None  # most levels; None: DEPTH, or the least one that the arity allows; 0: unlimited (learned)
    clusters: int | None = None  # None: √S
    reassign: int | None = None  # changes of a learned tree per epoch; None: REASSIGN
    reassign_epochs: float | None = None  # number of epochs with changes; None: all
    seed: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise OptionError(f"--output-tree {self.kind}: expected one of {', '.join(KINDS)}, or a file with a tree")
        for name, users in USERS.items():
            if self.kind not in users:
                check_unused_options(
                    {f"tree_{name}": getattr(self, name)},
                    f"expected --output-tree {' or '.join(users)}, found {self.kind}; leave one of them out",
                )
        check_least("--tree-reassign", self.reassign, 1, "times an epoch")
        if self.reassign_epochs is not None and not self.reassign_epochs >= 0:
            raise OptionError(f"--tree-reassign-epochs {self.reassign_epochs}: expected a number of at least 0")

    def build(self, class_weights: np.ndarray) -> Tree:
        """Return the tree for leaves with these masses, (S,).

        Raises:
            OptionError: sizes without room for the leaves, or that no tree can have.
        """
        leaves = len(class_weights)
        if self.kind == CLUSTERS:
            return cluster_tree(class_weights, self.clusters)
        arity, depth = self.sizes(leaves)
        assert depth is not None
        if self.kind == HUFFMAN:
            return huffman_tree(class_weights, arity)
        return random_tree(leaves, arity, depth, self.seed)

    def sizes(self, leaves: int) -> tuple[int, int | None]:
        """Return arity and depth (None: unlimited). Sizes not given are the least with room for the leaves.

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
        if self.kind == LEARNED:  # a learned tree is complete
            depth = min(depth, least_depth(leaves, arity))
        return arity, depth


@dataclass(frozen=True)
class OutputTree:
    """A head's normaliser that predicts a word by a choice at each node on the path to its signature.

    Args:
        tree: over the signatures, or options to build it.
        rows: of its internal nodes: "free", or "composed" from the rows below.
        sparse_gradients: give weights of features in output and input sparse gradients. This needs free rows, and an
            optimiser with support for sparse gradients (torch's SGD, Adagrad, SparseAdam).
    """

    tree: Tree | TreeOptions
    rows: str = "free"
    sparse_gradients: bool = False

    def __call__(self, head: Head) -> TreeLayer:
        """Return the layer.

        Raises:
            OptionError: classes that need all rows, or sparse gradients with composed rows.
        """
        check_row_sources(head, TreeLayer.option)
        if self.sparse_gradients and self.rows != "free":
            raise OptionError(
                "--tree-sparse-gradients: expected --output-tree with --tree-rows free, so that an update needs the "
                f"rows of few signatures, found --tree-rows {self.rows}; leave the option out"
            )
        log_mass = head.static_log_mass()
        if isinstance(self.tree, TreeOptions) and self.tree.kind == LEARNED:
            layer: TreeLayer = LearnedTreeLayer(self.tree, head.hidden_size, log_mass, self.rows)
        else:
            tree = self.tree if isinstance(self.tree, Tree) else self.tree.build(log_mass.double().exp().numpy())
            layer = TreeLayer(tree, head.hidden_size, log_mass, self.rows)
        layer.sparse_gradients = self.sparse_gradients
        return layer


def class_fingerprint(symbols: Sequence[str], class_of: np.ndarray) -> str:
    """Return the SHA-256 of the words (V) and their signatures, (V,), which a tree file must match."""
    digest = hashlib.sha256("\n".join(symbols).encode())
    digest.update(class_of.astype("<i8").tobytes())
    return digest.hexdigest()


def flat_tree(leaves: int) -> Tree:
    """Return a tree of one node, which a checkpoint's tree will replace."""
    return Tree.from_parents(np.concatenate([[NONE], np.zeros(leaves, dtype=np.int64)]), leaves)


class LearnedTreeLayer(TreeLayer):
    """A tree with its training statistics, both stored in checkpoints."""

    counts = True

    def __init__(self, options: TreeOptions, hidden_size: int, log_mass: Tensor, rows: str = "free") -> None:
        """Build the first tree. Arguments as for TreeLayer."""
        arity, depth = options.sizes(len(log_mass))
        tree = TreeLearner.start(log_mass.double().exp().cpu().numpy(), arity, depth)
        super().__init__(tree, hidden_size, log_mass, rows)
        self.learner = TreeLearner(tree, arity, depth)
        if depth is None and rows == "free":
            self.register_buffer("row_of", torch.arange(tree.internal))
        self.times = REASSIGN if options.reassign is None else options.reassign
        self.epochs = math.inf if options.reassign_epochs is None else options.reassign_epochs
        self._changed_after = -1

    def observe(self, visited: Iterable[VisitProbabilities]) -> None:
        """Count the probabilities of nodes on the paths of targets, except for padding, which has no mass."""
        for visits in visited:
            real = ~self.log_mass[visits.labels].isneginf()
            self.learner.observe(visits.labels[real], visits.nodes[real], visits.probabilities[real])

    def update_if_due(self, updates: int, updates_per_epoch: int) -> int | None:
        """Change the tree if a change is due after this number of updates, and return the number of moved signatures.

        A second call after the same update does nothing. In distributed training all processes must call it. They get
        the same tree.
        """
        schedule = Schedule(self.times, updates_per_epoch, updates_per_epoch * self.epochs)
        if updates == self._changed_after or not schedule.is_due(updates):
            return None
        self._changed_after = updates
        result = self.learner.reassign()
        self.move(result.tree, result.origin)
        return result.moved

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        self.learner.follow(self.tree)  # sizes the learner's buffers, which are loaded next
