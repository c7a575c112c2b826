"""Algorithm 3.3 against its loop; what moves and what stays."""

from __future__ import annotations

import numpy as np
import pytest
from assignment_loops import assign_to_depth, node_weights
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.systems.output_trees.reassignment import complete_tree, reassigned
from fairseq_llrnn.systems.output_trees.tree import Tree


def by_loops(tree: Tree, arity: int, depth: int, sums: np.ndarray, counts: np.ndarray) -> list[int]:
    """Parent of every leaf."""
    parent = [0] * tree.leaves

    def assign(labels: list[int], node: int, level: int) -> None:
        if level == depth - 1:
            for label in labels:
                parent[label] = node
            return
        here = [label for label in labels if tree.path[label, level] == node]
        weights = node_weights(
            labels,
            {label: sums[label, level].tolist() for label in here},
            {label: int(counts[label, level]) for label in here},
            {label: int(tree.place[tree.chosen[label, level]]) for label in here},
            arity,
        )
        for j, below in enumerate(assign_to_depth(weights, labels, arity, arity ** (depth - 1 - level))):
            assign(below, node * arity + 1 + j, level + 1)

    assign(list(range(tree.leaves)), 0, 0)
    return parent


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Tree, int, int, np.ndarray, np.ndarray]:
    """A complete tree with statistics: of a few values, so that many weights are equal, or of any."""
    arity, depth = draw(st.sampled_from([(2, 1), (2, 2), (2, 4), (3, 2), (3, 3), (5, 2)]))
    leaves = draw(st.integers(1, min(16, arity**depth)))
    random = np.random.default_rng(draw(st.integers(0, 9999)))
    tree = complete_tree(random.permutation(leaves), arity, depth)
    counts = random.integers(0, 4, size=(leaves, depth - 1))
    p = random.dirichlet(np.ones(arity), size=counts.shape)
    if draw(st.booleans()):
        p = np.eye(arity)[random.integers(0, arity, size=counts.shape)]
    return tree, arity, depth, p * counts[..., None], counts


@settings(max_examples=60)
@given(worlds())
def test_the_tree_is_that_of_the_loop(world: tuple[Tree, int, int, np.ndarray, np.ndarray]) -> None:
    tree, arity, depth, sums, counts = world
    new = reassigned(*world)
    assert new.parent[: new.internal].tolist() == tree.parent[: tree.internal].tolist()
    assert new.parent[new.internal :].tolist() == by_loops(tree, arity, depth, sums, counts)
    assert new.arity <= arity or depth == 1


@settings(max_examples=30)
@given(worlds())
def test_without_statistics_nothing_moves(world: tuple[Tree, int, int, np.ndarray, np.ndarray]) -> None:
    tree, arity, depth, sums, counts = world
    assert (reassigned(tree, arity, depth, 0 * sums, 0 * counts).parent == tree.parent).all()


def test_classes_go_where_they_are_sent_and_unseen_ones_keep_their_place() -> None:
    tree = complete_tree(np.arange(6), 3, 2)
    assert tree.parent[tree.internal :].tolist() == [1, 1, 2, 2, 3, 3]
    sums, counts = np.zeros((6, 1, 3)), np.zeros((6, 1), dtype=int)
    for label, child in ((0, 2), (1, 0), (2, 0), (4, 1)):
        sums[label, 0, child], counts[label, 0] = 5, 5
    assert reassigned(tree, 3, 2, sums, counts).parent[tree.internal :].tolist() == [3, 1, 1, 2, 2, 3]


def test_an_unseen_class_makes_room() -> None:
    """The first child of the root holds three classes; three that are sent there displace one that nobody has seen."""
    tree = complete_tree(np.arange(6), 3, 2)
    sums, counts = np.zeros((6, 1, 3)), np.zeros((6, 1), dtype=int)
    for label, child in ((2, 0), (3, 0), (4, 0), (5, 1)):
        sums[label, 0, child], counts[label, 0] = 5, 5
    new = reassigned(tree, 3, 2, sums, counts).parent[tree.internal :].tolist()
    assert new[2:] == [1, 1, 1, 2]
    assert all(node != 1 for node in new[:2])


@pytest.mark.parametrize(("leaves", "arity", "depth"), [(1, 2, 1), (4, 2, 2), (5, 2, 3), (9, 3, 2), (100, 5, 4)])
def test_a_complete_tree_has_all_addresses(leaves: int, arity: int, depth: int) -> None:
    order = np.random.default_rng(1).permutation(leaves)
    tree = complete_tree(order, arity, depth)
    assert tree.internal == sum(arity**level for level in range(depth))
    for node in range(1, tree.internal):
        assert tree.parent[node] * arity + 1 + tree.place[node] == node
    assert (tree.depth[tree.internal :] == depth).all()
    assert (np.diff(tree.parent[tree.internal + order]) >= 0).all()
    last = tree.below[tree.internal - arity ** (depth - 1) : tree.internal]
    assert np.ptp(last) <= 1


def test_limits() -> None:
    with pytest.raises(OptionError, match="expected at least 2 children"):
        complete_tree(np.arange(4), 1, 3)
    with pytest.raises(OptionError, match="depth of the tree: expected room for 10 leaves"):
        complete_tree(np.arange(10), 3, 2)
