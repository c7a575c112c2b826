"""The log-linear output over a tree of signatures: a choice among the children of each node on a path from the root.

Sizes: N positions, S signatures, I internal nodes, J slots, H hidden width, D levels.

    p(σ | K)  =  Π p(child | node, K) over the path of σ
    p(child | node, K)  ∝  B_K(child) exp(h · row_child + bias_child)

B_K(child) is the mass of all leaves below the child. A tree whose rows are zeros is therefore the background: every
factor is B_K(child)/B_K(node). Classes that the background forbids have no probability. A leaf has the row of its
signature (LogLinearOutput.composed), an internal node its own (tree_tables.py). Slots are further children of the root.
Source: Jernite 2018, equations 2.6 (two levels) and 3.9; the background is our addition.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY
from fairseq_llrnn.backgrounds.class_weights import ClassWeights, broadcast_groups, log_shares
from fairseq_llrnn.output.feature_weights import at_least_float32
from fairseq_llrnn.output.normalisers import LogLinearOutput, SlotScores
from llrnn_research.output_trees.composed_rows import compose_once
from llrnn_research.output_trees.tree_masses import FEW, SingleVisits, all_log_probs, cached_masses, entries_of
from llrnn_research.output_trees.tree_scores import (
    ChildRows,
    VisitProbabilities,
    VisitScores,
    additions_of,
    visit_probabilities,
)
from llrnn_research.output_trees.tree_search import MassesAt, best_classes
from llrnn_research.output_trees.tree_tables import TreeTables
from llrnn_research.output_trees.tree_visits import Paths, paths_of


class TreeOutput:
    """An output layer and a tree, for one batch or one search.

    Create it inside the forward pass that uses its parameters.

    Args:
        composed: rows (S, H') and biases (S,) of all signatures, for repeated use. By default only the rows that
            targets need are composed.
    """

    def __init__(
        self, output: LogLinearOutput, layer: TreeTables, composed: tuple[Tensor, Tensor] | None = None
    ) -> None:
        if composed is None and layer.rows == "composed":
            composed = output.composed()
        self.output, self.layer, self.composed = output, layer, composed
        self.node_rows, self.node_bias = layer.internal_rows(composed)
        self.visits_of_one: SingleVisits | None = None

    @torch.no_grad()
    def log_probs_of(
        self,
        hidden: Tensor,
        classes: Tensor,
        log_mass: Tensor | ClassWeights,
        slots: SlotScores | None = None,
        temperature: float | Tensor = 1.0,
    ) -> Tensor:
        """Return log p of classes (N, K) at each position, without a gradient: (N, K)."""
        num_rows, num_classes = classes.shape
        row = torch.arange(num_rows, device=classes.device).repeat_interleave(num_classes)
        tempered, hidden, slots = self._tempered(hidden, slots, temperature)
        if slots is not None:
            slots = SlotScores(slots.scores[row], slots.log_mass[row])
        class_weights = ClassWeights.of(log_mass, num_rows).repeated(num_classes)
        return tempered.class_log_prob(hidden[row], classes.flatten(), class_weights, slots).view_as(classes)

    def class_log_prob(
        self,
        hidden: Tensor,
        classes: Tensor,
        log_mass: Tensor | ClassWeights,
        slots: SlotScores | None = None,
        visited: list[VisitProbabilities] | None = None,
    ) -> Tensor:
        """Return log p of one class (or slot, from S on) at each position: (N, H), (N,) -> (N,), at least float32.

        The cost grows with the number of children of the nodes on the paths.

        Args:
            visited: a list to which the statistics of a learned tree are appended.
        """
        log_mass = ClassWeights.of(log_mass, len(hidden))
        if slots is None and visited is None and self._single(hidden, log_mass):
            return self._one_by_one(hidden, classes, log_mass.shared)
        layer, static, is_leaf = self.layer, self.layer.leaves, None
        slot = classes - static
        if slots is not None:
            is_leaf = slot < 0
            classes = classes.masked_fill(~is_leaf, 0)
        paths = paths_of(layer, classes, is_leaf)
        if log_mass.entries is not None and log_mass.shared.requires_grad:
            log_mass = ClassWeights(log_mass.dense(), len(hidden))
        class_weights = cached_masses(layer, log_mass.shared)
        rows, bias, internal = self._children(paths.visits.children, hidden.dtype)
        if len(class_weights) == 1:
            bias = bias + class_weights[0].to(bias.dtype)[paths.visits.children]
            row_weights = None
        else:
            row_weights = broadcast_groups(class_weights.to(bias.dtype), log_mass.num_rows).contiguous()
        bias = bias.masked_fill(paths.visits.children < 0, NEGATIVE_INFINITY)
        added, additions = None, None
        if log_mass.entries is not None:
            entries = entries_of(log_mass)
            added, additions = entries.added, additions_of(layer, paths, log_mass, entries, class_weights[0].detach())
        cells = paths.visits.start + layer.column[paths.next]
        buffers: list[Tensor] | None = None if visited is None else []
        score, partition = VisitScores.apply(
            hidden, rows, self.node_rows, bias, row_weights, added, paths.visits, internal, cells, additions, buffers
        )
        if visited is not None and buffers:
            visited.extend(visit_probabilities(layer, paths, buffers[0], classes, is_leaf))
        # visits of the root come first
        return self._log_prob(paths, score, partition, slot, slots, log_mass)

    def _single(self, hidden: Tensor, log_mass: ClassWeights) -> bool:
        """Return whether few positions can be computed one by one: without a gradient, with composed rows."""
        return (
            hidden.size(0) < FEW
            and hidden.is_cpu
            and self.composed is not None
            and not torch.is_grad_enabled()
            and log_mass.entries is None
            and len(log_mass.shared) == 1
            and not log_mass.shared.is_inference()
            and hidden.dtype == self.composed[1].dtype
        )

    def _one_by_one(self, hidden: Tensor, classes: Tensor, log_mass: Tensor) -> Tensor:
        visits = self.visits_of_one
        if visits is None or not visits.cache.is_of(log_mass):
            class_weights = cached_masses(self.layer, log_mass.detach())
            self.visits_of_one = visits = SingleVisits(self.layer, self.all_rows, log_mass, class_weights)
        return visits.log_probs(hidden, classes)

    def _log_prob(
        self,
        paths: Paths,
        score: Tensor,
        partition: Tensor,
        slot: Tensor,
        slots: SlotScores | None,
        log_mass: ClassWeights,
    ) -> Tensor:
        """Return log p, (N,), from the visits' log p and log Z, (P,): −inf, without a gradient, for forbidden classes.
        """
        total_rows = len(slot)
        at_root = score[:total_rows]
        if slots is not None:
            of_slots = _slot_totals(slots, log_mass)
            shares = log_shares(torch.cat([partition[:total_rows].unsqueeze(1), of_slots], dim=1))  # shape: (N, 1 + J)
            of_slot = shares.gather(1, 1 + slot.clamp_min(0).unsqueeze(1)).squeeze(1)
            at_root = torch.where(slot >= 0, of_slot, at_root + shares[:, 0])
        forbidden = at_root.isneginf()
        below = paths.path[total_rows:]
        none = score[total_rows:].isneginf()
        forbidden = forbidden | torch.zeros_like(forbidden).index_fill(0, below[none], True)
        log_prob_below = torch.where(forbidden[below], 0.0, score[total_rows:])
        total = torch.where(forbidden, NEGATIVE_INFINITY, at_root)
        return total.index_add(0, below, log_prob_below)

    def _children(self, children: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor, ChildRows]:
        """Return rows (C', H) of children (C',) without those of internal nodes, all biases, and the missing places."""
        is_leaf = children >= self.layer.internal
        classes = torch.where(is_leaf, children - self.layer.internal, -1)
        places = ((children >= 0) & ~is_leaf).nonzero().squeeze(1)
        nodes = children[places]
        if self.composed is None:
            weight, feature_bias = self.output.weight, at_least_float32(self.output.bias)
            of_features = self.output.rows, weight, feature_bias
            rows, bias = compose_once(*of_features, classes, self.layer.sparse_gradients)
        else:
            rows = functional.embedding(classes.clamp_min(0), self.composed[0])
            bias = self.composed[1][classes.clamp_min(0)].masked_fill(~is_leaf, 0.0)
        bias = bias.index_put((places,), self.node_bias[nodes].to(bias.dtype))
        return rows.to(dtype), bias, ChildRows(places, nodes)

    # ---- a search ---------------------------------------------------------------------------------------------------

    @cached_property
    def all_rows(self) -> tuple[Tensor, Tensor]:
        """Return rows and biases of all nodes, (I + S, H') and (I + S,)."""
        rows, bias = self.output.composed() if self.composed is None else self.composed
        return torch.cat([self.node_rows.to(rows.dtype), rows]), torch.cat([self.node_bias.to(bias.dtype), bias])

    def _tempered(
        self, hidden: Tensor, slots: SlotScores | None, temperature: float | Tensor
    ) -> tuple[TreeOutput, Tensor, SlotScores | None]:
        """Return a layer, hidden states and slots whose scores are divided by the temperature, a number or (N, 1)."""
        if isinstance(temperature, float) and temperature == 1.0:
            return self, hidden, slots
        rows, bias = self.output.composed() if self.composed is None else self.composed
        tempered = copy(self)
        tempered.__dict__.pop("all_rows", None)
        tempered.visits_of_one = None
        # biases are divided too, as a column of the rows
        tempered.composed = torch.cat([rows, bias.unsqueeze(1).to(rows.dtype)], dim=1), torch.zeros_like(bias)
        bias_column = self.node_bias.unsqueeze(1).to(self.node_rows.dtype)
        tempered.node_rows = torch.cat([self.node_rows, bias_column], dim=1)
        tempered.node_bias = torch.zeros_like(self.node_bias)
        if slots is not None:
            slots = SlotScores(slots.scores / temperature, slots.log_mass)
        return tempered, torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1) / temperature, slots

    def best_classes(
        self,
        hidden: Tensor,
        log_mass: Tensor | ClassWeights,
        best_share: Tensor,
        k: int,
        slots: SlotScores | None = None,
        temperature: float | Tensor = 1.0,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the k classes with the best words: log p of words, log p of classes, and classes, (N, k) each.

        Args:
            log_mass, slots, temperature: as in `class_log_probs`.
            best_share: from Background.best_share, (G, S + J).
        """
        log_mass = ClassWeights.of(log_mass, len(hidden))
        tempered, hidden, slots = self._tempered(hidden, slots, temperature)
        of_slots = None if slots is None else _slot_totals(slots, log_mass)
        class_weights = MassesAt(self.layer, log_mass, len(hidden))
        return best_classes(self.layer, tempered.all_rows, hidden, class_weights, best_share, k, of_slots)

    # ---- all classes ------------------------------------------------------------------------------------------------

    def class_log_probs(
        self,
        hidden: Tensor,
        log_mass: Tensor | ClassWeights,
        slots: SlotScores | None = None,
        temperature: float | Tensor = 1.0,
    ) -> Tensor:
        """Return log p of all classes: (N, H) -> (N, S + J), at least float32.

        Args:
            log_mass, slots: as in `class_log_prob`.
            temperature: divides all scores except the masses; a number or (N, 1).
        """
        log_mass = ClassWeights.of(log_mass, len(hidden))
        tempered, hidden, slots = self._tempered(hidden, slots, temperature)
        of_slots = None if slots is None else slots.scores + slots.log_mass.to(slots.scores.dtype)
        shared = log_mass.shared if log_mass.entries is None else log_mass.dense()
        return all_log_probs(self.layer, tempered.all_rows, hidden, shared, of_slots)

    def smoothing_gain(
        self,
        hidden: Tensor,
        classes: Tensor,
        log_q: Tensor,
        log_mass: Tensor | ClassWeights,
        slots: SlotScores | None = None,
    ) -> Tensor:
        """Return the effect of label smoothing on log p(target) per unit of ε: (N, H), (N,) -> (N,).

        As ExactRows.smoothing_gain: E_q[s] − s(target), with s(σ) = log p(σ | K) − log B_K(σ). Computes all classes.

        Args:
            log_q: log q, broadcastable to (N, S + J).
        """
        log_mass = ClassWeights(ClassWeights.of(log_mass, len(hidden)).dense(), len(hidden))
        log_probs = self.class_log_probs(hidden, log_mass, slots)
        before = log_mass.shared.to(log_probs.dtype)
        if slots is not None:
            before = torch.cat([before, slots.log_mass.to(before.dtype)], dim=1)
        gain = torch.where(before.isneginf(), 0.0, log_probs - before.masked_fill(before.isneginf(), 0.0))
        q = log_q.detach().to(gain.dtype).softmax(-1)
        return (q * gain).sum(-1) - gain.gather(-1, classes.unsqueeze(-1)).squeeze(-1)


def _slot_totals(slots: SlotScores, log_mass: ClassWeights) -> Tensor:
    """Return scores plus masses of slots, (N, J), without the row constant that the masses of nodes also lack."""
    return log_mass.without_constant(slots.scores + slots.log_mass.to(slots.scores.dtype))
