"""The bound on log Z (star.py, objective.py) against sums over all sequences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from field_oracles import (
    cyclic_log_partition,
    cyclic_scores,
    dense,
    linear_log_partition,
    no_delta,
    random_potentials,
    sequences,
    star_log_partition,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.errors import DataError
from llrnn_research.markov_field.background import future_potential, log_probs_left_to_right, next_log_probs
from llrnn_research.markov_field.moments import layout
from llrnn_research.markov_field.objective import tighten
from llrnn_research.markov_field.potentials import Form, Potentials
from llrnn_research.markov_field.pseudo_likelihood import learn_by_pseudo_likelihood, log_conditionals, windows
from llrnn_research.markov_field.star import Star


def bound(potentials: Potentials, log_z: float, length: int) -> float:
    return length / (potentials.order + 1) * log_z


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("width", [0, 2])
@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_the_star_is_solved_exactly(order: int, width: int, memory: int) -> None:
    potentials = random_potentials(4, order, seed=order, width=width)
    delta = torch.randn(order, 4, dtype=torch.float64, requires_grad=True)
    expected = star_log_partition(potentials, delta)
    (gradient,) = torch.autograd.grad(expected, delta)
    beliefs = Star(potentials, memory, block=64).solve(delta.detach())  # two rows in a block
    assert beliefs.log_z == pytest.approx(expected.item(), rel=1e-12)
    torch.testing.assert_close(beliefs.dual_gradient, gradient)
    torch.testing.assert_close(beliefs.nodes.sum(1), torch.ones(order + 1, dtype=torch.float64))


@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_marginals_of_edges_and_their_products(memory: int) -> None:
    potentials, delta = random_potentials(5, 2, width=3), torch.randn(2, 5, dtype=torch.float64)
    star = Star(potentials, memory, block=80)
    beliefs = star.solve(delta)
    for edge in range(2):
        marginals = star.marginals(beliefs, edge)
        torch.testing.assert_close(marginals.sum(1), beliefs.nodes[0])
        torch.testing.assert_close(marginals.sum(0), beliefs.nodes[edge + 1])
        right, left = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
        first, second = star.products(beliefs, edge, right, left)
        torch.testing.assert_close(first, marginals @ right)
        torch.testing.assert_close(second, marginals.T @ left)


@settings(max_examples=30)
@given(
    size=st.integers(2, 3), order=st.integers(1, 3), extra=st.integers(1, 4), spread=st.floats(0.0, 3.0),
    duals=st.floats(0.0, 4.0), seed=st.integers(0, 10_000),
)  # fmt: skip
def test_the_bound_holds_for_any_dual_variables_and_any_length(
    size: int, order: int, extra: int, spread: float, duals: float, seed: int
) -> None:
    """Also where K+1 does not divide N, which the thesis assumes."""
    potentials, length = random_potentials(size, order, spread, seed), order + extra
    delta = duals * torch.randn(order, size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    cyclic = float(cyclic_log_partition(potentials, length))
    assert bound(potentials, Star(potentials).solve(delta).log_z, length) >= cyclic - 1e-9
    assert cyclic >= float(linear_log_partition(potentials, length, separator=0)) - 1e-9


@pytest.mark.parametrize("order", [1, 2])
def test_tightening_lowers_the_bound_until_all_nodes_agree(order: int) -> None:
    potentials = random_potentials(4, order, seed=3)
    star = Star(potentials)
    found = tighten(star, no_delta(star))
    values = found.log_z
    assert values[0] == star.solve(no_delta(star)).log_z
    assert all(after <= before for before, after in zip(values, values[1:], strict=False))
    assert values[-1] < values[0] - 0.01
    assert found.beliefs.log_z == pytest.approx(values[-1])
    assert float(found.beliefs.dual_gradient.abs().max()) < 1e-3


def test_figure_4_5_the_bound_nears_the_exact_value_as_the_text_grows() -> None:
    """Per token: log-partition of the chain with fixed separators, and its bound."""
    potentials = random_potentials(4, 1, spread=0.5, seed=1)
    star = Star(potentials)
    log_z = tighten(star, no_delta(star)).beliefs.log_z
    gaps = [
        bound(potentials, log_z, length) / length - float(linear_log_partition(potentials, length, 0)) / length
        for length in range(3, 9)
    ]
    assert all(gap > 0 for gap in gaps)
    assert all(after < before for before, after in zip(gaps, gaps[1:], strict=False))


def test_without_edges_the_bound_is_exact() -> None:
    potentials = random_potentials(4, 2, spread=0.0)
    expected = 6 * math.log(4)
    assert bound(potentials, Star(potentials).solve(no_delta(Star(potentials))).log_z, 6) == pytest.approx(expected)


def test_forbidden_tokens_have_no_part() -> None:
    whole = random_potentials(4, 2, seed=2)
    without = Potentials(whole.unary[:3], tuple(edge[:3, :3] for edge in whole.left), None)
    unary = whole.unary.clone()
    unary[3] = -math.inf
    star = Star(Potentials(unary, whole.left, None))
    found = tighten(star, no_delta(star))
    expected = tighten(Star(without), no_delta(Star(without)))
    assert found.beliefs.log_z == pytest.approx(expected.beliefs.log_z, abs=1e-7)
    assert float(found.beliefs.nodes[:, 3].abs().max()) == 0.0


def test_potentials_beyond_float64_say_so() -> None:
    potentials = random_potentials(3, 1, spread=1e308)
    with pytest.raises(DataError, match="left the range of float64; train with a --penalty"):
        Star(potentials).solve(no_delta(Star(potentials)))


# Conditionals of one token, pseudo-likelihood, the conditional from left to right
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("width", [0, 2])
def test_the_conditional_is_that_of_the_joint_distribution(order: int, width: int) -> None:
    potentials = random_potentials(3, order, seed=4, width=width)
    every = sequences(3, 6)
    joint = cyclic_scores(potentials, every)
    for row in (7, 100, 400):
        tokens = every[row]
        found = log_conditionals(potentials, windows(tokens.numpy(), order))
        for place in range(6):
            others = (every == tokens).sum(1) - (every[:, place] == tokens[place]).long() == 5
            expected = joint[row] - joint[others].logsumexp(0)
            assert float(found[place]) == pytest.approx(float(expected))


def test_pseudo_likelihood_learns_what_alternates() -> None:
    """a b a b …: each token is sure beside its neighbours; the objective rises, and is reported as it is."""
    cycle = layout(np.array([1, 2] * 30), np.full(6, 10), 0, 1)
    window, form = windows(cycle, 1), Form("uw", 1, torch.zeros(3, dtype=torch.float64), 2)
    seen: list[float] = []
    start = form.initial()
    before = float(log_conditionals(form.potentials(start), window).mean())
    made = learn_by_pseudo_likelihood(
        form, start, window, window, epochs=60, rate=0.05, watch=lambda progress: seen.append(progress.valid or 0.0)
    )
    after = float(log_conditionals(form.potentials(made), window).mean())
    assert before < -1.0 < -0.2 < after == pytest.approx(max(seen))


def chain_conditional(potentials, length: int) -> torch.Tensor:  # type: ignore[no-untyped-def]
    """p(next | last) in the middle of a long chain of order 1: by products of matrices."""
    step = (potentials.unary + dense(potentials)[0]).exp()
    ahead = torch.ones(potentials.size, dtype=torch.float64)
    for _ in range(length):
        ahead = step @ ahead
        ahead = ahead / ahead.sum()
    joint = step * ahead
    return (joint / joint.sum(1, keepdim=True)).log()


@pytest.mark.parametrize("width", [0, 2])
def test_the_outlook_is_exact_for_order_one(width: int) -> None:
    potentials = random_potentials(5, 1, seed=6, width=width)
    rho = future_potential(potentials, torch.full((5,), 0.2, dtype=torch.float64))
    found = next_log_probs(potentials, rho, torch.arange(5).unsqueeze(1))
    torch.testing.assert_close(found, chain_conditional(potentials, 300))


def test_the_outlook_helps_for_order_two() -> None:
    """Beside the field's own conditionals, from sums over all that may follow, in the mean over contexts."""
    potentials = random_potentials(3, 2, spread=0.7, seed=8)
    star = Star(potentials)
    rho = future_potential(potentials, tighten(star, no_delta(star)).beliefs.nodes[0])
    edges, contexts = dense(potentials), sequences(3, 2)  # the last token first
    ahead = torch.ones(3, 3, dtype=torch.float64)  # of the last token, and the one before
    for _ in range(200):
        step = (potentials.unary + edges[0][:, None, :] + edges[1][None, :, :]).exp()  # last, before, next
        ahead = torch.einsum("lbn,nl->lb", step, ahead)
        ahead = ahead / ahead.sum()
    scores = (potentials.unary + edges[0][contexts[:, 0]] + edges[1][contexts[:, 1]]).exp()
    exact = scores * ahead[:, contexts[:, 0]].T
    exact = exact / exact.sum(1, keepdim=True)

    def divergence(of: torch.Tensor) -> float:
        return float((exact * (exact.log() - next_log_probs(potentials, of, contexts))).sum(1).mean())

    assert divergence(rho) < 0.25 * divergence(torch.zeros_like(rho))


def test_left_to_right_is_a_distribution_over_sentences() -> None:
    """Each row of windows is scored after the tokens before it."""
    potentials = random_potentials(4, 2, seed=2, width=2)
    rho = future_potential(potentials, torch.full((4,), 0.25, dtype=torch.float64))
    cycle = np.array([0, 0, 1, 2, 3, 0, 0, 2])
    window = windows(cycle, 2)[:, :3]
    found = log_probs_left_to_right(potentials, rho, window)
    for i in range(len(cycle)):
        before = torch.tensor([[cycle[i - 1], cycle[i - 2]]])
        every = next_log_probs(potentials, rho, before)[0]
        assert float(every.exp().sum()) == pytest.approx(1.0)
        assert float(found[i]) == pytest.approx(float(every[cycle[i]]))
