"""The tree of a head, from options, a file or a checkpoint; and one that is learned beside its rows.

Sizes: S signatures, I internal nodes, H hidden width.

`TreeOptions` are what is said of a tree before there is one: its kind and its sizes. A head is given an `OutputTree`:

    LogLinearHead(prior, H, normaliser=OutputTree(TreeOptions("huffman", arity=8)))

Of a `LearnedTreeLayer`, what the layer says of nodes is counted, and now and then signatures move (Jernite 2018,
Algorithms 3.1, 3.2 and 3.3; learner.py). With a limit of depth, rows of internal nodes stay with the addresses of
nodes; without one, nodes keep their rows when they get other numbers. The row of a leaf is its signature's, and moves
with it.
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

from fairseq_llrnn.errors import DataError, OptionError, check_least, check_unused_options
from fairseq_llrnn.output.class_source import Head, check_row_sources
from fairseq_llrnn.systems.output_trees import CLUSTERS, DEPTH, HUFFMAN, KINDS, LEARNED, REASSIGN
from fairseq_llrnn.systems.output_trees.builders import (
    check_arity,
    check_room,
    cluster_tree,
    huffman_tree,
    least_arity,
    least_depth,
    random_tree,
)
from fairseq_llrnn.systems.output_trees.learner import Schedule, TreeLearner
from fairseq_llrnn.systems.output_trees.tree import NONE, Tree
from fairseq_llrnn.systems.output_trees.tree_layer import TreeLayer
from fairseq_llrnn.systems.output_trees.tree_log_linear import VisitProbabilities

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
                check_unused_options(
                    {f"tree_{name}": getattr(self, name)},
                    f"expected --output-tree {' or '.join(users)}, found {self.kind}; leave one of them out",
                )
        check_least("--tree-reassign", self.reassign, 1, "times an epoch")
        if self.reassign_epochs is not None and not self.reassign_epochs >= 0:
            raise OptionError(f"--tree-reassign-epochs {self.reassign_epochs}: expected a number of at least 0")

    def build(self, class_weights: np.ndarray) -> Tree:
        """The tree for leaves of these masses, (S,).

        Raises:
            OptionError: sizes in which there is no room, or that no tree can have.
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


@dataclass(frozen=True)
class OutputTree:
    """Makes the normaliser of a head that finds a word by a choice at each node on the way to its signature.

    Args:
        tree: over the signatures, or how it is built. rows: of its internal nodes: "free", or "composed" of the rows of
            what is below.
        sparse_gradients: of the weights of features in output and input, with free rows: sparse tensors, for
            optimisers that take such (torch's SGD, Adagrad, SparseAdam).
    """

    tree: Tree | TreeOptions
    rows: str = "free"
    sparse_gradients: bool = False

    def __call__(self, head: Head) -> TreeLayer:
        """Raises OptionError: classes that need all rows; sparse gradients of composed rows."""
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
    """SHA-256 of the words (V) and of which signature each is of, (V,): what a tree in a file is made for."""
    digest = hashlib.sha256("\n".join(symbols).encode())
    digest.update(class_of.astype("<i8").tobytes())
    return digest.hexdigest()


def flat_tree(leaves: int) -> Tree:
    """One node: the place of a tree that a checkpoint will say."""
    return Tree.from_parents(np.concatenate([[NONE], np.zeros(leaves, dtype=np.int64)]), leaves)


def tree_in_checkpoint(saved: object, head_tree: Tree, learned: bool) -> Tree | None:
    """The tree of a checkpoint's weights, checked; None where it has none.

    Args:
        saved: its parents, (I + S,); None: nothing.
        head_tree: the tree of the head.
        learned: whether training changes it.

    Raises:
        OptionError: they have different trees. DataError: no tree.
    """
    if saved is None:
        return None
    if not isinstance(saved, Tensor) or saved.dtype.is_floating_point or saved.dtype.is_complex:
        raise DataError("the checkpoint: expected whole numbers as the parents of its tree, found others")
    try:
        tree = Tree.from_parents(saved.cpu().numpy(), head_tree.leaves)
    except DataError as error:
        raise DataError(f"the checkpoint: {error}") from None
    same_size = tree.internal == head_tree.internal
    is_same = same_size and (learned or np.array_equal(tree.parent, head_tree.parent))
    if (learned or head_tree.internal > 1) and not is_same:
        raise OptionError(
            f"--output-tree: expected the tree with which the checkpoint was trained, of {tree.internal:,} nodes above "
            f"{tree.leaves:,} leaves, found another one, of {head_tree.internal:,}; give the same kind and sizes, or "
            "train anew in another --save-dir"
        )
    return tree


class LearnedTreeLayer(TreeLayer):
    """A tree, and what training has seen of it, which a checkpoint keeps."""

    counts = True

    def __init__(self, options: TreeOptions, hidden_size: int, log_mass: Tensor, rows: str = "free") -> None:
        """As of TreeLayer."""
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
        """Count what the layer says of the nodes on the paths of targets; padding has no mass, and does not count."""
        for some in visited:
            real = ~self.log_mass[some.labels].isneginf()
            self.learner.observe(some.labels[real], some.nodes[real], some.probabilities[real])

    def update_if_due(self, updates: int, updates_per_epoch: int) -> int | None:
        """Change the tree if that is due after so many updates: how many signatures move. Again, it does nothing.

        Processes that train together all have to call it, and get the same tree.
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
        self.learner.follow(self.tree)  # its own buffers are loaded next
