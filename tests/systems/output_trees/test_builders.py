"""Trees that are built from masses, from vectors or at random: shapes, optima, what is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_trees import choices

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.systems.output_trees.builders import (
    check_room,
    cluster_tree,
    clustering_tree,
    huffman_tree,
    least_arity,
    least_depth,
    random_tree,
)
from fairseq_llrnn.systems.output_trees.tree import Tree

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
    masses = np.array([0.0, 5, 1, 3, 3, 0, 7, 2])
    tree = cluster_tree(masses, 3)
    members = [set((tree.child[tree.first[n] : tree.first[n + 1]] - tree.internal).tolist()) for n in range(1, 4)]
    assert members == [{6, 1, 3}, {4, 7, 2}, {0, 5}]
    assert (tree.levels, tree.internal, tree.children.tolist()) == (2, 4, [3, 3, 3, 2])


@pytest.mark.parametrize(("leaves", "number"), [(1, 1), (2, 2), (4, 2), (5, 3), (16, 4), (17, 5), (2900, 54)])
def test_the_number_of_clusters_is_the_root_of_their_sizes(leaves: int, number: int) -> None:
    assert cluster_tree(np.ones(leaves)).children[0] == number


@pytest.mark.parametrize("number", [0, 6])
def test_numbers_of_clusters_that_make_no_sense_are_refused(number: int) -> None:
    with pytest.raises(OptionError, match=f"number of clusters: expected 1 to 5, one per class, found {number}"):
        cluster_tree(np.ones(5), number)


def mean_depth(tree: Tree, masses: np.ndarray) -> float:
    return float(masses @ tree.depth[tree.internal :])


def least_mean_depth(masses: tuple[int, ...], arity: int) -> float:
    """Over all trees, by what is merged first: any 2 … M nodes."""
    if len(masses) == 1:
        return 0
    found = math.inf
    for size in range(2, min(arity, len(masses)) + 1):
        for chosen in itertools.combinations(range(len(masses)), size):
            merged = sum(masses[i] for i in chosen)
            rest = tuple(sorted([*(m for i, m in enumerate(masses) if i not in chosen), merged]))
            found = min(found, merged + least_mean_depth(rest, arity))
    return found


@settings(max_examples=30)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=6), st.integers(2, 4))
def test_no_tree_has_a_smaller_mean_depth_than_huffmans(masses: list[int], arity: int) -> None:
    tree = huffman_tree(np.array(masses, dtype=float), arity)
    assert tree.arity <= arity
    assert mean_depth(tree, np.array(masses)) == pytest.approx(least_mean_depth(tuple(sorted(masses)), arity))


@settings(max_examples=40)
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


@pytest.mark.parametrize("masses", [np.array([1.0, -1]), np.array([np.nan]), np.ones((2, 2)), np.ones(0)])
def test_masses_that_are_none_are_refused(masses: np.ndarray) -> None:
    for build in (cluster_tree, lambda masses: huffman_tree(masses, 2)):
        with pytest.raises(ValueError, match="masses: expected"):
            build(masses)
