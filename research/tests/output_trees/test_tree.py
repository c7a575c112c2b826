"""A tree's arrays against a walk over its nodes, and what is no tree."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_trees import choices

from fairseq_llrnn.errors import DataError, OptionError
from llrnn_research.output_trees.builders import (
    check_room,
    cluster_tree,
    clustering_tree,
    huffman_tree,
    least_arity,
    least_depth,
    random_tree,
)
from llrnn_research.output_trees.tree import DEEPEST, NONE, Tree, numbered


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


@settings(max_examples=30, deadline=None)
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


@settings(max_examples=30, deadline=None)
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
        ([-1, 0, 0], 3, "expected an integer vector of the parents of 3 leaves and at least one internal node"),
        ([-1, 0, 0], 0, "expected an integer vector of the parents"),
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


# Trees that are built from masses, from vectors or at random: shapes, optima, what is refused
SIZES = [(1, 2), (2, 2), (3, 2), (5, 3), (9, 3), (10, 3), (28, 3), (64, 8), (65, 8), (1000, 7), (4226, 65)]


def check_balanced(tree: Tree, leaves: int, arity: int) -> None:
    assert tree.leaves == leaves
    assert tree.arity <= arity
    assert tree.levels == least_depth(leaves, arity)
    assert tree.children.min() >= min(2, leaves)
    for node in range(tree.internal):
        children = tree.child[tree.first[node] : tree.first[node + 1]]
        assert np.ptp(tree.below[children]) <= 1


@pytest.mark.parametrize(("leaves", "arity"), SIZES)
def test_random_and_clustering_trees_are_balanced(leaves: int, arity: int) -> None:
    check_balanced(random_tree(leaves, arity), leaves, arity)
    check_balanced(clustering_tree(np.random.default_rng(1).normal(size=(leaves, 3)), arity), leaves, arity)


def test_trees_follow_their_seed() -> None:
    vectors = np.random.default_rng(1).normal(size=(100, 4))
    for build in (lambda seed: random_tree(100, 5, seed=seed), lambda seed: clustering_tree(vectors, 5, seed=seed)):
        assert choices(build(3)) == choices(build(3)) != choices(build(4))


def test_near_vectors_are_near_in_the_tree() -> None:
    centres = 100 * np.random.default_rng(2).normal(size=(4, 6))
    vectors = np.repeat(centres, 16, axis=0) + np.random.default_rng(3).normal(size=(64, 6))
    found = [clustering_tree(vectors, 4, 3, seed) for seed in range(8)]
    group = np.arange(64) // 16
    pure = [all(len(set(group[tree.path[:, 1] == node])) == 1 for node in range(1, 5)) for tree in found]
    assert any(pure)  # k-means has local optima
    for tree in found:
        same = (tree.path[:, None, 2] == tree.path[None, :, 2]) & ~np.eye(64, dtype=bool)
        assert (group[:, None] == group)[same].mean() > 0.8


def test_equal_vectors_can_be_split() -> None:
    check_balanced(clustering_tree(np.zeros((50, 2)), 4), 50, 4)


def test_clusters_are_sorted_by_mass_and_of_equal_size() -> None:
    class_weights = np.array([0.0, 5, 1, 3, 3, 0, 7, 2])
    tree = cluster_tree(class_weights, 3)
    members = [set((tree.child[tree.first[n] : tree.first[n + 1]] - tree.internal).tolist()) for n in range(1, 4)]
    assert members == [{6, 1, 3}, {4, 7, 2}, {0, 5}]
    assert (tree.levels, tree.internal, tree.children.tolist()) == (2, 4, [3, 3, 3, 2])


@pytest.mark.parametrize(("leaves", "number"), [(1, 1), (2, 2), (4, 2), (5, 3), (16, 4), (17, 5), (2900, 54)])
def test_the_number_of_clusters_is_the_root_of_their_sizes(leaves: int, number: int) -> None:
    assert cluster_tree(np.ones(leaves)).children[0] == number


def mean_depth(tree: Tree, class_weights: np.ndarray) -> float:
    return float(class_weights @ tree.depth[tree.internal :])


def least_mean_depth(class_weights: tuple[int, ...], arity: int) -> float:
    """Over all trees, by what is merged first: any 2 … M nodes."""
    if len(class_weights) == 1:
        return 0
    found = math.inf
    for size in range(2, min(arity, len(class_weights)) + 1):
        for chosen in itertools.combinations(range(len(class_weights)), size):
            merged = sum(class_weights[i] for i in chosen)
            rest = tuple(sorted([*(m for i, m in enumerate(class_weights) if i not in chosen), merged]))
            found = min(found, merged + least_mean_depth(rest, arity))
    return found


@settings(max_examples=30)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=6), st.integers(2, 4))
def test_no_tree_has_a_smaller_mean_depth_than_huffmans(class_weights: list[int], arity: int) -> None:
    tree = huffman_tree(np.array(class_weights, dtype=float), arity)
    assert tree.arity <= arity
    assert mean_depth(tree, np.array(class_weights)) == pytest.approx(
        least_mean_depth(tuple(sorted(class_weights)), arity)
    )


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(2, 7), st.integers(0, 9))
def test_one_node_of_huffmans_tree_may_have_fewer_children(leaves: int, arity: int, seed: int) -> None:
    tree = huffman_tree(np.random.default_rng(seed).gamma(0.2, size=leaves), arity)
    assert (tree.leaves, tree.internal) == (leaves, max(1, math.ceil((leaves - 1) / (arity - 1))))
    few = np.flatnonzero(tree.children < arity)
    assert len(few) <= 1 and (tree.children >= min(2, leaves)).all()
    if leaves > arity and len(few):
        assert tree.depth[few[0]] == tree.levels - 1


def test_leaves_of_little_mass_are_not_too_deep() -> None:
    assert huffman_tree(np.zeros(1000), 2).levels == 10
    assert huffman_tree(0.5 ** np.arange(1000.0), 2).levels < 64
    assert huffman_tree(np.concatenate([np.ones(3), np.zeros(1000)]), 2).levels < 64


@pytest.mark.parametrize("arity", [-3, 0, 1])
def test_an_arity_below_two_is_refused(arity: int) -> None:
    for build in (
        lambda: random_tree(5, arity),
        lambda: huffman_tree(np.ones(5), arity),
        lambda: clustering_tree(np.ones((5, 2)), arity),
    ):
        with pytest.raises(OptionError, match=f"arity of the tree: expected at least 2 children.*found {arity}"):
            build()


def test_a_depth_without_room_is_refused_with_what_would_do() -> None:
    with pytest.raises(OptionError) as error:
        random_tree(50_000, 65, 2)
    assert str(error.value) == (
        "depth of the tree: expected room for 50,000 leaves, found 65^2 = 4,225 in a tree of arity 65 and depth 2; "
        "give a depth of 3, or an arity of 224"
    )
    with pytest.raises(OptionError, match="found no in a tree of arity 2 and depth 0; give a depth of 1$"):
        clustering_tree(np.ones((2, 2)), 2, 0)
    check_room(4225, 65, 2)


@given(st.integers(1, 10**6), st.integers(1, 5), st.integers(2, 99))
def test_what_would_do_does(leaves: int, depth: int, arity: int) -> None:
    enough = least_arity(leaves, depth)
    assert enough**depth >= leaves and (enough == 2 or (enough - 1) ** depth < leaves)
    levels = least_depth(leaves, arity)
    assert arity**levels >= leaves and (levels == 1 or arity ** (levels - 1) < leaves)


@pytest.mark.parametrize("class_weights", [np.array([1.0, -1]), np.array([np.nan]), np.ones((2, 2)), np.ones(0)])
def test_masses_that_are_none_are_refused(class_weights: np.ndarray) -> None:
    for build in (cluster_tree, lambda class_weights: huffman_tree(class_weights, 2)):
        with pytest.raises(ValueError, match="masses: expected a vector of finite numbers of at least 0, .* the shape"):
            build(class_weights)
