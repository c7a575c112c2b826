"""Masses of the nodes of a tree: B_K(node) = Σ B_K(σ) over the leaves σ below.

Sizes: N rows (positions or hypotheses), G groups of rows, S signatures, I internal nodes, D levels, E entries. Masses
are natural logarithms. Of a background that is the same everywhere they are summed once, from the leaves up. Entries
change the masses of the few nodes above their entries,

    B(n, node)  =  B₀(node)  +  Σ (B(n, σ) − B₀(σ))  over the entries of row n below        B₀: `shared`

in float64. Where most of a mass is taken away, the difference has too few digits: such rows are summed anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.masses import Entries, Masses, class_log_sums, each_row
from fairseq_llrnn.systems.output_trees.tree_layer import Kept, TreeLayer

LEAST_LEFT = 1e-6  # share of a mass that a difference may leave: float64 has ten digits of it
CELLS = 1 << 22  # rows × signatures that are summed anew together


def node_masses(layer: TreeLayer, log_mass: Tensor) -> Tensor:
    """log B of all nodes: (G, S) -> (G, I + S), differentiable."""
    # one row is summed in float64, since it serves all positions
    leaves = log_mass.double() if len(log_mass) == 1 else log_mass
    levels: list[Tensor] = []
    for begin, end in reversed(layer.spans):
        first, last = layer.tree.first[begin], layer.tree.first[end]
        children = layer.child[first:last]
        above = layer.parent[children] - begin
        is_leaf = children >= layer.internal
        # siblings that are internal are all nodes of the next level, in their order
        inner = levels[-1] if levels else leaves[:, :0]
        masses = torch.cat([inner, leaves[:, children[is_leaf] - layer.internal]], dim=1)
        above = torch.cat([above[~is_leaf], above[is_leaf]])
        levels.append(class_log_sums(masses, above, end - begin))
    return torch.cat([*reversed(levels), leaves], dim=1).to(log_mass.dtype)


def kept_masses(layer: TreeLayer, log_mass: Tensor) -> Tensor:
    """As `node_masses`; those of one row without a gradient, as of a background without context, are kept."""
    if len(log_mass) > 1 or log_mass.requires_grad or log_mass.is_inference():
        return node_masses(layer, log_mass)
    kept = layer.kept
    # the tensor itself is kept as well, so that nothing else can have its memory
    if kept is None or not kept.of(log_mass):
        layer.kept = kept = Kept(log_mass, log_mass._version, node_masses(layer, log_mass).detach())
    return kept.masses


def entries_of(masses: Masses) -> Entries:
    """The entries, at most one for each place, differentiable in `added`: those of a place are added up."""
    entries = masses.entries
    assert entries is not None
    has_mass = masses.shared[0, entries.classes].isfinite()  # what has no mass at all has none here, either
    if not bool(has_mass.all()):
        rows, classes, added = entries.rows[has_mass], entries.classes[has_mass], entries.added[has_mass]
        entries = replace(entries, rows=rows, classes=classes, added=added)
    num_classes = masses.shared.size(1)
    key = entries.rows * num_classes + entries.classes
    if not bool((key[1:] > key[:-1]).all()):
        key, which = torch.unique(key, return_inverse=True)
        added = entries.added.new_zeros(len(key)).index_add(0, which, entries.added)
        entries = replace(entries, rows=key // num_classes, classes=key % num_classes, added=added)
    return entries


def dense_masses(layer: TreeLayer, masses: Masses, rows: Tensor) -> Tensor:
    """log B of all nodes in some rows, (M,), summed without a difference: (M, I + S), without `constant`."""
    some = masses.select(rows)
    return node_masses(layer, some.correct(each_row(some.shared, len(rows)).clone()).double())


@dataclass(frozen=True)
class Changed:
    """Masses of nodes above entries: for T pairs of an entry and a node above it (or its leaf itself)."""

    entries: Tensor  # (T,)
    log_ratio: Tensor  # (T,) log B(n, node)/B₀(node), float64
    shares: Tensor  # (T,) B(n, σ)/B(n, node), the gradient of log_ratio in `added`


def changed_masses(
    layer: TreeLayer,
    masses: Masses,
    entries: Entries,
    base: Tensor,
    pairs: tuple[Tensor, Tensor, Tensor],
    places: int,
) -> Changed:
    """What entries change of nodes above them.

    Args:
        base: log B₀, (I + S,).
        pairs: entries (T,), nodes (T,), and for each (row, node) a number of its own below `places`: (T,). Of a pair
            (row, node), all entries are there.
    """
    which, nodes, place = pairs
    exact_base = base.double()
    added = entries.added.detach().double()[which]
    leaf = entries.classes[which] + layer.internal
    before = exact_base[leaf] - exact_base[nodes]  # shape: (T,), log of the share of the leaf
    after, before = before + added, before.exp()
    closed = torch.zeros_like(which, dtype=torch.bool)
    if entries.only is not None:
        closed = entries.only[entries.rows[which]]
    change = after.exp() - before.masked_fill(closed, 0.0)
    total = change.new_zeros(places).index_add_(0, place, change)[place] + (~closed).double()
    log_ratio = total.clamp_min(0.0).log()
    is_leaf = nodes == leaf
    log_ratio = torch.where(is_leaf, added, log_ratio)  # nothing is subtracted where there is no other leaf
    unsafe = ((total < LEAST_LEFT) & ~closed | ~total.isfinite()) & ~is_leaf
    if bool(unsafe.any()):
        rows, number = torch.unique(entries.rows[which[unsafe]], return_inverse=True)
        exact = torch.empty_like(log_ratio[unsafe])
        for some in torch.arange(len(rows), device=rows.device).split(max(1, CELLS // masses.shared.size(1))):
            summed = dense_masses(layer, masses, rows[some])
            mine = (number >= some[0]) & (number <= some[-1])
            exact[mine] = summed[number[mine] - some[0], nodes[unsafe][mine]]
        log_ratio[unsafe] = exact - exact_base[nodes[unsafe]]
    nothing = log_ratio.isneginf()
    shares = (after - log_ratio.masked_fill(nothing, 0.0)).exp().masked_fill(nothing, 0.0)
    return Changed(which, log_ratio, shares)
