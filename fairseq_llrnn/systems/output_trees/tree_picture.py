"""The picture of an output tree (Jernite 2018, Figure 3.8): its heaviest nodes with their most frequent words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairseq_llrnn.explain.pictures import new_figure, plain, save
from fairseq_llrnn.systems.output_trees.tree_words import NodeWords

CHILDREN = (6, 4, 3)  # that are drawn of a node, by its depth; deeper nodes are not
WORDS, LETTERS = 4, 14  # of a node, of a word
INCHES, HEIGHT = 2.6, 0.3  # of a level, of a node


def drawn(nodes: Sequence[NodeWords]) -> list[tuple[NodeWords, float]]:
    """The nodes of the picture, each with its height: that of the middle of what is drawn below it.

    Args:
        nodes: as of `words_of_nodes`.
    """
    below: dict[int, list[NodeWords]] = {}
    for node in nodes:
        below.setdefault(node.parent, []).append(node)
    found: list[tuple[NodeWords, float]] = []
    height = 0.0

    def visit(node: NodeWords) -> float:
        nonlocal height
        most = CHILDREN[node.depth] if node.depth < len(CHILDREN) else 0
        heights = [visit(child) for child in below.get(node.node, [])[:most]]
        if heights:
            own = (heights[0] + heights[-1]) / 2
        else:
            own, height = height, height - 1
        found.append((node, own))
        return own

    visit(nodes[0])
    return found


def draw_tree(nodes: Sequence[NodeWords], path: Path) -> None:
    """Write a PNG: the root at the left, and lines to those children that are drawn. Raises OSError."""
    places = drawn(nodes)
    at = {node.node: (float(node.depth), height) for node, height in places}
    levels = 1 + max(node.depth for node, _ in places)
    rows = 1 - min(height for _, height in places)
    figure = new_figure(INCHES * levels, HEIGHT * rows + 0.6)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-0.05, levels)
    axes.set_ylim(-rows, 1.0)
    axes.set_axis_off()
    for node, height in places:
        if node.parent in at:
            x, y = at[node.parent]
            axes.plot([x + 0.62, node.depth - 0.02], [y, height], color="#b0b0b0", linewidth=0.8, zorder=1)
        axes.text(
            node.depth, height, _label(node), fontsize=7, va="center", zorder=2,
            bbox={"boxstyle": "round,pad=0.25", "facecolor": "#eef2f8", "edgecolor": "#4c72b0", "linewidth": 0.6},
        )  # fmt: skip
    save(figure, path, dpi=130)


def _label(node: NodeWords) -> str:
    words = (word if len(word) <= LETTERS else word[: LETTERS - 1] + "…" for word in node.words[:WORDS])
    return ", ".join(plain(word) for word in words)
