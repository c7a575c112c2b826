"""Which nodes the paths of some classes visit, in groups of similar size: what a product of matrices works on at once.

Sizes: N rows of hidden states, K paths, P visits, D levels, U nodes of a group, W most visits of a node of the group,
C most children of one. A path from the root to a class makes a visit at each node on it: a choice among its children.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_llrnn.output.tree_layer import TreeLayer


@dataclass(frozen=True)
class Group:
    """Nodes with similar numbers of visits and children."""

    nodes: Tensor  # (U,)
    visits: Tensor  # (U, W), filled up with P, which is no visit
    children: Tensor  # (U, C), filled up with −1
    begin: int  # of its children among those of all groups
    cells: int  # where its scores begin in the buffer of all groups; those of a visit follow each other


@dataclass(frozen=True)
class Visits:
    """P visits, each a row of hidden states at a node.

    The first `whole` of them are those of the root, the first group, by rows 0, 1, …
    """

    rows: Tensor  # (P + 1,) of hidden states; the last one is no visit
    start: Tensor  # (P + 1,) where the scores of the visit begin in the buffer
    groups: list[Group]
    children: Tensor  # (C',) those of all groups, −1 for none
    cells: int  # size of the buffer
    whole: int


def grouped(layer: TreeLayer, rows: Tensor, nodes: Tensor, whole: int = 0) -> Visits:
    """The visits of rows (P,) at nodes (P,), which have children.

    Args:
        whole: so many visits at the beginning are those of the root, by rows 0, 1, …: a group of their own.
    """
    total, device = len(rows), rows.device
    start = rows.new_zeros(total + 1)
    rows = torch.cat([rows, rows.new_zeros(1)])
    groups: list[Group] = []
    begin = cells = 0

    def add(of_group: Tensor, visits: Tensor, many: int) -> None:
        nonlocal begin, cells
        firsts = layer.first[of_group].unsqueeze(1) + torch.arange(many, device=device)
        last = layer.first[of_group + 1].unsqueeze(1)
        children = layer.child[firsts.clamp_max(len(layer.child) - 1)].masked_fill(firsts >= last, -1)
        offsets = torch.arange(cells, cells + visits.numel() * many, many, device=device)
        start[visits.flatten()] = offsets
        groups.append(Group(of_group, visits, children, begin, cells))
        begin, cells = begin + children.numel(), cells + visits.numel() * many

    if whole:
        root = rows.new_zeros(1)
        add(root, torch.arange(whole, device=device).unsqueeze(0), int(layer.first[1]))
    if total > whole:
        ordered, order = nodes[whole:].sort(stable=True)
        different, counts = torch.unique_consecutive(ordered, return_counts=True)
        ends = counts.cumsum(0)
        arity = layer.first[different + 1] - layer.first[different]
        # similar: by a factor of √2 in visits, of 2 in children
        key = (2.0 * counts.double().log2()).ceil().long() * 64 + arity.double().log2().ceil().long()
        keys, which = torch.unique(key, return_inverse=True)
        sizes = torch.stack([torch.zeros_like(keys).scatter_reduce(0, which, x, "amax") for x in (counts, arity)])
        order = order + whole
        for i, (most, many) in enumerate(sizes.T.tolist()):
            own = (which == i).nonzero().squeeze(1)
            place = (ends - counts)[own].unsqueeze(1) + torch.arange(most, device=device)
            visits = order[place.clamp_max(len(order) - 1)].masked_fill(place >= ends[own].unsqueeze(1), total)
            add(different[own], visits, many)
    start[total] = 0
    return Visits(rows, start, groups, torch.cat([group.children.flatten() for group in groups]), cells, whole)


@dataclass(frozen=True)
class Paths:
    """The visits of K paths; those of the root come first."""

    visits: Visits
    nodes: Tensor  # (K, D) visited, −1 behind the path's end
    numbers: Tensor  # (K, D) of these visits, P behind it
    chosen: Tensor  # (P,) node that the path goes on to
    path: Tensor  # (P,)


def paths_of(layer: TreeLayer, classes: Tensor, is_leaf: Tensor | None = None) -> Paths:
    """The paths to classes (K,), one for each row of hidden states.

    Args:
        is_leaf: (K,) bool; where it is not, only the root is visited, and what is chosen there does not count.
    """
    chosen = layer.chosen[classes].T.contiguous()  # shape: (D, K)
    on_path = chosen >= 0
    if is_leaf is not None:
        on_path[1:] &= is_leaf
    level, path = on_path.nonzero(as_tuple=True)  # level by level: the root's visits are the first K
    of_visit = chosen[level, path]
    nodes = layer.parent[of_visit]
    numbers = chosen.new_full(chosen.shape, len(level))
    numbers[level, path] = torch.arange(len(level), device=chosen.device)
    visited = layer.parent[chosen.clamp_min(0)].masked_fill(~on_path, -1)
    return Paths(grouped(layer, path, nodes, len(classes)), visited.T, numbers.T, of_visit, path)
