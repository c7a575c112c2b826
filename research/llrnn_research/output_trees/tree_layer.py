"""The tree of an output layer, and the tree in a checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.output.normalisers import LogLinearOutput, Normalised
from fairseq_llrnn.output.records import Batch
from llrnn_research.output_trees.tree import Tree
from llrnn_research.output_trees.tree_log_linear import TreeOutput
from llrnn_research.output_trees.tree_normalisation import TreeNormalisation, explained_choices
from llrnn_research.output_trees.tree_scores import VisitProbabilities
from llrnn_research.output_trees.tree_tables import TreeTables


class TreeLayer(TreeTables):
    """The tree of an output layer, as its normaliser. Arguments as for `TreeTables`."""

    counting = True  # whether to collect statistics of the current batch

    def compose_rows(self, output: LogLinearOutput, weight: Tensor, replaced: int | None) -> Normalised:
        """Compose all rows once, or in training only the rows of leaves that targets need."""
        tree_output = TreeOutput(output, self, None if self.training else output.composed())
        return TreeNormalisation(tree_output, self.observe if self.training and self.counts and self.counting else None)

    def observe(self, visited: list[VisitProbabilities]) -> None:
        """Count the probabilities of nodes on the paths of targets, in learned trees only."""

    def check_weights(self, state_dict: dict[str, Any], prefix: str) -> None:
        """Take the tree of a checkpoint if this one is a placeholder. Raise OptionError for a different tree."""
        tree = tree_in_checkpoint(state_dict.get(f"{prefix}tree.parent"), self.tree, self.counts)
        if tree is not None and tree.internal != self.internal:
            self._become(tree)
        if not self.counts:  # only learned trees use the statistics of training
            for name in [name for name in state_dict if name.startswith(f"{prefix}tree.learner.")]:
                del state_dict[name]

    def explained(self, batch: Batch, tokens: Tensor) -> dict[str, Any]:
        """Return scores, log p(σ | K) minus the masses, and the choices that lead to each token."""
        scores, paths = explained_choices(batch, tokens)
        return {"scores": scores, "paths": paths}


def tree_in_checkpoint(saved: object, head_tree: Tree, learned: bool) -> Tree | None:
    """Return the checked tree of a checkpoint's weights, or None if it has none.

    Args:
        saved: the parents, (I + S,), or None.
        head_tree: the tree of the head.
        learned: whether training changes the tree.

    Raises:
        OptionError: the trees differ.
        DataError: `saved` is not a tree.
    """
    if saved is None:
        return None
    tree = tree_of_parents(saved, head_tree.leaves, "the checkpoint")
    same_size = tree.internal == head_tree.internal
    is_same = same_size and (learned or np.array_equal(tree.parent, head_tree.parent))
    if (learned or head_tree.internal > 1) and not is_same:
        raise OptionError(
            f"--output-tree: expected the tree with which the checkpoint was trained, of {tree.internal:,} nodes above "
            f"{tree.leaves:,} leaves, found another one, of {head_tree.internal:,}; give the same kind and sizes, or "
            "start a new training in another --save-dir"
        )
    return tree


def tree_of_parents(saved: object, leaves: int, where: str) -> Tree:
    """Return the tree of a checkpoint's parents, (I + S,). where: the checkpoint, for errors. Raises DataError."""
    if not isinstance(saved, Tensor) or saved.dtype.is_floating_point or saved.dtype.is_complex:
        raise DataError(f"{where}: expected integers as the parents of its tree, found other values")
    try:
        return Tree.from_parents(saved.cpu().numpy(), leaves)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
