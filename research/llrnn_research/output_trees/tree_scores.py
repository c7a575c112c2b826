"""Scores of visits and log Σ over the children of each visited node, in which all products of a tree are computed.

Sizes: N rows of hidden states, P visits, C' children of all visited nodes, H hidden width, and those of tree_visits.py.

    score(visit, child)  =  h · row_child + bias_child + difference of the row's masses          bias holds log masses
    log Z(visit)         =  log Σ exp score, over the children of the visited node

A learned tree counts the labels that visit each node in a batch, and the node's probabilities (Jernite 2018, §3.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY
from fairseq_llrnn.backgrounds.class_weights import ClassWeights, SparseUpdates
from fairseq_llrnn.functional import outside_autocast
from llrnn_research.output_trees.tree_masses import Changed, changed_masses
from llrnn_research.output_trees.tree_tables import TreeTables
from llrnn_research.output_trees.tree_visits import Group, Paths, Visits


@dataclass(frozen=True)
class Additions:
    """Differences between the masses of rows and those in the bias, at places of the buffer."""

    cells: Tensor  # (T,)
    changed: Changed
    sparse_row_mask: Tensor | None  # (N,) rows in which a child without an addition is forbidden


@dataclass(frozen=True)
class ChildRows:
    """Places of internal nodes among the children of all groups."""

    places: Tensor  # (J,) among C'
    nodes: Tensor  # (J,)


def additions_of(
    layer: TreeTables, paths: Paths, class_weights: ClassWeights, entries: SparseUpdates, base: Tensor
) -> Additions:
    """Return the changes of visited nodes' children by entries. base: log masses without entries, (I + S,)."""
    entry_parts, nodes, cells = [], [], []
    alive = torch.arange(len(entries.rows), device=base.device)
    for level in range(layer.levels):
        on_path = layer.chosen[entries.classes[alive], level]
        visited = paths.chosen[entries.rows[alive], level]
        # the two paths share the node of this level
        below = (on_path >= 0) & (visited >= 0) & (layer.parent[on_path] == layer.parent[visited])
        alive, child = alive[below], on_path[below]
        entry_parts.append(alive)
        nodes.append(child)
        cells.append(paths.visits.start[paths.numbers[entries.rows[alive], level]] + layer.column[child])
    place = torch.cat(cells)
    pairs = torch.cat(entry_parts), torch.cat(nodes), place
    changed = changed_masses(layer, class_weights, entries, base, pairs, paths.visits.cells)
    return Additions(place, changed, entries.sparse_row_mask)


def states_of(hidden: Tensor, visits: Visits) -> Tensor:
    """Return the hidden states of all rows of scores except those of a whole root: (R − whole, H)."""
    return hidden.index_select(0, visits.rows[visits.slots[visits.whole :]])


def of_group(group: Group, visits: Visits, hidden: Tensor, states: Tensor) -> Tensor:
    """Return a group's part of row-wise values, such as the hidden states of its visits, (U, W, H)."""
    if visits.whole and group.row == 0:
        return hidden.unsqueeze(0)
    first = group.row - visits.whole
    return states[first : first + group.visits.numel()].view(*group.visits.shape, states.size(1))


def cells_of(buffer: Tensor, group: Group) -> Tensor:
    """Return the scores of a group, (U, W, C)."""
    shape = (*group.visits.shape, group.children.size(1))
    return buffer[group.cell : group.cell + shape[0] * shape[1] * shape[2]].view(shape)


def fill(hidden: Tensor, states: Tensor, rows: Tensor, bias: Tensor, visits: Visits) -> Tensor:
    """Return the scores of all groups in one buffer, (cells,), in the dtype of the bias.

    Args:
        states: from `states_of`.
        rows: (C', H).
        bias: (C',), −inf for no child.
    """
    buffer = bias.new_empty(visits.cells)
    for group in visits.groups:
        scores, (nodes, width) = cells_of(buffer, group), group.children.shape
        span = slice(group.begin, group.begin + nodes * width)
        group_bias, weight = bias[span].view(nodes, 1, width), rows[span].view(nodes, width, -1).transpose(1, 2)
        group_states = of_group(group, visits, hidden, states)
        if hidden.dtype != bias.dtype:  # only products are in half precision
            scores.copy_(group_states @ weight).add_(group_bias)
        elif nodes == 1:
            torch.addmm(group_bias[0, 0], group_states[0], weight[0], out=scores[0])
        else:
            torch.baddbmm(group_bias.expand_as(scores), group_states, weight, out=scores)
    return buffer


