"""Masses of the nodes of a tree, and log p of all its classes or of single ones.

Sizes: N rows (positions or hypotheses), G groups of rows, S signatures, I internal nodes, D levels, J slots, C nodes
with leaves below, M maximal number of children, H hidden width, L nodes of a path.

The mass of a node is the sum over the leaves σ below: B_K(node) = Σ B_K(σ). Masses are natural logarithms. Masses of a
background without context are summed once, from the leaves up. Sparse updates (entries) change the masses of only the
nodes above them, in float64:

    B(n, node)  =  B₀(node)  +  Σ (B(n, σ) − B₀(σ))  over the entries of row n below        B₀: `shared`

If most of a mass is removed, the difference loses precision, and the row is summed again.

`all_log_probs` adds the log p of each node's choice along the paths. It is as slow as an exact layer.

`SingleVisits` returns log p of single classes for few positions (N below FEW) without a gradient, where grouping visits
would cost more than the products. Most of its time is the overhead of operations. So it uses few, from numpy, which has
a third of torch's overhead: one product per node of the path, and one exp and one sum for all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY
from fairseq_llrnn.backgrounds.class_weights import (
    ClassWeights,
    SparseUpdates,
    broadcast_groups,
    class_log_sums,
    log_sum,
)
from llrnn_research.output_trees.tree_tables import CachedMasses, TreeTables

LEAST_LEFT = 1e-6  # least remaining share of a mass for a difference, which leaves ten digits in float64
CELLS = 1 << 22  # rows × signatures summed in one chunk


def node_masses(layer: TreeTables, log_mass: Tensor) -> Tensor:
    """Return log B of all nodes: (G, S) -> (G, I + S), differentiable."""
    # a single row, shared by all positions, is summed in float64
    leaves = log_mass.double() if len(log_mass) == 1 else log_mass
    levels: list[Tensor] = []
    for begin, end in reversed(layer.spans):
        first, last = layer.tree.first[begin], layer.tree.first[end]
        children = layer.child[first:last]
        above = layer.parent[children] - begin
        is_leaf = children >= layer.internal
        # the internal children are all nodes of the next level, in order
        inner = levels[-1] if levels else leaves[:, :0]
        class_weights = torch.cat([inner, leaves[:, children[is_leaf] - layer.internal]], dim=1)
        above = torch.cat([above[~is_leaf], above[is_leaf]])
        levels.append(class_log_sums(class_weights, above, end - begin))
    return torch.cat([*reversed(levels), leaves], dim=1).to(log_mass.dtype)


def cached_masses(layer: TreeTables, log_mass: Tensor) -> Tensor:
    """Return `node_masses`, cached for a single row without a gradient, such as a background without context."""
    if len(log_mass) > 1 or log_mass.requires_grad or log_mass.is_inference():
        return node_masses(layer, log_mass)
    cache = layer.cache
    # keeping the tensor itself prevents reuse of its memory
    if cache is None or not cache.is_of(log_mass):
        layer.cache = cache = CachedMasses(log_mass, log_mass._version, node_masses(layer, log_mass).detach())
    return cache.class_weights


def entries_of(class_weights: ClassWeights) -> SparseUpdates:
    """Return the entries, summed to at most one per place, differentiable in `added`."""
    entries = class_weights.entries
    assert entries is not None
    has_mass = class_weights.shared[0, entries.classes].isfinite()  # entries do not add mass to forbidden classes
    if not bool(has_mass.all()):
        rows, classes, added = entries.rows[has_mass], entries.classes[has_mass], entries.added[has_mass]
        entries = replace(entries, rows=rows, classes=classes, added=added)
    num_classes = class_weights.shared.size(1)
    key = entries.rows * num_classes + entries.classes
    if not bool((key[1:] > key[:-1]).all()):
        key, place = torch.unique(key, return_inverse=True)
        added = entries.added.new_zeros(len(key)).index_add(0, place, entries.added)
        entries = replace(entries, rows=key // num_classes, classes=key % num_classes, added=added)
    return entries


def dense_masses(layer: TreeTables, class_weights: ClassWeights, rows: Tensor) -> Tensor:
    """Return log B of all nodes in some rows, (M,), summed directly: (M, I + S), without `constant`."""
    part = class_weights.select(rows)
    return node_masses(layer, part.apply_sparse_updates_(broadcast_groups(part.shared, len(rows)).clone()).double())


@dataclass(frozen=True)
class Changed:
    """Changes of the masses of nodes above entries, for T pairs of an entry and a node above it (or its leaf)."""

    entries: Tensor  # (T,)
    log_ratio: Tensor  # (T,) log B(n, node)/B₀(node), float64
    shares: Tensor  # (T,) B(n, σ)/B(n, node), the gradient of log_ratio in `added`


def changed_masses(
    layer: TreeTables,
    class_weights: ClassWeights,
    entries: SparseUpdates,
    base: Tensor,
    pairs: tuple[Tensor, Tensor, Tensor],
    places: int,
) -> Changed:
    """Return the changes that entries make to the masses of nodes above them.

    Args:
        base: log B₀, (I + S,).
        pairs: entries (T,), nodes (T,), and an index below `places` for each (row, node), (T,). For each (row, node),
            all entries must be included.
    """
    entry, nodes, place = pairs
    exact_base = base.double()
    added = entries.added.detach().double()[entry]
    leaf = entries.classes[entry] + layer.internal
    before = exact_base[leaf] - exact_base[nodes]  # shape: (T,), log of the share of the leaf
    after, before = before + added, before.exp()
    closed = torch.zeros_like(entry, dtype=torch.bool)
    if entries.sparse_row_mask is not None:
        closed = entries.sparse_row_mask[entries.rows[entry]]
    change = after.exp() - before.masked_fill(closed, 0.0)
    total = change.new_zeros(places).index_add_(0, place, change)[place] + (~closed).double()
    log_ratio = total.clamp_min(0.0).log()
    is_leaf = nodes == leaf
    log_ratio = torch.where(is_leaf, added, log_ratio)  # exact for the leaf itself
    unsafe = ((total < LEAST_LEFT) & ~closed | ~total.isfinite()) & ~is_leaf
    if bool(unsafe.any()):
        rows, number = torch.unique(entries.rows[entry[unsafe]], return_inverse=True)
        exact = torch.empty_like(log_ratio[unsafe])
        for chunk in torch.arange(len(rows), device=rows.device).split(max(1, CELLS // class_weights.shared.size(1))):
            summed = dense_masses(layer, class_weights, rows[chunk])
            mine = (number >= chunk[0]) & (number <= chunk[-1])
            exact[mine] = summed[number[mine] - chunk[0], nodes[unsafe][mine]]
        log_ratio[unsafe] = exact - exact_base[nodes[unsafe]]
    nothing = log_ratio.isneginf()
    shares = (after - log_ratio.masked_fill(nothing, 0.0)).exp().masked_fill(nothing, 0.0)
    return Changed(entry, log_ratio, shares)


def all_log_probs(
    layer: TreeTables, rows: tuple[Tensor, Tensor], hidden: Tensor, log_mass: Tensor, of_slots: Tensor | None
) -> Tensor:
    """Return log p of all classes: (N, H) -> (N, S + J), differentiable, with float64 sums.

    Args:
        rows: of all nodes, (I + S, H) and (I + S,).
        log_mass: (G, S).
        of_slots: scores plus masses of slots, (N, J).
    """
    weight, bias = rows
    class_weights = cached_masses(layer, log_mass).to(bias.dtype)
    if len(class_weights) > 1:
        class_weights = class_weights.repeat_interleave(len(hidden) // len(class_weights), 0)
    scores = (hidden @ weight.to(hidden.dtype).T).to(bias.dtype) + bias + class_weights
    scores = scores[:, layer.child]  # shape: (N, I + S − 1), siblings side by side
    above = layer.parent[layer.child]
    sums = class_log_sums(scores, above, layer.internal)  # shape: (N, I)
    if of_slots is None:
        return _along_paths(layer, _difference(scores, sums[:, above])).to(bias.dtype)
    root = log_sum(torch.cat([sums[:, :1], of_slots], dim=1)).unsqueeze(1)
    sums = torch.cat([root, sums[:, 1:]], dim=1)
    leaves = _along_paths(layer, _difference(scores, sums[:, above]))
    return torch.cat([leaves, _difference(of_slots, root)], dim=1).to(bias.dtype)


def _along_paths(layer: TreeTables, values: Tensor) -> Tensor:
    """Sum values of children, (N, I + S − 1) in the order of `child`, over the paths of the leaves: (N, S)."""
    total, levels = values.new_zeros(len(values), 1), []
    for begin, end in layer.spans:
        first, last = int(layer.tree.first[begin]), int(layer.tree.first[end])
        children = layer.child[first:last]
        of_children = total[:, layer.parent[children] - begin] + values[:, first:last]
        is_leaf = children >= layer.internal
        levels.append(of_children[:, is_leaf])
        total = of_children[:, ~is_leaf]
    leaves = layer.child[layer.child >= layer.internal]  # level by level
    return torch.cat(levels, dim=1)[:, torch.argsort(leaves)]


def _difference(scores: Tensor, sums: Tensor) -> Tensor:
    """Return scores − sums, or −inf without a gradient if the score is −inf."""
    nothing = scores.isneginf()
    return torch.where(nothing, NEGATIVE_INFINITY, scores - sums.masked_fill(nothing, 0.0))


FEW = 4
# Scores are summed without shifting if no exp overflows, and no sum is small enough for a loss of digits.
LARGEST_SCORE, SMALLEST_SUM = 60.0, 1e-25


class SingleVisits:
    """All rows in sibling order, followed by biases plus masses, so that a node's children are a slice."""

    def __init__(self, layer: TreeTables, rows: tuple[Tensor, Tensor], log_mass: Tensor, class_weights: Tensor) -> None:
        """
        Args:
            rows: of all nodes, (I + S, H) and (I + S,).
            log_mass: (1, S).
            class_weights: (1, I + S), the masses of nodes for `log_mass`.
        """
        bias = (rows[1] + class_weights[0].to(rows[1].dtype))[layer.filled]
        of_children = torch.cat([rows[0][layer.filled], bias.unsqueeze(1)], dim=1).detach()  # (C, H + 1)
        sizes = layer.begin.diff().tolist()
        self.rows = [rows.numpy() for rows in of_children.split(sizes)]  # of the children of each internal node
        self.arity, self.levels = max(sizes), layer.levels
        # (S, 2 D): the nodes of a path, padded with −1, and the child chosen at each
        column = layer.column.numpy()[layer.tree.chosen]
        self.plans = np.concatenate([layer.tree.path, column], axis=1).astype(np.int32)
        self.ones = np.ones(self.arity, dtype=self.rows[0].dtype)
        self.cache = CachedMasses(log_mass, log_mass._version, class_weights)

    def log_probs(self, hidden: Tensor, classes: Tensor) -> Tensor:
        """Return log p of one class at each position: (N, H), (N,) -> (N,)."""
        states = (hidden.detach() if hidden.requires_grad else hidden).numpy()
        result = np.empty(len(states), states.dtype)
        for i, of_class in enumerate(classes.tolist()):
            result[i] = self._log_prob(states[i], of_class)
        return torch.from_numpy(result)

    def _log_prob(self, hidden: np.ndarray, of_class: int) -> float:
        """Return log p of a class: hidden (H,)."""
        state = np.empty(len(hidden) + 1, hidden.dtype)
        state[:-1], state[-1] = hidden, 1.0
        plan = self.plans[of_class].tolist()
        nodes = [node for node in plan[: self.levels] if node >= 0]
        places = plan[self.levels :]
        scores = np.empty((len(nodes), self.arity), hidden.dtype)
        for node, row in zip(nodes, scores, strict=True):
            rows = self.rows[node]
            if len(rows) < self.arity:
                row[len(rows) :] = -math.inf
                row = row[: len(rows)]
            rows.dot(state, row)
        if not scores.item(scores.argmax()) < LARGEST_SCORE:
            return careful(scores, places)
        total = 0.0
        for level, partition in enumerate(np.exp(scores).dot(self.ones).tolist()):
            if partition < SMALLEST_SUM:
                return careful(scores, places)
            total += scores.item(level, places[level]) - math.log(partition)
        return total


def careful(scores: np.ndarray, places: list[int]) -> float:
    """Return log p of a path from scores of any size, (L, M); −inf also if all children of a node are impossible."""
    odds = torch.from_numpy(scores).log_softmax(1)
    of_levels = [odds[level, place].item() for level, place in enumerate(places[: len(scores)])]
    return -math.inf if any(log_prob != log_prob for log_prob in of_levels) else math.fsum(of_levels)
