"""Moments, the objective's gradients, L-BFGS (moments.py, objective.py, lbfgs.py)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import torch
from field_oracles import SENTENCES, SEPARATOR, form_of, moments_of
from hypothesis import given, settings
from hypothesis import strategies as st

from llrnn_research.markov_field.lbfgs import LBFGS
from llrnn_research.markov_field.learning import join_values, split_values
from llrnn_research.markov_field.moments import layout
from llrnn_research.markov_field.objective import Objective, bound
from llrnn_research.markov_field.potentials import FORMS

# ---- moments --------------------------------------------------------------------------------------------------------


def test_the_layout_puts_separators_before_each_sentence() -> None:
    tokens = np.array([5, 6, 7])
    assert layout(tokens, np.array([2, 0, 1]), 0, 2).tolist() == [0, 0, 5, 6, 0, 0, 7]


@settings(max_examples=30)
@given(
    sentences=st.lists(st.lists(st.integers(1, 3), max_size=4), min_size=1, max_size=8).filter(any),
    order=st.integers(1, 3), block=st.integers(1, 12),
)  # fmt: skip
def test_moments_are_sums_over_sentences_whatever_their_order(
    sentences: list[list[int]], order: int, block: int
) -> None:
    whole, size = moments_of(sentences, order, 4), 4
    cycle = [token for sentence in sentences if sentence for token in [SEPARATOR] * order + sentence]
    expected = np.zeros((order, size, size))
    for edge in range(order):
        for i, token in enumerate(cycle):
            expected[edge, token, cycle[(i + edge + 1) % len(cycle)]] += 1 / len(cycle)
    for made in (whole, moments_of(sentences[::-1], order, 4), moments_of(sentences, order, 4, block)):
        assert (made.tokens, made.words, made.sentences) == (len(cycle), len(cycle) - order * sum(map(bool, sentences)),
                                                             sum(map(bool, sentences)))  # fmt: skip
        torch.testing.assert_close(made.unary, torch.from_numpy(expected[0].sum(1)))
        for edge in range(order):
            torch.testing.assert_close(made.pairs[edge].to_dense(), torch.from_numpy(expected[edge]))


# ---- gradients ------------------------------------------------------------------------------------------------------


def value_of(objective: Objective, x: torch.Tensor) -> float:
    shapes = objective.form.shapes()
    many = len(x) - objective.form.order * objective.form.size
    return objective.at(split_values(x[:many], shapes), x[many:].view(objective.form.order, -1)).objective


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("with_features", [False, True])
def test_gradients_are_finite_differences(name: str, with_features: bool) -> None:
    if name == "explicit" and with_features:
        return
    generator = torch.Generator().manual_seed(3)
    features = torch.randn(4, 3, dtype=torch.float64, generator=generator).to_sparse() if with_features else None
    form = form_of(name, features=features)
    objective = Objective(form, moments_of(SENTENCES, 2, 4), penalty=0.1)
    many = sum(int(np.prod(shape)) for shape in form.shapes().values())
    x = 0.5 * torch.randn(many + 8, dtype=torch.float64, generator=generator)
    value = objective.at(split_values(x[:many], form.shapes()), x[many:].view(2, 4))
    found = torch.cat([join_values(value.gradient, form.shapes()), value.delta_gradient.flatten()])
    step = 1e-6 * torch.eye(len(x), dtype=torch.float64)
    expected = [(value_of(objective, x + d) - value_of(objective, x - d)) / 2e-6 for d in step]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), atol=1e-7, rtol=1e-5)


def test_the_bound_of_the_text_itself_is_the_objectives() -> None:
    moments = moments_of(SENTENCES, 2, 4)
    for name in FORMS:
        form = form_of(name)
        value = Objective(form, moments).at(form.initial(), torch.zeros(2, 4, dtype=torch.float64))
        assert bound(moments, value.potentials, value.beliefs.log_z) == pytest.approx(value.bound)


# ---- L-BFGS ---------------------------------------------------------------------------------------------------------


def rosenbrock(x: torch.Tensor) -> tuple[float, torch.Tensor]:
    y = x.detach().requires_grad_()
    with torch.enable_grad():
        value = (100 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2).sum()
        (gradient,) = torch.autograd.grad(value, y)
    return value.item(), gradient


def test_it_ends_where_scipys_does() -> None:
    start = torch.tensor([-1.2, 1.0, 0.5, -0.7], dtype=torch.float64)
    search = LBFGS(rosenbrock, start)
    while search.step():
        pass
    other = scipy.optimize.minimize(
        lambda x: tuple(np.asarray(part) for part in rosenbrock(torch.from_numpy(x))), start.numpy(), jac=True,
        method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    np.testing.assert_allclose(search.x.numpy(), other.x, atol=1e-4)
    assert search.evaluations < 3 * other.nfev
