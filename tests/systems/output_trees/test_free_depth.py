"""Algorithm 3.2 against its loop; which trees it makes, and what of the old tree is in the new one."""

from __future__ import annotations

import math

import numpy as np
from assignment_loops import assign_freely, node_weights
from hypothesis import given, settings
from hypothesis import strategies as st
from small_trees import choices

from fairseq_llrnn.systems.output_trees.builders import huffman_tree
from fairseq_llrnn.systems.output_trees.reassignment import EVEN_BELOW, rebuilt, take_groups
from fairseq_llrnn.systems.output_trees.tree import DEEPEST, NONE, Tree


def rows_of(tree: Tree) -> np.ndarray:
    """(S + 1,) where the rows of a class begin: one for each node of its path."""
    return np.concatenate([[0], np.cumsum(tree.depth[tree.internal :])])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Tree, int, np.ndarray, np.ndarray, np.ndarray]:
    """A tree that Algorithm 3.2 has made twice, with statistics."""
    arity = draw(st.integers(2, 5))
    leaves = 1 + (arity - 1) * draw(st.integers(1, 5))  # ≡ 1, so that there are no leaves which nobody sees
    random = np.random.default_rng(draw(st.integers(0, 9999)))
    tree = huffman_tree(random.gamma(1.0, size=leaves), arity)
    for _ in range(2):
        begin = rows_of(tree)
        counts = random.integers(0, 4, size=begin[-1])
        p = random.dirichlet(np.ones(arity), size=len(counts))
        if draw(st.booleans()):
            p = np.eye(arity)[random.integers(0, arity, size=len(counts))]
        world = tree, arity, p * counts[:, None], counts, begin
        tree = rebuilt(*world).tree
    return world


def by_loops(tree: Tree, arity: int, sums: np.ndarray, counts: np.ndarray, begin: np.ndarray) -> list[list[int]]:
    """The slots on the way to every leaf."""
    slots: list[list[int]] = [[] for _ in range(tree.leaves)]

    def assign(labels: list[int], node: int | None, level: int) -> None:
        if len(labels) == 1:
            return
        here = [i for i in labels if node is not None and level < tree.levels and tree.path[i, level] == node]
        weights = node_weights(
            labels,
            {i: sums[begin[i] + level].tolist() for i in here},
            {i: int(counts[begin[i] + level]) for i in here},
            {i: int(tree.place[tree.chosen[i, level]]) for i in here},
            arity,
            ratios=True,
        )
        for j, below in enumerate(assign_freely(weights, labels, arity)):
            for label in below:
                slots[label].append(j)
            child = None
            if node is not None and j < tree.children[node]:
                child = int(tree.child[tree.first[node] + j])
            assign(below, child if child is not None and child < tree.internal else None, level + 1)

    assign(list(range(tree.leaves)), 0, 0)
    return slots


@settings(max_examples=60)
@given(worlds())
def test_the_tree_is_that_of_the_loop(world: tuple[Tree, int, np.ndarray, np.ndarray, np.ndarray]) -> None:
    slots = by_loops(*world)
    new = rebuilt(*world).tree
    assert new.depth[new.internal :].tolist() == [len(own) for own in slots]
    for one, own in enumerate(slots):
        for other in range(one):
            shared = next((k for k, (a, b) in enumerate(zip(own, slots[other], strict=False)) if a != b))
            same = new.path[one] == new.path[other]
            assert same[: shared + 1].all() and not (same & (new.path[one] != NONE))[shared + 1 :].any()


@settings(max_examples=60)
@given(worlds())
def test_nodes_are_well_formed(world: tuple[Tree, int, np.ndarray, np.ndarray, np.ndarray]) -> None:
    tree, arity = world[:2]
    new = rebuilt(*world).tree
    assert new.internal == tree.internal == (tree.leaves - 1) // (arity - 1)
    assert ((new.below - 1) % (arity - 1) == 0).all()
    assert (new.children == arity).all()


@settings(max_examples=60)
@given(worlds())
def test_what_of_the_old_tree_is_in_the_new_one(world: tuple[Tree, int, np.ndarray, np.ndarray, np.ndarray]) -> None:
    tree, arity = world[:2]
    found = rebuilt(*world)
    new = found.tree
    assert found.origin[0] == 0
    old = found.origin[found.origin != NONE]
    assert len(set(old.tolist())) == len(old)
    for node in range(new.internal):
        assert sorted(found.column[node].tolist()) == list(range(arity))
        above = new.parent[node]
        if node and found.origin[node] != NONE:
            assert tree.parent[found.origin[node]] == found.origin[above]
            assert tree.place[found.origin[node]] == found.column[above, new.place[node]]
        elif node and found.origin[above] != NONE:  # what was there was a leaf
            was = tree.child[tree.first[found.origin[above]] + found.column[above, new.place[node]]]
            assert was >= tree.internal


@settings(max_examples=60)
@given(worlds())
def test_without_statistics_nothing_moves(world: tuple[Tree, int, np.ndarray, np.ndarray, np.ndarray]) -> None:
    tree, arity, sums, counts, begin = world
    found = rebuilt(tree, arity, 0 * sums, 0 * counts, begin)
    assert choices(found.tree) == choices(tree)
    assert (found.tree.parent == tree.parent).all() and (found.origin == np.arange(tree.internal)).all()


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(2, 7), st.integers(0, 999))
def test_any_number_of_classes_has_a_tree(leaves: int, arity: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    tree = huffman_tree(random.gamma(1.0, size=leaves), arity)
    for _ in range(3):
        assert tree.leaves == leaves
        assert tree.internal == max(1, math.ceil((leaves - 1) / (arity - 1)))
        assert tree.children.min() >= min(2, leaves) and tree.arity <= arity
        begin = rows_of(tree)
        counts = random.integers(0, 4, size=begin[-1])
        p = random.dirichlet(np.full(arity, 0.3), size=len(counts))
        tree = rebuilt(tree, arity, p * counts[:, None], counts, begin).tree


def test_leaves_are_never_too_deep() -> None:
    """All classes always want the first child: what is left to the others is one class each, at every level."""
    arity, leaves = 2, 600
    tree = huffman_tree(np.ones(leaves), arity)
    for _ in range(EVEN_BELOW + 3):
        begin = rows_of(tree)
        counts = np.ones(begin[-1], dtype=int)
        p = np.full((len(counts), arity), 0.5)
        p[begin[0] :: 2, 0] += 0.4
        p[:, 1] = 1 - p[:, 0]
        tree = rebuilt(tree, arity, p, counts, begin).tree
        assert tree.levels <= EVEN_BELOW + 12 <= DEEPEST


def test_groups_are_taken_as_they_are_wanted() -> None:
    """Seven classes, three children: five groups of places, each child's first one free."""
    weights = np.array([[3.0, 2, 1]] * 7)
    assert take_groups(weights, np.zeros(7, dtype=int), np.array([2])).tolist() == [0, 0, 0, 0, 0, 1, 2]
    weights[5:, 1] = 4  # these two come first, and open a group of the second child
    assert take_groups(weights, np.zeros(7, dtype=int), np.array([2])).tolist() == [0, 0, 0, 1, 2, 1, 1]
