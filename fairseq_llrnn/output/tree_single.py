"""log p of single classes without a gradient, where groups of visits would cost more than the products: N below FEW.

Sizes: S signatures, I internal nodes, H hidden width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fairseq_llrnn.output.tree_layer import Kept, TreeLayer

FEW = 4


class SingleVisits:
    """All rows in the order of siblings, with masses in the biases: the children of a node are a slice."""

    def __init__(self, layer: TreeLayer, rows: tuple[Tensor, Tensor], log_mass: Tensor, masses: Tensor) -> None:
        """rows: of all nodes, (I + S, H) and (I + S,). log_mass: (1, S). masses: (1, I + S) made of them."""
        self.rows = rows[0][layer.child]
        self.bias = (rows[1] + masses[0].to(rows[1].dtype))[layer.child]
        self.tree, self.first, self.place = layer.tree, layer.tree.first.tolist(), layer.tree.place
        self.kept = Kept(log_mass, log_mass._version, masses)

    def log_prob(self, hidden: Tensor, of_class: int) -> float:
        """log p of a class: hidden (H,)."""
        total = 0.0
        for node, child in zip(self.tree.path[of_class].tolist(), self.tree.chosen[of_class].tolist(), strict=True):
            if node < 0:
                break
            begin, end = self.first[node], self.first[node + 1]
            scores = torch.addmv(self.bias[begin:end], self.rows[begin:end], hidden)
            own = scores.log_softmax(0)[self.place[child]].item()
            if not own > -math.inf:  # where nothing is possible, it is no number
                return -math.inf
            total += own
        return total
