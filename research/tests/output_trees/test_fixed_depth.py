"""Algorithm 3.3 against its loop; what moves and what stays."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from assignment_loops import assign_freely, assign_to_depth, node_weights
from hypothesis import given, settings
from hypothesis import strategies as st
from small_trees import choices

from llrnn_research.output_trees.builders import huffman_tree, matched
from llrnn_research.output_trees.reassignment import (
    EVEN_BELOW,
    choice_weights,
    complete_tree,
    reassigned,
    rebuilt,
)
from llrnn_research.output_trees.tree import DEEPEST, NONE, Tree


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


@settings(max_examples=30)
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


def one_by_one(weights: np.ndarray, room: np.ndarray) -> list[int]:
    """The loop of Algorithm 3.3: the heaviest pair first, of equal ones that with the smallest item, then group."""
    left = {i: row for i, row in enumerate(weights.tolist())}
    room, taken = room.tolist(), [-1] * len(weights)
    while left:
        _, i, j = min((-row[j], i, j) for i, row in left.items() for j in range(len(row)) if room[j])
        taken[i] = j
        room[j] -= 1
        del left[i]
    return taken


@settings(max_examples=30)
@given(st.integers(0, 14), st.integers(1, 4), st.integers(1, 3), st.integers(1, 5), st.integers(0, 999))
def test_rounds_take_what_the_loop_takes(number: int, groups: int, owners: int, values: int, seed: int) -> None:
    """Few different values: many pairs have equal weights."""
    random = np.random.default_rng(seed)
    weights = random.integers(0, values, size=(number, groups)).astype(float)
    owner = random.integers(0, owners, size=number)
    room = np.zeros((owners, groups), dtype=np.int64)
    for o in owner:  # as many places as items, then some more
        room[o, random.integers(groups)] += 1
    room += random.integers(0, 2, size=room.shape)
    before = weights.copy()
    found = matched(weights, owner, room)
    assert (weights == before).all()
    for o in range(owners):
        assert found[owner == o].tolist() == one_by_one(weights[owner == o], room[o])


def test_too_little_room_is_found() -> None:
    with pytest.raises(ValueError, match="room"):
        matched(np.ones((3, 2)), np.zeros(3, dtype=int), np.ones((1, 2), dtype=int))


# Algorithm 3.2 against its loop; which trees it makes, and what of the old tree is in the new one
def rows_of(tree: Tree) -> np.ndarray:
    """(S + 1,) where the rows of a class begin: one for each node of its path."""
    return np.concatenate([[0], np.cumsum(tree.depth[tree.internal :])])


@st.composite
def free_worlds(draw: st.DrawFn) -> tuple[Tree, int, np.ndarray, np.ndarray, np.ndarray]:
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


def free_by_loops(tree: Tree, arity: int, sums: np.ndarray, counts: np.ndarray, begin: np.ndarray) -> list[list[int]]:
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


@settings(max_examples=30)
@given(free_worlds())
def test_a_free_tree_is_that_of_the_loop(world: tuple[Tree, int, np.ndarray, np.ndarray, np.ndarray]) -> None:
    slots = free_by_loops(*world)
    new = rebuilt(*world).tree
    assert new.depth[new.internal :].tolist() == [len(own) for own in slots]
    for one, own in enumerate(slots):
        for other in range(one):
            shared = next((k for k, (a, b) in enumerate(zip(own, slots[other], strict=False)) if a != b))
            same = new.path[one] == new.path[other]
            assert same[: shared + 1].all() and not (same & (new.path[one] != NONE))[shared + 1 :].any()


@settings(max_examples=30)
@given(free_worlds())
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


@settings(max_examples=30)
@given(free_worlds())
def test_without_statistics_no_free_tree_moves(world: tuple[Tree, int, np.ndarray, np.ndarray, np.ndarray]) -> None:
    tree, arity, sums, counts, begin = world
    found = rebuilt(tree, arity, 0 * sums, 0 * counts, begin)
    assert choices(found.tree) == choices(tree)
    assert (found.tree.parent == tree.parent).all() and (found.origin == np.arange(tree.internal)).all()


@settings(max_examples=30)
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


# J_n and its derivatives, against definitions and finite differences; Lemmas 3.2 and 3.3 of Jernite (2018)
def terms(q: np.ndarray, p: np.ndarray) -> list[float]:
    """What each class adds to (3.10), by its definition."""
    classes, children = p.shape
    mean = [sum(q[i] * p[i, j] for i in range(classes)) for j in range(children)]
    return [2 / children * q[i] * sum(abs(mean[j] - p[i, j]) for j in range(children)) for i in range(classes)]


@st.composite
def nodes(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """counts (K,), p (K, M) of up to 5 classes and 2 to 4 children; some counts may be zero."""
    classes, children = draw(st.integers(1, 5)), draw(st.integers(2, 4))
    random = np.random.default_rng(draw(st.integers(0, 9999)))
    p = random.dirichlet(np.full(children, draw(st.sampled_from([0.05, 1.0, 10.0]))), size=classes)
    counts = random.integers(0, 9, size=classes)
    counts[0] += 1
    return counts, p


@given(nodes())
def test_weights_are_the_derivatives_of_a_class_s_own_term(node: tuple[np.ndarray, np.ndarray]) -> None:
    """… in log p_j|i; and what they leave out is what the module says."""
    counts, p = node
    q = counts / counts.sum()
    found = choice_weights(counts, p, np.zeros(len(p), dtype=int), 1)
    step = 1e-6
    distance = p - q @ p
    for i, j in itertools.product(*map(range, p.shape)):
        if abs(distance[i, j]) < 1e-4 or (np.abs(distance[:, j]) < 1e-4).any():
            continue  # no derivative there
        up, down = p.copy(), p.copy()
        up[i, j] *= np.exp(step)
        down[i, j] *= np.exp(-step)
        slopes = (np.array(terms(q, up)) - np.array(terms(q, down))) / (2 * step)
        assert found[i, j] == pytest.approx(slopes[i], abs=1e-8)
        others = [k for k in range(len(p)) if k != i]
        left_out = -2 / p.shape[1] * q[i] * p[i, j] * sum(q[k] * np.sign(distance[k, j]) for k in others)
        assert sum(slopes[k] for k in others) == pytest.approx(left_out, abs=1e-8)


@given(st.lists(nodes(), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_nodes_do_not_meet(found: list[tuple[np.ndarray, np.ndarray]], random: object) -> None:
    children = 4
    counts = np.concatenate([node[0] for node in found])
    p = np.concatenate([np.pad(node[1], ((0, 0), (0, children - node[1].shape[1]))) for node in found])
    owner = 2 * np.repeat(np.arange(len(found)), [len(node[0]) for node in found])  # every other owner has no class
    order = list(range(len(owner)))
    random.shuffle(order)  # type: ignore[attr-defined]
    weights = choice_weights(counts[order], p[order], owner[order], 2 * len(found))
    for o in range(2 * len(found)):
        mine = owner == o
        alone = choice_weights(counts[mine], p[mine], np.zeros(mine.sum(), dtype=int), 1)
        positions = np.argsort(order)[mine]
        assert np.allclose(weights[positions], alone)


def test_a_node_without_examples_has_no_weights() -> None:
    p = np.full((3, 2), 0.5)
    assert (choice_weights(np.zeros(3), p, np.zeros(3, dtype=int), 1) == 0).all()
