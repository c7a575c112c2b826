"""A tree that is learned beside its rows: what the layer says of nodes is counted, and now and then signatures move.

Sizes: S signatures, H hidden width. Source: Jernite 2018, Algorithms 3.1, 3.2 and 3.3 (learner.py). With a limit
of depth, rows of internal nodes stay with the addresses of nodes; without one, nodes keep their rows when they get
other numbers. The row of a leaf is its signature's, and moves with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from fairseq_llrnn.systems.output_trees.kinds import REASSIGN
from fairseq_llrnn.systems.output_trees.learner import TreeLearner
from fairseq_llrnn.systems.output_trees.options import TreeOptions
from fairseq_llrnn.systems.output_trees.schedule import Schedule
from fairseq_llrnn.systems.output_trees.tree_layer import TreeLayer
from fairseq_llrnn.systems.output_trees.tree_log_linear import VisitProbabilities


class LearnedTreeLayer(TreeLayer):
    """A tree, and what training has seen of it, which a checkpoint keeps."""

    counts = True

    def __init__(self, options: TreeOptions, hidden_size: int, log_mass: Tensor, rows: str = "free") -> None:
        """As of TreeLayer."""
        arity, depth = options.sizes(len(log_mass))
        tree = TreeLearner.start(log_mass.double().exp().cpu().numpy(), arity, depth)
        super().__init__(tree, hidden_size, log_mass, rows)
        self.learner = TreeLearner(tree, arity, depth)
        if depth is None and rows == "free":
            self.register_buffer("row_of", torch.arange(tree.internal))
        self.times = REASSIGN if options.reassign is None else options.reassign
        self.epochs = math.inf if options.reassign_epochs is None else options.reassign_epochs
        self._changed_after = -1

    def observe(self, visited: Iterable[VisitProbabilities]) -> None:
        """Count what the layer says of the nodes on the paths of targets; padding has no mass, and does not count."""
        for some in visited:
            real = ~self.log_mass[some.labels].isneginf()
            self.learner.observe(some.labels[real], some.nodes[real], some.probabilities[real])

    def after(self, updates: int, updates_per_epoch: int) -> int | None:
        """Change the tree if that is due after so many updates: how many signatures move. Again, it does nothing.

        Processes that train together all have to call it, and get the same tree.
        """
        schedule = Schedule(self.times, updates_per_epoch, updates_per_epoch * self.epochs)
        if updates == self._changed_after or not schedule.is_due(updates):
            return None
        self._changed_after = updates
        found = self.learner.reassign()
        self.move(found.tree, found.origin)
        return found.moved

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        self.learner.follow(self.tree)  # its own buffers are loaded next
