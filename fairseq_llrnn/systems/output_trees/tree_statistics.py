"""What a learned tree counts of a batch (Jernite 2018, §3.3): which labels came to which nodes, and what these said.

Sizes: P visits, M most children of a node.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fairseq_llrnn.systems.output_trees.tree_layer import TreeLayer
from fairseq_llrnn.systems.output_trees.tree_scores import cells_of
from fairseq_llrnn.systems.output_trees.tree_visits import Paths


@dataclass(frozen=True)
class VisitProbabilities:
    """What a learned tree counts: visits of nodes, and the probabilities of their children."""

    labels: Tensor  # (P,) signatures that were to be predicted
    nodes: Tensor  # (P,)
    probabilities: Tensor  # (P, M) of the children in their order; 0 for what is no child


def visit_probabilities(
    layer: TreeLayer, paths: Paths, probabilities: Tensor, classes: Tensor, is_leaf: Tensor | None
) -> list[VisitProbabilities]:
    """Of all visits, in groups; those of slots are left out.

    Args:
        probabilities: the buffer of tree_scores.py, normalised. classes: (N,) of the paths. is_leaf: as of `paths_of`.
    """
    found = []
    for group in paths.visits.groups:
        visits = group.visits.flatten()
        real = visits < len(paths.path)
        path = paths.path[visits.clamp_max(len(paths.path) - 1)]
        if is_leaf is not None:
            real &= is_leaf[path]
        nodes = group.nodes.repeat_interleave(group.visits.size(1))
        each = cells_of(probabilities, group)
        place = layer.place[group.children.clamp_min(0)].unsqueeze(1).expand_as(each)  # of what is no child: p is 0
        each = each.new_zeros(*each.shape[:2], layer.arity).scatter_add_(2, place, each)
        found.append(VisitProbabilities(classes[path][real], nodes[real], each.flatten(0, 1)[real]))
    return found
