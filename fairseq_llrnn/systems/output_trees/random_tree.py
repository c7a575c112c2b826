"""A balanced tree whose leaves are in random order."""

from __future__ import annotations

import numpy as np

from fairseq_llrnn.systems.output_trees.even import cut_evenly
from fairseq_llrnn.systems.output_trees.limits import check_room
from fairseq_llrnn.systems.output_trees.tree import Tree


def random_tree(leaves: int, arity: int, depth: int | None = None, seed: int = 1) -> Tree:
    """A tree as flat as its arity allows, the same for the same seed.

    Args:
        depth: the most levels; None: any number.

    Raises:
        OptionError: an arity below 2, a depth without room.
    """
    check_room(leaves, arity, depth)
    return cut_evenly(np.random.default_rng(seed).permutation(leaves), arity)