def add_masses(buffer: Tensor, class_weights: Tensor, visits: Visits) -> None:
    """Add the log masses of rows of hidden states, (N, I + S), in place."""
    for group in visits.groups:
        rows = visits.rows[group.visits].unsqueeze(2)
        cells_of(buffer, group).add_(class_weights[rows, group.children.clamp_min(0).unsqueeze(1)])


def add(buffer: Tensor, additions: Additions, visits: Visits) -> None:
    """Apply additions in place."""
    cells = additions.cells
    changed = buffer[cells] + additions.changed.log_ratio.to(buffer.dtype)  # equal for equal cells
    if additions.sparse_row_mask is not None:
        forbids = additions.sparse_row_mask[visits.rows[visits.slots]].unsqueeze(1)
        for block in visits.blocks:
            block.of(buffer).masked_fill_(forbids[block.row : block.row + block.rows], NEGATIVE_INFINITY)
    buffer[cells] = changed


def normalise(buffer: Tensor, visits: Visits) -> tuple[Tensor, Tensor]:
    """Turn scores into probabilities in place. Return each visit's largest score, and log Z minus that score: (P,).

    If all children are forbidden, these are −inf and 0.
    """
    log_sums, tops = [], []
    for block in visits.blocks:
        scores = block.of(buffer)
        top = scores.amax(1, keepdim=True)
        torch.softmax(scores, dim=1, out=scores)
        nothing = top.isneginf()
        if bool(nothing.any()):
            scores.masked_fill_(nothing, 0.0)
        largest = scores.amax(1, keepdim=True)
        log_sums.append(-largest.masked_fill(largest == 0.0, 1.0).log().squeeze(1))
        tops.append(top.squeeze(1))
    return torch.cat(tops)[visits.row], torch.cat(log_sums)[visits.row]


def gradient_of_masses(delta: Tensor, visits: Visits, shape: torch.Size) -> Tensor:
    """Return the gradient of the masses added by `add_masses`, (N, I + S)."""
    gradient = delta.new_zeros(shape)
    for group in visits.groups:
        offsets = visits.rows[group.visits].unsqueeze(2) * shape[1]
        cells = (offsets + group.children.clamp_min(0).unsqueeze(1)).flatten()
        gradient.view(-1).index_add_(0, cells, cells_of(delta, group).flatten())
    return gradient


