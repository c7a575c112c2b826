"""A tree's arrays against a walk over its nodes, and what is no tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_trees import choices

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.systems.output_trees.tree import DEEPEST, NONE, Tree, numbered

TWO_LEVELS = [-1, 0, 0, 1, 2, 1, 0]  # root: nodes 1, 2 and leaf 3; node 1: leaves 0, 2; node 2: leaf 1


@st.composite
def parents(draw: st.DrawFn) -> tuple[list[int], int]:
    """Up to 12 internal nodes, some of them empty, and up to 12 leaves."""
    internal, leaves = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    above = sorted(draw(st.integers(0, n - 1)) for n in range(1, internal))
    above = [min(p, n) for n, p in enumerate(above)]
    return [-1, *above, *(draw(st.integers(0, internal - 1)) for _ in range(leaves))], leaves


def ancestors(parent: list[int], node: int) -> list[int]:
    """From the root to the node's parent."""
    return [] if parent[node] < 0 else [*ancestors(parent, parent[node]), parent[node]]


def test_a_small_tree() -> None:
    tree = Tree.from_parents(np.array(TWO_LEVELS), 4)
    assert (tree.internal, tree.leaves, tree.arity, tree.levels) == (3, 4, 3, 2)
    assert tree.child.tolist() == [1, 2, 6, 3, 5, 4]
    assert tree.first.tolist() == [0, 3, 5, 6]
    assert tree.place.tolist() == [0, 0, 1, 0, 0, 1, 2]
    assert tree.path.tolist() == [[0, 1], [0, 2], [0, 1], [0, NONE]]
    assert tree.chosen.tolist() == [[1, 3], [2, 4], [1, 5], [6, NONE]]
    assert tree.order.tolist() == [0, 2, 1, 3]
    assert tree.span.tolist() == [[0, 4], [0, 2], [2, 3], [0, 1], [2, 3], [1, 2], [3, 4]]


@settings(max_examples=40, deadline=None)
@given(parents())
def test_all_arrays_are_those_of_a_walk(given_tree: tuple[list[int], int]) -> None:
    parent, leaves = given_tree
    tree = Tree.from_parents(np.array(parent), leaves)
    internal = len(parent) - leaves
    for node in range(len(parent)):
        above = ancestors(parent, node)
        assert tree.depth[node] == len(above)
        under = {s for s in range(leaves) if node in [*ancestors(parent, internal + s), internal + s]}
        assert tree.below[node] == len(under)
        begin, end = tree.span[node]
        assert set(tree.order[begin:end].tolist()) == under
        if node < internal:
            children = [n for n in range(1, len(parent)) if parent[n] == node]
            assert tree.child[tree.first[node] : tree.first[node + 1]].tolist() == children
            assert tree.place[children].tolist() == list(range(len(children)))
            assert tree.children[node] == len(children)
    for s in range(leaves):
        path = ancestors(parent, internal + s)
        rest = [NONE] * (tree.levels - len(path))
        assert tree.path[s].tolist() == path + rest
        assert tree.chosen[s].tolist() == [*path[1:], internal + s, *rest]
    assert sorted(np.concatenate(tree.by_depth).tolist()) == list(range(len(parent)))


@settings(max_examples=40, deadline=None)
@given(parents(), st.randoms(use_true_random=False))
def test_nodes_may_be_numbered_anew(given_tree: tuple[list[int], int], random: object) -> None:
    parent, leaves = given_tree
    tree = Tree.from_parents(np.array(parent), leaves)
    others = list(range(1, tree.internal))
    random.shuffle(others)  # type: ignore[attr-defined]
    new = np.array([0, *others, *range(tree.internal, len(parent))])  # number of every node
    shuffled = np.empty(len(parent), dtype=np.int64)
    shuffled[new] = np.concatenate([[NONE], new[tree.parent[1:]]])
    again, origin = numbered(shuffled, leaves)
    assert choices(again) == choices(tree)
    assert again.parent[1 : tree.internal].tolist() == np.argsort(origin)[shuffled[origin[1:]]].tolist()
    assert numbered(tree.parent, leaves)[0].parent.tolist() == parent


@pytest.mark.parametrize(
    ("parent", "leaves", "message"),
    [
        ([-1, 0, 0], 3, "expected a row of parents, whole numbers, of 3 leaves and at least one node above"),
        ([-1, 0, 0], 0, "expected a row of parents"),
        ([[-1, 0]], 1, "of shape (1, 2)"),
        ([-1.0, 0.0], 1, "found float64"),
        ([0, 0], 1, "parent of node 0: expected -1, for the root, found 0"),
        ([-1, 0, -1], 2, "parent of node 2: expected a number from 0 to 0, found -1"),
        ([-1, 0, 2], 1, "parent of node 2: expected a number from 0 to 1, found 2"),
        ([-1, 1, 0], 1, "breadth-first order"),
        ([-1, 0, 1, 0, 0], 1, "breadth-first order"),
        ([-1, *range(300)], 1, f"at most {DEEPEST} levels below the root, found 300"),
    ],
)
def test_what_is_no_tree_is_refused(parent: list, leaves: int, message: str) -> None:
    with pytest.raises(DataError) as error:
        Tree.from_parents(np.array(parent), leaves)
    assert message in str(error.value)


def test_nodes_outside_of_the_root_are_refused() -> None:
    with pytest.raises(DataError, match="expected 3 internal nodes below its root, found 1"):
        numbered(np.array([-1, 2, 1, 0]), 1)


def test_a_large_tree_takes_no_time_per_node() -> None:
    parent = np.concatenate([[-1], np.zeros(65, dtype=int), 1 + np.arange(65 * 65) // 65])
    leaf = np.random.default_rng(1).integers(66, len(parent), 250_000)
    tree = Tree.from_parents(np.concatenate([parent, leaf]), 250_000)
    assert tree.path.shape == (250_000, 3)
    assert (tree.span[:, 1] - tree.span[:, 0] == tree.below).all()
