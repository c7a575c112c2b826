"""Visits of nodes along paths, in groups of similar size, each of which is one matrix product.

Sizes: N rows of hidden states, K paths, P visits, D levels, U nodes of a group, W visits of each, C children of each. A
path from the root to a class visits each node on it; a visit is a choice among the node's children.

Scores are stored in one buffer, group by group, and those of a visit are contiguous. Nodes are padded to W visits and
to C children. Adjacent groups with equal C form a block of rows of equal length.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from llrnn_research.output_trees.tree_tables import TreeTables

# numbers of visits to which nodes are padded; from the last one on, there is no padding
SIZES = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128)


@dataclass(frozen=True)
class Group:
    """Nodes padded to the same numbers of visits and children."""

    nodes: Tensor  # (U,)
    visits: Tensor  # (U, W), padded with P
    children: Tensor  # (U, C), padded with −1
    row: int  # the first of its U · W rows
    begin: int  # index of its first child among the children of all groups
    cell: int  # the first of its U · W · C scores


@dataclass(frozen=True)
class Block:
    """Rows of equal length C."""

    row: int  # the first row
    rows: int
    cell: int  # the first cell
    width: int  # C

    def of(self, buffer: Tensor) -> Tensor:
        """Return its scores in the buffer: (rows, C)."""
        return buffer[self.cell : self.cell + self.rows * self.width].view(self.rows, self.width)


@dataclass(frozen=True)
class Visits:
    """P visits, each a row of hidden states at a node, in R rows of scores.

    The first `whole` of them are visits of the root, the first group, by rows 0, 1, …
    """

    rows: Tensor  # (P + 1,) of hidden states; the last one is padding
    slots: Tensor  # (R,) the visit of a row of scores; P: none
    row: Tensor  # (P,) the row of scores of a visit
    start: Tensor  # (P,) its first cell in the buffer
    groups: list[Group]
    blocks: list[Block]
    children: Tensor  # (C',) of all groups, padded with −1
    cells: int  # size of the buffer
    whole: int


def grouped(layer: TreeTables, rows: Tensor, nodes: Tensor, whole: int = 0) -> Visits:
    """Return the visits of rows (P,) at nodes (P,), which must have children.

    Args:
        whole: number of visits at the beginning that are of the root, by rows 0, 1, …; they form a group.
    """
    total, device = len(rows), rows.device
    ordered, order = nodes[whole:].sort(stable=True)
    different, counts = torch.unique_consecutive(ordered, return_counts=True)
    place = counts.cumsum(0) - counts
    sizes = torch.tensor(SIZES, device=device)
    filled = torch.where(counts < SIZES[-1], sizes[torch.bucketize(counts, sizes).clamp_max(len(SIZES) - 1)], counts)
    widths = layer.widths[different]
    if whole:  # sort blocks of the root's width first
        widths = widths.masked_fill(widths == layer.root_width, 0)
    base = total + SIZES[-1]  # above any padded number
    key, by_size = (widths * base + filled).sort(stable=True)
    different, counts, place, filled = (x[by_size] for x in (different, counts, place, filled))
    key, num_nodes = torch.unique_consecutive(key, return_counts=True)
    # one row of scores for each padded place
    begin = filled.cumsum(0) - filled
    owner = torch.arange(len(filled), device=device).repeat_interleave(filled)
    step = torch.arange(len(owner), device=device) - begin[owner]
    is_visit = step < counts[owner]
    visits = order[(place[owner] + step).clamp_max(max(0, len(order) - 1))] + whole
    slots = visits.masked_fill(~is_visit, total)
    if whole:
        slots = torch.cat([torch.arange(whole, device=device), slots])
    # groups and blocks
    plan = [(width or layer.root_width, size, u) for width, size, u in _sizes(key, num_nodes, base)]
    if whole:
        plan.insert(0, (layer.root_width, whole, 1))
        different = torch.cat([different.new_zeros(1), different])
    children = _children(layer, different, plan)
    groups: list[Group] = []
    blocks: list[Block] = []
    node = row = first = cell = 0
    for width, size, u in plan:
        of_visits = slots[row : row + u * size].view(u, size)
        of_group = children[first : first + u * width].view(u, width)
        groups.append(Group(different[node : node + u], of_visits, of_group, row, first, cell))
        if blocks and blocks[-1].width == width:
            last = blocks.pop()
            blocks.append(Block(last.row, last.rows + u * size, last.cell, width))
        else:
            blocks.append(Block(row, u * size, cell, width))
        node, row, first, cell = node + u, row + u * size, first + u * width, cell + u * size * width
    cells_of_rows = [
        torch.arange(block.cell, block.cell + block.rows * block.width, block.width, device=device) for block in blocks
    ]
    of_visit = slots.new_empty(total + 1)
    of_visit[slots] = torch.arange(len(slots), device=device)
    of_visit = of_visit[:-1]
    start = torch.cat(cells_of_rows)[of_visit]
    rows = torch.cat([rows, rows.new_zeros(1)])
    return Visits(rows, slots, of_visit, start, groups, blocks, children, cell, whole)


def _sizes(key: Tensor, num_nodes: Tensor, base: int) -> list[tuple[int, int, int]]:
    """Return width, padded number of visits, and number of nodes of each group."""
    return [(k // base, k % base, u) for k, u in torch.stack([key, num_nodes], dim=1).tolist()]


def _children(layer: TreeTables, nodes: Tensor, plan: list[tuple[int, int, int]]) -> Tensor:
    """Return the children of nodes that have leaves, group by group, padded with −1: (C',)."""
    parts, begin, end = [], 0, 0
    for i, (width, _, u) in enumerate(plan):
        end += u
        if i + 1 < len(plan) and plan[i + 1][0] == width:
            continue
        firsts = layer.begin[nodes[begin:end]].unsqueeze(1) + torch.arange(width, device=nodes.device)
        last = layer.begin[nodes[begin:end] + 1].unsqueeze(1)
        children = layer.filled[firsts.clamp_max(len(layer.filled) - 1)]
        parts.append(children.masked_fill(firsts >= last, -1).flatten())
        begin = end
    return torch.cat(parts)


@dataclass(frozen=True)
class Paths:
    """The visits of K paths, those of the root first."""

    visits: Visits
    chosen: Tensor  # (K, D) nodes chosen along a path, padded with −1
    numbers: Tensor  # (K, D) of the visits along a path, padded with −1
    next: Tensor  # (P,) node chosen at a visit
    path: Tensor  # (P,)


def paths_of(layer: TreeTables, classes: Tensor, is_leaf: Tensor | None = None) -> Paths:
    """Return the paths to classes (K,), one for each row of hidden states.

    Args:
        is_leaf: (K,) bool; if False, only the root is visited, and the choice there is ignored.
    """
    chosen = layer.chosen.index_select(0, classes).T.contiguous()  # shape: (D, K)
    if is_leaf is not None:
        chosen[1:] = chosen[1:].masked_fill(~is_leaf, -1)
    on_path = chosen >= 0
    level, path = on_path.nonzero(as_tuple=True)  # level by level: the root's visits are the first K
    following = chosen[level, path]
    numbers = torch.full_like(chosen, -1)
    numbers[level, path] = torch.arange(len(level), device=chosen.device)
    return Paths(grouped(layer, path, layer.parent[following], len(classes)), chosen.T, numbers.T, following, path)
