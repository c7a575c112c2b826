"""log p of single classes without a gradient, where groups of visits would cost more than the products: N below FEW.

Most of the time goes to starting operations, so that there are few, and numpy's, which start in a third of the time of
torch's: one product for each node of the path, and one softmax for all.

Sizes: S signatures, I internal nodes, D levels, M most children of a node, H hidden width.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.output.tree_layer import Kept, TreeLayer

FEW = 4


class SingleVisits:
    """All rows in the order of siblings, biases and masses behind them: the children of a node are a slice."""

    def __init__(self, layer: TreeLayer, rows: tuple[Tensor, Tensor], log_mass: Tensor, masses: Tensor) -> None:
        """rows: of all nodes, (I + S, H) and (I + S,). log_mass: (1, S). masses: (1, I + S) made of them."""
        bias = (rows[1] + masses[0].to(rows[1].dtype))[layer.child]
        self.rows = torch.cat([rows[0][layer.child], bias.unsqueeze(1)], dim=1).detach().numpy()  # (I + S − 1, H + 1)
        self.path, self.first, self.arity = layer.tree.path, layer.tree.first.tolist(), layer.arity
        self.slots = layer.tree.place[layer.tree.chosen]  # (S, D)
        self.kept = Kept(log_mass, log_mass._version, masses)

    def log_prob(self, hidden: np.ndarray, of_class: int) -> float:
        """log p of a class: hidden (H,)."""
        state = np.empty(len(hidden) + 1, dtype=hidden.dtype)
        state[:-1], state[-1] = hidden, 1.0
        nodes = [node for node in self.path[of_class].tolist() if node >= 0]
        scores = np.empty((len(nodes), self.arity), dtype=hidden.dtype)
        for node, row in zip(nodes, scores, strict=True):
            begin, end = self.first[node], self.first[node + 1]
            if end - begin < self.arity:
                row[end - begin :] = -math.inf
                row = row[: end - begin]
            np.dot(self.rows[begin:end], state, out=row)
        odds = torch.from_numpy(scores).log_softmax(1).numpy()
        total = 0.0
        for level, slot in enumerate(self.slots[of_class, : len(nodes)].tolist()):
            own = odds.item(level, slot)
            if not own > -math.inf:  # where nothing is possible, it is no number
                return -math.inf
            total += own
        return total
