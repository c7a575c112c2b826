"""The bound on log Z (star.py, objective.py) against sums over all sequences."""

from __future__ import annotations

import math

import pytest
import torch
from field_oracles import (
    cyclic_log_partition,
    linear_log_partition,
    no_delta,
    random_potentials,
    star_log_partition,
    tighten_by_subgradient,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.systems.markov_field.objective import tighten
from fairseq_llrnn.systems.markov_field.potentials import Potentials
from fairseq_llrnn.systems.markov_field.star import Star


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


@settings(max_examples=60)
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


@pytest.mark.parametrize("search", [tighten, tighten_by_subgradient])
@pytest.mark.parametrize("order", [1, 2])
def test_tightening_lowers_the_bound_until_all_nodes_agree(search, order: int) -> None:
    potentials = random_potentials(4, order, seed=3)
    star = Star(potentials)
    found = search(star, no_delta(star))
    values = found.log_z
    assert values[0] == star.solve(no_delta(star)).log_z
    assert all(after <= before for before, after in zip(values, values[1:], strict=False))
    assert values[-1] < values[0] - 0.01
    assert found.beliefs.log_z == pytest.approx(values[-1])
    assert float(found.beliefs.dual_gradient.abs().max()) < 1e-3


def test_both_searches_find_the_same_minimum() -> None:
    star = Star(random_potentials(4, 2, seed=5))
    one, other = tighten(star, no_delta(star)), tighten_by_subgradient(star, no_delta(star))
    assert one.beliefs.log_z == pytest.approx(other.beliefs.log_z, abs=1e-5)
    assert len(one.log_z) < len(other.log_z) / 4


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
    with pytest.raises(DataError, match="beyond what float64 can sum; train with a --penalty"):
        Star(potentials).solve(no_delta(Star(potentials)))
