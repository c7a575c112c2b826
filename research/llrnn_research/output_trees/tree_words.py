"""The words below the nodes of an output tree (Jernite 2018, Table 3.2), and a picture of the heaviest (Figure 3.8).

Sizes: V words, S classes, I internal nodes. The prior's background without context gives the frequencies of words.
Words without mass are omitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from llrnn_research.output_trees.reassignment import rank_among_equal
from llrnn_research.output_trees.tree import NONE, Tree
from llrnn_research.pictures import new_figure, plain, save

if TYPE_CHECKING:
    from fairseq_llrnn.prior.prior import Prior


@dataclass(frozen=True)
class NodeWords:
    """The most frequent words below a node.

    Attributes:
        node, parent: numbers of the node and its parent (NONE for the root).
        depth: 0 for the root.
        share: the share of the words below in the total mass.
        size: number of words below.
        own: number of words directly below the node.
        words: the most frequent words below, in order.
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


def words_of_nodes(tree: Tree, prior: Prior, most: int) -> list[NodeWords]:
    """Return all nodes with words, level by level, heaviest first within a level.

    Args:
        most: words per node.
    """
    weights = np.exp(prior.log_weights - prior.log_weights.max())
    weights = weights / weights.sum()
    order = np.argsort(-weights, kind="stable")  # ties in the order of the dictionary
    order = order[weights[order] > 0]
    path = tree.path[prior.output.class_of[order]]  # (V, D)
    leaf_above = tree.parent[tree.internal + prior.output.class_of[order]]
    at_leaf = np.bincount(leaf_above, minlength=tree.internal)
    nodes_with_words = []
    for depth in range(tree.levels):
        is_on_level = path[:, depth] != NONE
        if not is_on_level.any():  # only words without mass are deeper
            break
        nodes, words = path[is_on_level, depth], order[is_on_level]
        share = np.bincount(nodes, weights[words], tree.internal)
        size = np.bincount(nodes, minlength=tree.internal)
        first = rank_among_equal(nodes) < most
        shown = words[first][np.argsort(nodes[first], kind="stable")]
        kinds = np.unique(nodes)
        ends = np.cumsum(np.minimum(size[kinds], most))
        lists = dict(zip(kinds.tolist(), np.split(shown, ends[:-1]), strict=True))
        for node in kinds[np.argsort(-share[kinds], kind="stable")].tolist():
            names = tuple(prior.symbols[word] for word in lists[node])
            nodes_with_words.append(
                NodeWords(
                    node, int(tree.parent[node]), depth, float(share[node]), int(size[node]), int(at_leaf[node]), names
                )
            )
    return nodes_with_words


CHILDREN = (6, 4, 3)  # children drawn per node, by its depth; deeper nodes have none
WORDS, LETTERS = 4, 14  # per node, per word
INCHES, HEIGHT = 2.6, 0.3  # per level, per node


def drawn(nodes: Sequence[NodeWords]) -> list[tuple[NodeWords, float]]:
    """Return the nodes of the picture with their heights. An inner node is centred on its drawn children.

    Args:
        nodes: from `words_of_nodes`.
    """
    below: dict[int, list[NodeWords]] = {}
    for node in nodes:
        below.setdefault(node.parent, []).append(node)
    heights_of: list[tuple[NodeWords, float]] = []
    height = 0.0

    def visit(node: NodeWords) -> float:
        nonlocal height
        most = CHILDREN[node.depth] if node.depth < len(CHILDREN) else 0
        heights = [visit(child) for child in below.get(node.node, [])[:most]]
        if heights:
            middle = (heights[0] + heights[-1]) / 2
        else:
            middle, height = height, height - 1
        heights_of.append((node, middle))
        return middle

    visit(nodes[0])
    return heights_of


def draw_tree(nodes: Sequence[NodeWords], path: Path) -> None:
    """Write a PNG with the root at the left, and lines to the drawn children. Raises OSError."""
    places = drawn(nodes)
    place_of = {node.node: (float(node.depth), height) for node, height in places}
    levels = 1 + max(node.depth for node, _ in places)
    rows = 1 - min(height for _, height in places)
    figure = new_figure(INCHES * levels, HEIGHT * rows + 0.6)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-0.05, levels)
    axes.set_ylim(-rows, 1.0)
    axes.set_axis_off()
    for node, height in places:
        if node.parent in place_of:
            x, y = place_of[node.parent]
            axes.plot([x + 0.62, node.depth - 0.02], [y, height], color="#b0b0b0", linewidth=0.8, zorder=1)
        axes.text(
            node.depth, height, _label(node), fontsize=7, va="center", zorder=2,
            bbox={"boxstyle": "round,pad=0.25", "facecolor": "#eef2f8", "edgecolor": "#4c72b0", "linewidth": 0.6},
        )  # fmt: skip
    save(figure, path, dpi=130)


def _label(node: NodeWords) -> str:
    words = (word if len(word) <= LETTERS else word[: LETTERS - 1] + "…" for word in node.words[:WORDS])
    return ", ".join(plain(word) for word in words)
