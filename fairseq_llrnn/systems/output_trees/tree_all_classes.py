"""log p of all classes of a tree: every node's choice, added up along the paths. As slow as an exact layer.

Sizes: N positions, G groups of them, S signatures, I internal nodes, J slots, H hidden width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY
from fairseq_llrnn.backgrounds.masses import class_log_sums, log_sum
from fairseq_llrnn.systems.output_trees.tree_layer import TreeLayer
from fairseq_llrnn.systems.output_trees.tree_masses import kept_masses


def all_log_probs(
    layer: TreeLayer, rows: tuple[Tensor, Tensor], hidden: Tensor, log_mass: Tensor, of_slots: Tensor | None
) -> Tensor:
    """(N, H) -> (N, S + J), differentiable. Sums, and what is less than them, are in float64.

    Args:
        rows: of all nodes, (I + S, H) and (I + S,). log_mass: (G, S). of_slots: scores and masses of slots, (N, J).
    """
    weight, bias = rows
    masses = kept_masses(layer, log_mass).to(bias.dtype)
    if len(masses) > 1:
        masses = masses.repeat_interleave(len(hidden) // len(masses), 0)
    scores = (hidden @ weight.to(hidden.dtype).T).to(bias.dtype) + bias + masses
    scores = scores[:, layer.child]  # shape: (N, I + S − 1), siblings side by side
    above = layer.parent[layer.child]
    sums = class_log_sums(scores, above, layer.internal)  # shape: (N, I)
    if of_slots is None:
        return _along_paths(layer, _difference(scores, sums[:, above])).to(bias.dtype)
    root = log_sum(torch.cat([sums[:, :1], of_slots], dim=1)).unsqueeze(1)
    sums = torch.cat([root, sums[:, 1:]], dim=1)
    leaves = _along_paths(layer, _difference(scores, sums[:, above]))
    return torch.cat([leaves, _difference(of_slots, root)], dim=1).to(bias.dtype)


def _along_paths(layer: TreeLayer, each: Tensor) -> Tensor:
    """Sums of what children have, (N, I + S − 1) in the order of `child`, over the paths of the leaves: (N, S)."""
    total, levels = each.new_zeros(len(each), 1), []
    for begin, end in layer.spans:
        first, last = int(layer.tree.first[begin]), int(layer.tree.first[end])
        children = layer.child[first:last]
        of_children = total[:, layer.parent[children] - begin] + each[:, first:last]
        is_leaf = children >= layer.internal
        levels.append(of_children[:, is_leaf])
        total = of_children[:, ~is_leaf]
    leaves = layer.child[layer.child >= layer.internal]  # level by level, as nodes are numbered
    return torch.cat(levels, dim=1)[:, torch.argsort(leaves)]


def _difference(scores: Tensor, sums: Tensor) -> Tensor:
    """scores − sums; −inf where the score is, without a gradient."""
    nothing = scores.isneginf()
    return torch.where(nothing, NEGATIVE_INFINITY, scores - sums.masked_fill(nothing, 0.0))
