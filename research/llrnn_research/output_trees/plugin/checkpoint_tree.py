"""Read the output tree of a trained model, and the prior whose classes are its leaves."""

from __future__ import annotations

from fairseq_llrnn.errors import DataError, PriorError
from fairseq_llrnn.plugin.compat.loading import checkpoint_file, prior_of_state, read_checkpoint
from fairseq_llrnn.plugin.compat.moved_folders import fingerprint_in
from fairseq_llrnn.prior.prior import Prior
from llrnn_research.output_trees.tree import Tree
from llrnn_research.output_trees.tree_layer import tree_of_parents

PARENTS = "head.tree.parent"  # the end of its name in a checkpoint


def tree_of_checkpoint(path: str, prior_folder: str | None) -> tuple[Tree, Prior]:
    """Return the current tree and the prior of a checkpoint, without building the model.

    Args:
        prior_folder: of the prior (None: the folder used in training, or one near the checkpoint).

    Raises:
        DataError: no checkpoint, or a checkpoint without a tree.
        OptionError: the prior is not found.
        PriorError: the prior differs from the one of training.
    """
    path = checkpoint_file(path)
    state = read_checkpoint(path)
    saved = next((value for name, value in state["model"].items() if str(name).endswith(PARENTS)), None)
    if saved is None:
        raise DataError(f"{path}: the model has no output tree; give a checkpoint that was trained with --output-tree")
    fingerprint = fingerprint_in(state, path)
    prior = Prior.load(prior_of_state(path, state) if prior_folder is None else prior_folder)
    if fingerprint is not None and fingerprint != prior.fingerprint:
        raise PriorError(
            f"{path} was trained with another prior than {prior.folder} (fingerprints {fingerprint[:12]}… and "
            f"{prior.fingerprint[:12]}…); give the prior of its training"
        )
    return tree_of_parents(saved, prior.output.num_classes, path), prior