class VisitScores(torch.autograd.Function):
    """Log p of the chosen child, and log Z, of each visit.

    One buffer holds scores, then probabilities for the gradient. log p is computed as in functional.py, without a
    difference of large numbers.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        leaf_rows: Tensor,
        node_rows: Tensor,
        bias: Tensor,
        class_weights: Tensor | None,
        added: Tensor | None,
        visits: Visits,
        internal: ChildRows,
        chosen: Tensor,
        additions: Additions | None,
        kept: list[Tensor] | None,
    ) -> tuple[Tensor, Tensor]:
        """Return log p and log Z of each visit, (P,) each.

        Args:
            hidden: (N, H).
            leaf_rows: (C', H), overwritten.
            node_rows: (I, H).
            bias: (C',).
            class_weights: masses, (N, I + S).
            added: (E,).
            chosen: (P,), cells.
            kept: a list to which the probabilities, (cells,), are appended.
        """
        rows = leaf_rows
        rows.index_copy_(0, internal.places, node_rows.index_select(0, internal.nodes).to(rows.dtype))
        states = states_of(hidden, visits)
        buffer = fill(hidden, states, rows, bias, visits)
        if class_weights is not None:
            add_masses(buffer, class_weights, visits)
        if additions is not None:
            add(buffer, additions, visits)
        score = buffer[chosen]
        top, partition = normalise(buffer, visits)
        ctx.save_for_backward(hidden, states, rows, buffer, chosen)
        ctx.plan = visits, internal, additions
        ctx.sizes = node_rows.shape, node_rows.dtype, None if class_weights is None else class_weights.shape, added
        if kept is not None:
            kept.append(buffer)
        return score - top.masked_fill(top.isneginf(), 0.0) - partition, top + partition

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_score: Tensor, grad_total: Tensor) -> tuple[Tensor | None, ...]:
        grad_partition = grad_total - grad_score
        hidden, states, rows, probabilities, chosen = ctx.saved_tensors
        visits, internal, additions = ctx.plan
        shape, dtype, mass_shape, added = ctx.sizes
        need_hidden, need_rows, need_nodes, need_bias, need_masses, need_added, *_ = ctx.needs_input_grad
        of_partition = torch.cat([grad_partition, grad_partition.new_zeros(1)])[visits.slots].unsqueeze(1)
        delta = torch.empty_like(probabilities)  # gradient of the scores
        for block in visits.blocks:
            weights = of_partition[block.row : block.row + block.rows]
            torch.mul(block.of(probabilities), weights, out=block.of(delta))
        delta.index_add_(0, chosen, grad_score)
        grad_hidden = torch.empty_like(hidden) if visits.whole else torch.zeros_like(hidden)
        of_states = torch.empty_like(states)
        grad_rows = torch.empty_like(rows) if need_rows or need_nodes else None
        grad_bias = delta.new_empty(len(rows)) if need_bias else None
        product = delta.to(hidden.dtype)
        with outside_autocast(hidden):
            for group in visits.groups:
                change, (nodes, width) = cells_of(product, group), group.children.shape
                span = slice(group.begin, group.begin + nodes * width)
                if need_hidden:
                    out = of_group(group, visits, grad_hidden, of_states)
                    torch.bmm(change, rows[span].view(nodes, width, -1), out=out)
                if grad_rows is not None:
                    group_states = of_group(group, visits, hidden, states)
                    torch.bmm(change.transpose(1, 2), group_states, out=grad_rows[span].view(nodes, width, -1))
                if grad_bias is not None:
                    torch.sum(cells_of(delta, group), 1, out=grad_bias[span].view(nodes, width))
        if need_hidden:
            grad_hidden.index_add_(0, visits.rows[visits.slots[visits.whole :]], of_states)
        grad_nodes = None
        if need_nodes and grad_rows is not None:
            grad_nodes = torch.zeros(shape, dtype=dtype, device=rows.device)
            grad_nodes.index_copy_(0, internal.nodes, grad_rows.index_select(0, internal.places).to(dtype))
        if grad_rows is not None:
            grad_rows.index_fill_(0, internal.places, 0.0)
        grad_masses = gradient_of_masses(delta, visits, mass_shape) if need_masses else None
        grad_added = None
        if need_added and additions is not None:
            of_cells = delta[additions.cells].double() * additions.changed.shares
            grad_added = added.new_zeros(len(added)).index_add_(0, additions.changed.entries, of_cells.to(added.dtype))
        return (
            grad_hidden if need_hidden else None,
            grad_rows if need_rows else None,
            grad_nodes,
            grad_bias,
            grad_masses,
            grad_added,
            *[None] * 5,
        )


@dataclass(frozen=True)
class VisitProbabilities:
    """Statistics for a learned tree: visits of nodes, and the probabilities of their children."""

    labels: Tensor  # (P,) target signatures
    nodes: Tensor  # (P,)
    probabilities: Tensor  # (P, M) of the children in their order, padded with 0


def visit_probabilities(
    layer: TreeTables, paths: Paths, probabilities: Tensor, classes: Tensor, is_leaf: Tensor | None
) -> list[VisitProbabilities]:
    """Return the statistics of all visits except those of slots, in groups.

    Args:
        probabilities: the normalised buffer.
        classes: (N,) of the paths.
        is_leaf: as in `paths_of`.
    """
    groups = []
    for group in paths.visits.groups:
        visits = group.visits.flatten()
        real = visits < len(paths.path)
        path = paths.path[visits.clamp_max(len(paths.path) - 1)]
        if is_leaf is not None:
            real &= is_leaf[path]
        nodes = group.nodes.repeat_interleave(group.visits.size(1))
        by_place = cells_of(probabilities, group)
        place = layer.place[group.children.clamp_min(0)].unsqueeze(1).expand_as(by_place)  # padding has p = 0
        by_place = by_place.new_zeros(*by_place.shape[:2], layer.arity).scatter_add_(2, place, by_place)
        groups.append(VisitProbabilities(classes[path][real], nodes[real], by_place.flatten(0, 1)[real]))
    return groups
