"""J_n and its derivatives, against definitions and finite differences; Lemmas 3.2 and 3.3 of Jernite (2018)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.systems.output_trees.reassignment import choice_weights


def terms(q: np.ndarray, p: np.ndarray) -> list[float]:
    """What each class adds to (3.10), by its definition."""
    classes, children = p.shape
    mean = [sum(q[i] * p[i, j] for i in range(classes)) for j in range(children)]
    return [2 / children * q[i] * sum(abs(mean[j] - p[i, j]) for j in range(children)) for i in range(classes)]


def objective(counts: np.ndarray, p: np.ndarray) -> float:
    """J_n of a node."""
    return sum(terms(counts / counts.sum(), p))


@st.composite
def nodes(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """counts (K,), p (K, M) of up to 5 classes and 2 to 4 children; some counts may be zero."""
    classes, children = draw(st.integers(1, 5)), draw(st.integers(2, 4))
    random = np.random.default_rng(draw(st.integers(0, 9999)))
    p = random.dirichlet(np.full(children, draw(st.sampled_from([0.05, 1.0, 10.0]))), size=classes)
    counts = random.integers(0, 9, size=classes)
    counts[0] += 1
    return counts, p


def test_the_example_of_figure_3_4() -> None:
    """Its q and p as printed; p_r = 0.45 there is rounded."""
    p = np.array([0.55, 0.62, 0.25, 0.3])
    value = objective(np.array([15, 39, 23, 23]), np.stack([p, 1 - p], axis=1))
    assert value == pytest.approx(0.32, abs=0.01)


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


@given(nodes())
def test_lemma_3_2_bounds_of_the_objective(node: tuple[np.ndarray, np.ndarray]) -> None:
    counts, p = node
    children = p.shape[1]
    assert -1e-12 <= objective(counts, p) <= 4 / children * (1 - 1 / children) + 1e-12


@given(st.integers(2, 4), st.integers(1, 3), st.integers(0, 9999))
def test_lemma_3_3_balanced_and_pure_nodes_reach_the_bound(children: int, each: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    counts = np.tile(random.integers(1, 9, size=each), children)  # the same counts below every child
    child = np.repeat(np.arange(children), each)
    order = random.permutation(len(child))
    assert objective(counts[order], np.eye(children)[child[order]]) == pytest.approx(4 / children * (1 - 1 / children))


@settings(max_examples=200)
@given(nodes())
def test_lemma_3_3_no_other_nodes_reach_it(node: tuple[np.ndarray, np.ndarray]) -> None:
    """The gap is at least what the proof's steps leave: that of a pure node with the same p_j, if it is unbalanced."""
    counts, p = node
    children, q = p.shape[1], counts / counts.sum()
    best = 4 / children * (1 - 1 / children)
    unbalanced = 4 / children * ((q @ p - 1 / children) ** 2).sum()
    impure = (q[:, None] * np.minimum(p, 1 - p)).sum()
    gap = best - objective(counts, p)
    assert gap >= unbalanced - 1e-12
    if impure > 1e-3:
        assert gap > 1e-9


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
