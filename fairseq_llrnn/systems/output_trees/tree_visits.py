"""Which nodes the paths of some classes visit, in groups of similar size: what a product of matrices works on at once.

Sizes: N rows of hidden states, K paths, P visits, D levels, U nodes of a group, W visits of each, C children of each.
A path from the root to a class makes a visit at each node on it: a choice among its children.

Scores of visits are kept in one buffer, group by group: those of a visit follow each other. Nodes are filled up to W
visits and to C children. Groups with the same C follow each other: they are a block of rows of the same length.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_llrnn.systems.output_trees.tree_layer import TreeLayer

# numbers of visits that nodes are filled up to; from the last one on, as many as there are
SIZES = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128)


@dataclass(frozen=True)
class Group:
    """Nodes with as many visits, and as many children."""

    nodes: Tensor  # (U,)
    visits: Tensor  # (U, W), filled up with P, which is no visit
    children: Tensor  # (U, C), filled up with −1
    row: int  # the first one of its U · W rows
    begin: int  # of its children among those of all groups
    cell: int  # the first one of its U · W · C scores


@dataclass(frozen=True)
class Block:
    """Rows of one length C."""

    row: int  # the first one
    rows: int
    cell: int  # the first one
    width: int  # C

    def of(self, buffer: Tensor) -> Tensor:
        """Its scores in a buffer of all: (rows, C)."""
        return buffer[self.cell : self.cell + self.rows * self.width].view(self.rows, self.width)


@dataclass(frozen=True)
class Visits:
    """P visits, each a row of hidden states at a node, in R rows of scores.

    The first `whole` of them are those of the root, the first group, by rows 0, 1, …
    """

    rows: Tensor  # (P + 1,) of hidden states; the last one is no visit
    slots: Tensor  # (R,) which visit a row of scores is of; P: none
    row: Tensor  # (P,) the row of scores of a visit
    start: Tensor  # (P,) where it begins in the buffer
    groups: list[Group]
    blocks: list[Block]
    children: Tensor  # (C',) those of all groups, −1 for none
    cells: int  # size of the buffer
    whole: int


def grouped(layer: TreeLayer, rows: Tensor, nodes: Tensor, whole: int = 0) -> Visits:
    """The visits of rows (P,) at nodes (P,), which have children.

    Args:
        whole: so many visits at the beginning are those of the root, by rows 0, 1, …: a group of their own.
    """
    total, device = len(rows), rows.device
    ordered, order = nodes[whole:].sort(stable=True)
    different, counts = torch.unique_consecutive(ordered, return_counts=True)
    place = counts.cumsum(0) - counts
    sizes = torch.tensor(SIZES, device=device)
    filled = torch.where(counts < SIZES[-1], sizes[torch.bucketize(counts, sizes).clamp_max(len(SIZES) - 1)], counts)
    widths = layer.widths[different]
    if whole:  # blocks of the root's width come first
        widths = widths.masked_fill(widths == layer.root_width, 0)
    base = total + SIZES[-1]  # more than any number that is filled up
    key, by_size = (widths * base + filled).sort(stable=True)
    different, counts, place, filled = (x[by_size] for x in (different, counts, place, filled))
    key, many = torch.unique_consecutive(key, return_counts=True)
    # one row of scores for each place that is filled
    begin = filled.cumsum(0) - filled
    owner = torch.arange(len(filled), device=device).repeat_interleave(filled)
    step = torch.arange(len(owner), device=device) - begin[owner]
    is_visit = step < counts[owner]
    visits = order[(place[owner] + step).clamp_max(max(0, len(order) - 1))] + whole
    slots = visits.masked_fill(~is_visit, total)
    if whole:
        slots = torch.cat([torch.arange(whole, device=device), slots])
    # groups and blocks
    plan = [(width or layer.root_width, size, u) for width, size, u in _sizes(key, many, base)]
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


def _sizes(key: Tensor, many: Tensor, base: int) -> list[tuple[int, int, int]]:
    """Width, filled-up visits and number of nodes of each group."""
    return [(k // base, k % base, u) for k, u in torch.stack([key, many], dim=1).tolist()]


def _children(layer: TreeLayer, nodes: Tensor, plan: list[tuple[int, int, int]]) -> Tensor:
    """The children of nodes that have leaves, group by group, filled up with −1: (C',)."""
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
    """The visits of K paths; those of the root come first."""

    visits: Visits
    chosen: Tensor  # (K, D) nodes that a path goes on to, −1 behind its end
    numbers: Tensor  # (K, D) of the visits where it does, −1 behind it
    next: Tensor  # (P,) node that is chosen at a visit
    path: Tensor  # (P,)


def paths_of(layer: TreeLayer, classes: Tensor, is_leaf: Tensor | None = None) -> Paths:
    """The paths to classes (K,), one for each row of hidden states.

    Args:
        is_leaf: (K,) bool; where it is not, only the root is visited, and what is chosen there does not count.
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
