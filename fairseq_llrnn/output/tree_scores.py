"""Scores of visits, and log Σ over the children of each: the one place where the products of a tree are computed.

Sizes: N rows of hidden states, P visits, C' children of all visited nodes, H hidden width; others: tree_visits.py.

    score(visit, child)  =  h · row_child + bias_child + what the row's masses differ          bias holds log masses
    log Z(visit)         =  log Σ exp score, over the children of the visited node
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY
from fairseq_llrnn.output.tree_masses import Changed
from fairseq_llrnn.output.tree_visits import Group, Visits


@dataclass(frozen=True)
class Additions:
    """What masses of rows differ from those in the bias: at places of the buffer."""

    cells: Tensor  # (T,)
    changed: Changed
    only: Tensor | None  # (N,) rows in which a child without an addition is forbidden


@dataclass(frozen=True)
class ChildRows:
    """Rows of the children of all groups, in which those of internal nodes stand at `places`."""

    places: Tensor  # (J,) among C'
    nodes: Tensor  # (J,)


def hidden_of(hidden: Tensor, visits: Visits, group: Group) -> Tensor:
    """The hidden states of a group's visits: (U, W, H)."""
    if visits.whole and group.cells == 0:
        return hidden.unsqueeze(0)
    return hidden[visits.rows[group.visits]]


def fill(
    hidden: Tensor, rows: Tensor, bias: Tensor, visits: Visits, masses: Tensor | None, additions: Additions | None
) -> Tensor:
    """The scores of all groups in one buffer (cells,), in the dtype of the bias.

    Args:
        rows: (C', H). bias: (C',), −inf for no child. masses: of rows of hidden states, (N, I + S), to be added.
    """
    buffer = bias.new_empty(visits.cells)
    for group in visits.groups:
        scores, (nodes, many) = cells_of(buffer, group), group.children.shape
        own = slice(group.begin, group.begin + nodes * many)
        bias_of_group, weight = bias[own].view(nodes, 1, many), rows[own].view(nodes, many, -1).transpose(1, 2)
        states = hidden_of(hidden, visits, group)
        if hidden.dtype == bias.dtype:
            torch.baddbmm(bias_of_group.expand_as(scores), states, weight, out=scores)
        else:
            scores.copy_(states @ weight).add_(bias_of_group)
        if masses is not None:
            here = visits.rows[group.visits]
            scores.add_(masses[here.unsqueeze(2), group.children.clamp_min(0).unsqueeze(1)])
        if additions is not None and additions.only is not None:
            add_only(buffer, scores, visits, group, additions)
    if additions is not None and additions.only is None:
        cells = additions.cells
        buffer[cells] = buffer[cells] + additions.changed.log_ratio.to(buffer.dtype)  # those of a cell are equal
    return buffer


def add_only(buffer: Tensor, scores: Tensor, visits: Visits, group: Group, additions: Additions) -> None:
    """Additions to a group, where some rows forbid what has none; in place."""
    assert additions.only is not None
    inside = (additions.cells >= group.cells) & (additions.cells < group.cells + scores.numel())
    cells = additions.cells[inside]
    kept = buffer[cells] + additions.changed.log_ratio[inside].to(buffer.dtype)
    scores.masked_fill_(additions.only[visits.rows[group.visits]].unsqueeze(2), NEGATIVE_INFINITY)
    buffer[cells] = kept


def cells_of(buffer: Tensor, group: Group) -> Tensor:
    """The scores of a group: (U, W, C)."""
    shape = (*group.visits.shape, group.children.size(1))
    return buffer[group.cells : group.cells + shape[0] * shape[1] * shape[2]].view(shape)


def normalise(buffer: Tensor, visits: Visits) -> Tensor:
    """Scores become probabilities, in place: (cells,) -> log Z of the visits, (P + 1,). 0 where all is forbidden."""
    partition = buffer.new_empty(len(visits.rows))
    for group in visits.groups:
        scores = cells_of(buffer, group)
        top = scores.amax(2, keepdim=True)
        nothing = top.isneginf()
        torch.softmax(scores, dim=2, out=scores)
        if bool(nothing.any()):
            scores.masked_fill_(nothing, 0.0)
        largest = scores.amax(2, keepdim=True)
        of_group = top - largest.masked_fill(largest == 0.0, 1.0).log()
        partition[group.visits.flatten()] = of_group.flatten()
    return partition


