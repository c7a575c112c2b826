"""Find the most probable classes of a tree, exactly, by branch and bound (Jernite 2018, §3.2).

Sizes: N hypotheses, S signatures, I internal nodes, J slots, P visits, W nodes that a hypothesis visits in a round.

log p of a node bounds the log p of all classes below, and the share of a word in its class is at most 1. So a node need
not be visited if its log p is not above that of the k-th best word found so far. In each round a hypothesis visits its
most probable unvisited nodes. All visits of a round are computed together.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY
from fairseq_llrnn.backgrounds.class_weights import ClassWeights, broadcast_groups
from llrnn_research.output_trees.tree_masses import cached_masses, changed_masses, entries_of
from llrnn_research.output_trees.tree_scores import cells_of, fill, states_of
from llrnn_research.output_trees.tree_tables import TreeTables
from llrnn_research.output_trees.tree_visits import Visits, grouped


class MassesAt:
    """log B of any node in any of N rows, without `constant`."""

    def __init__(self, layer: TreeTables, log_mass: ClassWeights, num_rows: int) -> None:
        self.class_weights = cached_masses(layer, log_mass.shared.detach())  # shape: (G, I + S)
        self.each = max(1, num_rows // len(self.class_weights))
        self.keys: Tensor | None = None
        self.sparse_row_mask: Tensor | None = None
        if log_mass.entries is not None:
            self._change(layer, log_mass)

    def _change(self, layer: TreeTables, class_weights: ClassWeights) -> None:
        entries = entries_of(class_weights)
        on_path = layer.chosen[entries.classes]  # shape: (E, D)
        entry, level = (on_path >= 0).nonzero(as_tuple=True)
        nodes = on_path[entry, level]
        keys, place = torch.unique(entries.rows[entry] * self.class_weights.size(1) + nodes, return_inverse=True)
        base = self.class_weights[0]
        changed = changed_masses(layer, class_weights, entries, base, (entry, nodes, place), len(keys))
        self.ratios = base.new_zeros(len(keys)).index_put((place,), changed.log_ratio.to(base.dtype))
        self.keys, self.sparse_row_mask = keys, entries.sparse_row_mask

    def at(self, rows: Tensor, nodes: Tensor) -> Tensor:
        """Return log B. rows and nodes broadcast to each other."""
        class_weights = self.class_weights[
            rows // self.each if len(self.class_weights) > 1 else torch.zeros_like(rows), nodes
        ]
        if self.keys is None:
            return class_weights
        if len(self.keys):
            key = rows * self.class_weights.size(1) + nodes
            place = torch.searchsorted(self.keys, key).clamp_max(len(self.keys) - 1)
            has_entry = self.keys[place] == key
            class_weights = class_weights + torch.where(has_entry, self.ratios[place], 0.0)
        else:
            has_entry = torch.zeros_like(class_weights, dtype=torch.bool)
        if self.sparse_row_mask is not None:
            class_weights = class_weights.masked_fill(self.sparse_row_mask[rows] & ~has_entry, NEGATIVE_INFINITY)
        return class_weights


@dataclass
class _Best:
    """The k best classes of each hypothesis so far, best first."""

    values: Tensor  # (N, k) of their best words
    log_probs: Tensor  # (N, k)
    classes: Tensor  # (N, k)

    def merge(self, values: Tensor, log_probs: Tensor, classes: Tensor) -> None:
        """Merge with others, (N, ·)."""
        k = self.values.size(1)
        self.values, best_places = torch.cat([self.values, values], dim=1).topk(k, dim=1)
        self.log_probs = torch.cat([self.log_probs, log_probs], dim=1).gather(1, best_places)
        self.classes = torch.cat([self.classes, classes], dim=1).gather(1, best_places)


def best_classes(
    layer: TreeTables,
    rows: tuple[Tensor, Tensor],
    hidden: Tensor,
    class_weights: MassesAt,
    best_share: Tensor,
    k: int,
    of_slots: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the k classes with the best words: log p of these words, log p of the classes, and classes, (N, k) each.

    Args:
        rows: of all nodes, (I + S, H) and (I + S,).
        hidden: (N, H).
        best_share: from `Background.best_share`, (G, S + J).
        of_slots: scores plus masses of the slots, (N, J), in the convention of `class_weights`.
    """
    count, slots = len(hidden), 0 if of_slots is None else of_slots.size(1)
    k = min(k, layer.leaves + slots)
    bias = rows[1]
    nothing = bias.new_full((count, k), NEGATIVE_INFINITY)
    best = _Best(nothing, nothing, torch.zeros_like(nothing, dtype=torch.int64))
    waiting = bias.new_full((count, layer.internal), NEGATIVE_INFINITY)  # log p of unvisited nodes
    waiting[:, 0] = 0.0
    share = broadcast_groups(best_share.to(bias.dtype), count)
    wide = min(k, layer.internal)
    while True:
        bound, nodes = waiting.topk(wide, dim=1)
        row, column = (bound > best.values[:, -1:]).nonzero(as_tuple=True)
        if len(row) == 0:
            return best.values, best.log_probs, best.classes
        node, above = nodes[row, column], bound[row, column]
        waiting[row, node] = NEGATIVE_INFINITY
        visits = grouped(layer, row, node)
        buffer = _scores(rows, hidden, class_weights, visits)
        best_values = nothing.new_full((len(row) + 1, k), NEGATIVE_INFINITY)
        log_probs, classes = best_values.clone(), torch.zeros_like(best_values, dtype=torch.int64)
        for group in visits.groups:
            of_group, scores = group.visits, cells_of(buffer, group)
            row_of, children = visits.rows[of_group].unsqueeze(2), group.children.unsqueeze(1)
            top = scores.double().logsumexp(2, keepdim=True)  # shape: (U, W, 1)
            if of_slots is not None and bool((group.nodes == 0).any()):
                terms = torch.cat([top, of_slots[row_of.squeeze(2)]], dim=2).logsumexp(2, keepdim=True)
                top = torch.where((group.nodes == 0).view(-1, 1, 1), terms, top)
            start = torch.cat([above, above.new_zeros(1)])[of_group].unsqueeze(2)
            log_p = torch.where(scores.isneginf(), NEGATIVE_INFINITY, start + (scores - top).to(scores.dtype))
            is_node = ((children >= 0) & (children < layer.internal)).expand_as(log_p)
            real = (of_group < len(row)).unsqueeze(2)
            inner = is_node & real
            waiting[row_of.expand_as(log_p)[inner], children.expand_as(log_p)[inner]] = log_p[inner]
            of_class = (children - layer.internal).clamp_min(0)
            values = (log_p + share[row_of, of_class]).masked_fill(children < layer.internal, NEGATIVE_INFINITY)
            values, best_places = values.topk(min(k, values.size(2)), dim=2)
            flat, taken = of_group.flatten(), slice(0, values.size(2))
            best_values[flat, taken] = values.flatten(0, 1)
            log_probs[flat, taken] = log_p.gather(2, best_places).flatten(0, 1)
            classes[flat, taken] = of_class.expand_as(log_p).gather(2, best_places).flatten(0, 1)
            if of_slots is not None and bool((group.nodes == 0).any()):
                at_root = group.visits[group.nodes == 0].flatten()
                at_root = at_root[at_root < len(row)]
                sums = top.new_empty(above.shape).index_copy(0, of_group[real.squeeze(2)], top[real])
                _merge_slots(best, of_slots, sums[at_root], row[at_root], share, layer.leaves)
        width = wide * k
        padded = nothing.new_full((count, wide, k), NEGATIVE_INFINITY)
        everywhere = padded.index_put((row, column), best_values[:-1]).view(count, width)
        of_each = padded.index_put((row, column), log_probs[:-1]).view(count, width)
        numbers = torch.zeros_like(padded, dtype=torch.int64).index_put((row, column), classes[:-1]).view(count, width)
        best.merge(everywhere, of_each, numbers)


