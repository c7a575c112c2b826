"""Statistics against a dictionary, what is kept when classes move, checkpoints, schedules."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.errors import DataError, OptionError
from llrnn_research.output_trees.builders import random_tree
from llrnn_research.output_trees.learner import Schedule, TreeLearner
from llrnn_research.output_trees.reassignment import rebuilt
from llrnn_research.output_trees.tree import NONE, Tree

SIZES = [(12, 3, 3), (9, 3, 2), (5, 5, 1), (7, 2, None), (13, 3, None), (10, 4, None)]  # S, M, D


def learner_of(leaves: int, arity: int, depth: int | None) -> TreeLearner:
    return TreeLearner(TreeLearner.start(1.0 + np.arange(leaves) % 5, arity, depth), arity, depth)


def visits(learner: TreeLearner, number: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of random examples, all nodes of their paths."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, learner.tree.leaves - 1, size=number)  # the last class is never seen
    path = learner.tree.path[labels]
    labels, nodes = np.repeat(labels, path.shape[1])[path.ravel() != NONE], path[path != NONE]
    p = random.dirichlet(np.full(learner.arity, 0.3), size=len(labels))
    p *= np.arange(learner.arity) < learner.tree.children[nodes][:, None]
    return torch.from_numpy(labels), torch.from_numpy(nodes), torch.from_numpy(p)


def as_dict(learner: TreeLearner) -> dict[tuple[int, int], tuple[list[float], int]]:
    """(label, node) -> sums and counts, where there are any."""
    found = {}
    begin, tree = learner._begin.tolist(), learner.tree
    for label in range(tree.leaves):
        for level, row in enumerate(range(begin[label], begin[label + 1])):
            if learner.counts[row]:
                found[label, int(tree.path[label, level])] = (learner.sums[row].tolist(), int(learner.counts[row]))
    return found


@pytest.mark.parametrize(("leaves", "arity", "depth"), SIZES)
def test_statistics_are_sums_for_each_class_and_node(leaves: int, arity: int, depth: int | None) -> None:
    learner = learner_of(leaves, arity, depth)
    expected: dict[tuple[int, int], tuple[np.ndarray, int]] = {}
    for seed in range(3):
        found = visits(learner, 20, seed)
        learner.observe(*found)
        for label, node, p in zip(*(x.tolist() for x in found), strict=True):
            if depth is None or learner.tree.depth[node] < depth - 1:
                sums, count = expected.get((label, node), (np.zeros(arity), 0))
                expected[label, node] = (sums + p, count + 1)
    own = as_dict(learner)
    assert own.keys() == expected.keys()
    for key, (sums, count) in expected.items():
        assert own[key][1] == count
        assert np.allclose(own[key][0], sums, atol=1e-5)


def test_sums_of_millions_grow_as_their_counts_do() -> None:
    learner, say = learner_of(9, 3, 2), (torch.tensor([1]), torch.tensor([0]), torch.tensor([[0.5, 0.25, 0.25]]))
    learner.observe(*say)
    early = learner.state_dict()
    early["sums"] = early["sums"] * 2**26
    learner.load_state_dict(early)
    learner.observe(*say)
    assert as_dict(learner) == {(1, 0): ([2.0**25 + 0.5, 2.0**24 + 0.25, 2.0**24 + 0.25], 2)}


def test_examples_that_are_not_finite_are_left_out() -> None:
    learner = learner_of(9, 3, 2)
    p = torch.tensor([[0.5, 0.25, 0.25], [float("nan"), 0, 0], [float("inf"), 0, 0]])
    learner.observe(torch.tensor([1, 1, 2]), torch.zeros(3, dtype=torch.int64), p)
    assert as_dict(learner) == {(1, 0): ([0.5, 0.25, 0.25], 1)}


@settings(max_examples=30)
@given(st.sampled_from(SIZES), st.integers(0, 99))
def test_what_a_class_said_of_nodes_that_it_still_visits_is_kept(size: tuple[int, int, int | None], seed: int) -> None:
    learner = learner_of(*size)
    for step in range(3):
        old = learner.tree
        learner.observe(*visits(learner, 30, 3 * seed + step))
        before = as_dict(learner)
        sums, counts, begin = (x.numpy().copy() for x in (learner.sums, learner.counts, learner._begin))
        change = learner.reassign()
        new = learner.tree
        assert change.tree is new
        origin = np.arange(new.internal) if change.origin is None else change.origin
        column = np.arange(learner.arity) + np.zeros((new.internal, 1), dtype=int)
        if size[2] is None:
            column = rebuilt(old, learner.arity, sums, counts, begin).column
        after = as_dict(learner)
        expected = {}
        for label in range(new.leaves):
            for node in new.path[label][new.path[label] != NONE]:
                was = before.get((label, int(origin[node])))
                if was is not None:
                    kept = [was[0][c] if c != NONE else 0.0 for c in column[node].tolist()]
                    expected[label, int(node)] = (kept, was[1])
        assert after == expected
        was_below = old.parent[old.internal :]
        assert change.moved == (origin[new.parent[new.internal :]] != was_below).sum()


@pytest.mark.parametrize(("leaves", "arity", "depth"), SIZES)
def test_a_checkpoint_goes_on_bit_by_bit(leaves: int, arity: int, depth: int | None) -> None:
    learner = learner_of(leaves, arity, depth)
    for step in range(2):
        learner.observe(*visits(learner, 40, step))
        learner.reassign()
    learner.observe(*visits(learner, 40, 2))
    file = io.BytesIO()
    torch.save({"parent": torch.from_numpy(learner.tree.parent), **learner.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    again = learner_of(leaves, arity, depth)
    again.follow(Tree.from_parents(saved.pop("parent").numpy(), leaves))
    again.load_state_dict(saved)
    for step in range(3, 5):
        for one in (learner, again):
            one.observe(*visits(one, 40, step))
        assert torch.equal(learner.sums, again.sums) and torch.equal(learner.counts, again.counts)
        assert learner.reassign().moved == again.reassign().moved
        assert (learner.tree.parent == again.tree.parent).all()
    assert sorted(learner.state_dict()) == ["counts", "sums"]


def test_statistics_stay_exact_in_half_precision() -> None:
    learner = learner_of(9, 3, 2)
    learner.observe(*visits(learner, 40, 1))
    before = learner.sums.clone()
    assert torch.equal(learner.half().sums, before) and learner.sums.dtype == torch.float64


def test_other_trees_are_refused() -> None:
    for depth in (3, None):
        learner = learner_of(12, 3, depth)
        for other in (random_tree(12, 3), random_tree(12, 12), TreeLearner.start(np.ones(12), 2, 4)):
            with pytest.raises(DataError, match="tree: expected one of arity 3, and .*give the arity and the depth of"):
                learner.follow(other)
    with pytest.raises(OptionError, match="depth of the tree: expected room for 10 leaves"):
        TreeLearner.start(np.ones(10), 3, 2)
    with pytest.raises(OptionError, match="expected at least 2 children"):
        TreeLearner.start(np.ones(10), 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sums", torch.zeros(9, 4)),
        ("sums", torch.zeros(9, 3, dtype=torch.float16)),
        ("sums", torch.full((9, 3), float("nan"))),
        ("counts", torch.full((9,), -1)),
        ("counts", [1, 2]),
    ],
)
def test_statistics_of_another_tree_are_refused(name: str, value: object) -> None:
    learner = learner_of(9, 3, 2)
    state = {**learner.state_dict(), name: value}
    with pytest.raises(DataError, match=f"checkpoint: {name}: expected numbers of at least 0"):
        learner.load_state_dict(state)


def test_the_first_tree_is_sorted_by_mass() -> None:
    class_weights = np.array([1.0, 9, 0, 8, 2, 7])
    tree = TreeLearner.start(class_weights, 3, 2)
    assert tree.parent[tree.internal :].tolist() == [3, 1, 3, 1, 2, 2]


def test_trees_change_evenly_in_the_first_part_of_training() -> None:
    schedule = Schedule.spread(50, 1000, 2000, 0.5)
    due = [update for update in range(2001) if schedule.is_due(update)]
    assert due == list(range(20, 1001, 20))
    assert Schedule.spread(50, 10, float("inf"), 0.5).is_due(10**9)
    assert sum(Schedule.spread(50, 99, 99, 1.0).is_due(update) for update in range(100)) == 50


@pytest.mark.parametrize(("leaves", "arity", "depth"), SIZES)
def test_processes_learn_the_tree_of_one_that_has_seen_all(
    leaves: int, arity: int, depth: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two changes; the others' sums are added in place of torch's exchange."""
    alone, ranks = learner_of(leaves, arity, depth), [learner_of(leaves, arity, depth) for _ in range(2)]
    for change in range(2):
        for rank, learner in enumerate(ranks):
            seen = visits(learner, 40, 10 * change + rank)
            alone.observe(*seen)
            learner.observe(*seen)
        expected = alone.reassign()
        parts = [[learner.sums.clone(), learner.counts.clone()] for learner in ranks]
        for rank, learner in enumerate(ranks):
            others = iter(parts[1 - rank])
            with monkeypatch.context() as patch:
                patch.setattr("llrnn_research.output_trees.learner._rank", lambda rank=rank: rank)
                patch.setattr(torch.distributed, "all_reduce", lambda own, others=others: own.add_(next(others)))
                found = learner.reassign()
            assert np.array_equal(found.tree.parent, expected.tree.parent) and found.moved == expected.moved
        torch.testing.assert_close(ranks[0].sums, alone.sums)
        assert torch.equal(ranks[0].counts, alone.counts) and not ranks[1].counts.any() and not ranks[1].sums.any()
    saved = alone.state_dict()
    monkeypatch.setattr("llrnn_research.output_trees.learner._rank", lambda: 1)
    ranks[1].load_state_dict(saved)
    assert not ranks[1].counts.any(), "the first process has them"
