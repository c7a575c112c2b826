"""Trees of heads on the meta device."""

from functools import partial

import numpy as np
import pytest
from meta_heads import WAYS, check_equal, make
from small_priors import make_prior

from llrnn_research.output_trees.learner import TreeLearner
from llrnn_research.output_trees.output_tree import OutputTree, TreeOptions

LEARNED = TreeOptions("learned", arity=2)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rows", ["free", "composed"])
@pytest.mark.parametrize("options", [TreeOptions("huffman"), LEARNED], ids=lambda options: options.kind)
def test_a_checkpoint_is_all_that_is_needed(options: TreeOptions, rows: str, way: str) -> None:
    new = partial(make, make_prior(), normaliser=OutputTree(options, rows))
    head = new(1)
    check_equal(WAYS[way](head.state_dict(), partial(new, 2)), head)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "made on meta, reset"])
def test_the_tree_of_the_checkpoint_is_kept(way: str) -> None:
    """It is not the one that a new head builds."""
    new = partial(make, make_prior(), normaliser=OutputTree(LEARNED, "composed"))
    head = new(1)
    weights = np.arange(1.0, 1.0 + head.normaliser.leaves)
    head.normaliser.move(TreeLearner.start(weights, 2, head.normaliser.learner.depth))
    check_equal(WAYS[way](head.state_dict(), partial(new, 2)), head)