def _merge_slots(best: _Best, of_slots: Tensor, sums: Tensor, rows: Tensor, share: Tensor, static: int) -> None:
    """Merge the slots of hypotheses (n,) that visit the root, where their log Σ is `sums`, (n,)."""
    log_probs = torch.full_like(of_slots, NEGATIVE_INFINITY)
    normalised = (of_slots[rows] - sums.unsqueeze(1)).to(of_slots.dtype)
    log_probs[rows] = torch.where(of_slots[rows].isneginf(), NEGATIVE_INFINITY, normalised)
    numbers = static + torch.arange(of_slots.size(1), device=of_slots.device)
    best.merge(log_probs + share[:, static:], log_probs, numbers.expand_as(log_probs))


def _scores(rows: tuple[Tensor, Tensor], hidden: Tensor, class_weights: MassesAt, visits: Visits) -> Tensor:
    """Return the scores of all children of the visited nodes, masses included: (cells,)."""
    children = visits.children.clamp_min(0)
    bias = rows[1][children].masked_fill(visits.children < 0, NEGATIVE_INFINITY)
    buffer = fill(hidden, states_of(hidden, visits), rows[0][children].to(hidden.dtype), bias, visits)
    for group in visits.groups:
        row = visits.rows[group.visits].unsqueeze(2)
        cells_of(buffer, group).add_(class_weights.at(row, group.children.clamp_min(0).unsqueeze(1)).to(buffer.dtype))
    return buffer
