"""The words below the nodes of an output tree (Jernite 2018, Table 3.2), the most frequent ones by name.

V words, S classes, I internal nodes. How frequent a word is says the prior's background without context; words of no
mass are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.systems.output_trees.preferences import rank_among_equal
from fairseq_llrnn.systems.output_trees.tree import NONE, Tree

if TYPE_CHECKING:
    from fairseq_llrnn.prior.prior import Prior


@dataclass(frozen=True)
class NodeWords:
    """Attributes:
    node, parent: numbers of a node and of the one above it; NONE above the root.
    depth: 0 for the root.
    share: of all mass, the part of the words below.
    size: number of words below. words: the most frequent of them, the first one first.
    own: how many of the words below hang at the node itself.
    """

    node: int
    parent: int
    depth: int
    share: float
    size: int
    own: int
    words: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "words": list(self.words)}


def check_tree(tree: Tree, prior: Prior, where: str) -> None:
    """Raise DataError unless the leaves are as many as the prior's classes."""
    if tree.leaves != prior.output.num_classes:
        raise DataError(
            f"{where}: expected a tree over the {prior.output.num_classes:,} classes of the prior, found one over "
            f"{tree.leaves:,}; give the prior that it was made for"
        )


def words_of_nodes(tree: Tree, prior: Prior, most: int) -> list[NodeWords]:
    """All nodes with words, the root first, then level by level; on each the heaviest one first.

    Args:
        most: so many words of a node.
    """
    weights = np.exp(prior.log_weights - prior.log_weights.max())
    weights = weights / weights.sum()
    order = np.argsort(-weights, kind="stable")  # of equal ones the earlier, as dictionaries are sorted
    order = order[weights[order] > 0]
    path = tree.path[prior.output.class_of[order]]  # (V, D)
    leaf_above = tree.parent[tree.internal + prior.output.class_of[order]]
    own = np.bincount(leaf_above, minlength=tree.internal)
    found = []
    for depth in range(tree.levels):
        here = path[:, depth] != NONE
        if not here.any():  # below are only words of no mass
            break
        nodes, words = path[here, depth], order[here]
        share = np.bincount(nodes, weights[words], tree.internal)
        size = np.bincount(nodes, minlength=tree.internal)
        first = rank_among_equal(nodes) < most
        shown = words[first][np.argsort(nodes[first], kind="stable")]
        kinds = np.unique(nodes)
        ends = np.cumsum(np.minimum(size[kinds], most))
        lists = dict(zip(kinds.tolist(), np.split(shown, ends[:-1]), strict=True))
        for node in kinds[np.argsort(-share[kinds], kind="stable")].tolist():
            names = tuple(prior.symbols[word] for word in lists[node])
            found.append(
                NodeWords(
                    node, int(tree.parent[node]), depth, float(share[node]), int(size[node]), int(own[node]), names
                )
            )
    return found
