"""What a prior says to a tree over its signatures, and which tree a head takes from a checkpoint.

Sizes: S signatures, I internal nodes.
"""

from __future__ import annotations

import hashlib

import numpy as np
from torch import Tensor

from fairseq_llrnn.backgrounds.masses import Masses
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.explain.choices import Choice, choices_of
from fairseq_llrnn.head.records import Batch
from fairseq_llrnn.output.tree_normalisation import TreeDistribution
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.trees.tree import NONE, Tree


def class_fingerprint(prior: Prior) -> str:
    """SHA-256 of the words and of which signature each is of: what a tree in a file is made for."""
    digest = hashlib.sha256("\n".join(prior.symbols).encode())
    digest.update(prior.output.class_of.astype("<i8").tobytes())
    return digest.hexdigest()


def explained_choices(batch: Batch, tokens: Tensor) -> tuple[Tensor, list[tuple[Choice, ...]]]:
    """Of a batch of one sentence: log p(σ | K) less the masses, (T, S + J), and the choices that lead to each token."""
    dense = Masses(batch.masses.dense(), batch.masses.num_rows)
    found = batch.rows.classes.distribution(batch.hidden.flatten(0, 1), batch.others.flat(), dense)
    assert isinstance(found, TreeDistribution)
    classes = found.child_of_root(batch.background.classes(batch.states, tokens))
    scores = found.log_probs - dense.shared
    scores = scores.masked_fill(dense.shared.isneginf(), 0.0)
    return scores, choices_of(found.made, found.hidden, classes, found.masses.shared, found.slots)


def flat_tree(leaves: int) -> Tree:
    """One node: the place of a tree that a checkpoint will say."""
    return Tree.from_parents(np.concatenate([[NONE], np.zeros(leaves, dtype=np.int64)]), leaves)


def tree_in_checkpoint(saved: object, own: Tree | None, learned: bool) -> Tree | None:
    """The tree of a checkpoint's weights, checked; None where it has none.

    Args:
        saved: its parents, (I + S,); None: nothing. own: that of the head. learned: whether training changes it.

    Raises:
        OptionError: one has a tree and the other none, or they have different ones. DataError: no tree.
    """
    if (saved is None) != (own is None):
        raise OptionError(
            "--output-tree: expected this option, with which the checkpoint was trained; give it, with the same sizes"
            if own is None
            else "--output-tree: expected none, as the checkpoint was trained without a tree; leave it out"
        )
    if own is None:
        return None
    if not isinstance(saved, Tensor) or saved.dtype.is_floating_point or saved.dtype.is_complex:
        raise DataError("the checkpoint: expected whole numbers as the parents of its tree, found others")
    try:
        tree = Tree.from_parents(saved.cpu().numpy(), own.leaves)
    except DataError as error:
        raise DataError(f"the checkpoint: {error}") from None
    same_size = tree.internal == own.internal
    if (learned or own.internal > 1) and not (same_size and (learned or np.array_equal(tree.parent, own.parent))):
        raise OptionError(
            f"--output-tree: expected the tree with which the checkpoint was trained, of {tree.internal:,} nodes above "
            f"{tree.leaves:,} leaves, found another one, of {own.internal:,}; give the same kind and sizes, or train "
            "anew in another --save-dir"
        )
    return tree