class VisitScores(torch.autograd.Function):
    """The chosen child's score and log Z of each visit, with one buffer: the probabilities, kept for the gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        leaf_rows: Tensor,
        node_rows: Tensor,
        bias: Tensor,
        masses: Tensor | None,
        added: Tensor | None,
        visits: Visits,
        internal: ChildRows,
        chosen: Tensor,
        additions: Additions | None,
        kept: list[Tensor] | None,
    ) -> tuple[Tensor, Tensor]:
        """hidden (N, H), leaf_rows (C', H), node_rows (I, H), bias (C',), masses (N, I + S), added (E,): (P,), (P,).

        leaf_rows is written into: it is to be a tensor that nobody else reads. chosen: (P,), cells.
        kept: a list that gets the probabilities, (cells,).
        """
        rows = leaf_rows
        rows[internal.places] = node_rows[internal.nodes].to(rows.dtype)
        buffer = fill(hidden, rows, bias, visits, masses, additions)
        score = buffer[chosen]
        partition = normalise(buffer, visits)[:-1]
        ctx.save_for_backward(hidden, rows, buffer, chosen)
        ctx.plan = visits, internal, additions
        ctx.sizes = node_rows.shape, node_rows.dtype, None if masses is None else masses.shape, added
        if kept is not None:
            kept.append(buffer)
        return score, partition

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_score: Tensor, grad_partition: Tensor) -> tuple[Tensor | None, ...]:
        hidden, rows, probabilities, chosen = ctx.saved_tensors
        visits, internal, additions = ctx.plan
        shape, dtype, mass_shape, added = ctx.sizes
        need_hidden, need_rows, need_nodes, need_bias, need_masses, need_added, *_ = ctx.needs_input_grad
        of_partition = torch.cat([grad_partition, grad_partition.new_zeros(1)])
        delta = torch.empty_like(probabilities)  # gradient of the scores
        for group in visits.groups:
            weights = of_partition[group.visits].unsqueeze(2)
            torch.mul(cells_of(probabilities, group), weights, out=cells_of(delta, group))
        delta.index_add_(0, chosen, grad_score)
        grad_hidden = torch.zeros_like(hidden) if need_hidden else None
        grad_rows = torch.empty_like(rows) if need_rows or need_nodes else None
        grad_bias = delta.new_empty(len(rows)) if need_bias else None
        grad_masses = None if not need_masses else delta.new_zeros(mass_shape)
        for group in visits.groups:
            change, (nodes, many) = cells_of(delta, group), group.children.shape
            own = slice(group.begin, group.begin + nodes * many)
            product = change.to(hidden.dtype)
            if grad_hidden is not None:
                of_states = product @ rows[own].view(nodes, many, -1)
                if visits.whole and group.cells == 0:
                    grad_hidden += of_states.squeeze(0)
                else:
                    grad_hidden.index_add_(0, visits.rows[group.visits].flatten(), of_states.flatten(0, 1))
            if grad_rows is not None:
                states = hidden_of(hidden, visits, group)
                torch.bmm(product.transpose(1, 2), states, out=grad_rows[own].view(nodes, many, -1))
            if grad_bias is not None:
                torch.sum(change, 1, out=grad_bias[own].view(nodes, many))
            if grad_masses is not None:
                here = visits.rows[group.visits].unsqueeze(2) * mass_shape[1]
                cells = (here + group.children.clamp_min(0).unsqueeze(1)).flatten()
                grad_masses.view(-1).index_add_(0, cells, change.flatten())
        grad_nodes = None
        if need_nodes and grad_rows is not None:
            grad_nodes = torch.zeros(shape, dtype=dtype, device=rows.device)
            grad_nodes[internal.nodes] = grad_rows[internal.places].to(dtype)
        if grad_rows is not None:
            grad_rows[internal.places] = 0.0
        grad_added = None
        if need_added and additions is not None:
            of_cells = delta[additions.cells].double() * additions.changed.shares
            grad_added = added.new_zeros(len(added)).index_add_(0, additions.changed.entries, of_cells.to(added.dtype))
        return grad_hidden, grad_rows, grad_nodes, grad_bias, grad_masses, grad_added, None, None, None, None, None
