"""Algorithm 4.2 (learning.py), and the curvature that it is scaled by (lbfgs.py)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from field_oracles import (
    SENTENCES,
    SEPARATOR,
    cyclic_log_partition,
    cyclic_scores,
    dense,
    form_of,
    linear_log_partition,
    moments_of,
    no_delta,
    random_potentials,
    star_log_partition,
)

from fairseq_llrnn.errors import OptionError
from llrnn_research.markov_field.lbfgs import LBFGS, SQUARE, of_words
from llrnn_research.markov_field.learning import METHODS, Learner, Plan, join_values, split_values
from llrnn_research.markov_field.moments import count_moments
from llrnn_research.markov_field.objective import Objective, bound, tighten
from llrnn_research.markov_field.potentials import FORMS, Form, Potentials
from llrnn_research.markov_field.star import Star


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("method", METHODS)
def test_both_methods_reach_the_same_bound(name: str, method: str) -> None:
    """Explicit potentials: the optimum is one. Low rank: each climbs far above the unigram."""
    moments, form = moments_of(SENTENCES, 1, 4), form_of(name, order=1)
    objective = Objective(form, moments, penalty=0.01)
    learner = Learner.begin(objective, Plan(method, iterations=150, tolerance=1e-9), form.initial())
    before = objective.at(form.initial(), torch.zeros(1, 4, dtype=torch.float64)).objective
    learner.run()
    parameters, delta = learner.result()
    after = objective.at(parameters, delta)
    assert after.objective > before + 0.1
    if name == "explicit":
        assert after.objective == pytest.approx(-1.1956, abs=1e-4)
        assert all(float(gradient.abs().max()) < 1e-3 for gradient in after.gradient.values())


def forward_log_partition(potentials: Potentials, length: int, separator: int) -> torch.Tensor:
    """As `linear_log_partition`, for order 1: N products of a matrix with a vector."""
    (edge,) = dense(potentials)
    total = potentials.unary[separator] + edge[separator]
    for _ in range(length - 2):
        total = ((total + potentials.unary).unsqueeze(1) + edge).logsumexp(0)
    return (total + potentials.unary + edge[:, separator]).logsumexp(0)


def test_the_forward_algorithm_is_the_sum_over_sequences() -> None:
    potentials = random_potentials(3, 1)
    expected = float(linear_log_partition(potentials, 5, 1))
    assert float(forward_log_partition(potentials, 5, 1)) == pytest.approx(expected)


def sequence_of_a_chain(length: int, seed: int) -> list[int]:
    """Words 1, 2, 3, each by the one before."""
    generator = np.random.default_rng(seed)
    steps = generator.dirichlet([0.5] * 3, size=4)
    words = [1]
    while len(words) < length:
        words.append(1 + int(generator.choice(3, p=steps[words[-1]])))
    return words


def test_figure_4_6_the_lifted_model_is_nearly_the_one_of_the_exact_likelihood() -> None:
    """N = 60, four words; exact gradients by the forward algorithm. Per token."""
    words = sequence_of_a_chain(59, seed=1)
    moments, form = moments_of([words], 1, 4), form_of("explicit", order=1)
    tokens, penalty = torch.tensor([[0, *words]]), 0.005

    def likelihood_of(potentials: Potentials) -> torch.Tensor:
        return (cyclic_scores(potentials, tokens)[0] - forward_log_partition(potentials, 60, 0)) / 60

    def exact(x: torch.Tensor) -> tuple[float, torch.Tensor]:
        leaf = x.detach().requires_grad_()
        with torch.enable_grad():
            parameters = split_values(leaf, form.shapes())
            loss = 0.5 * penalty * parameters["edges"].square().sum() - likelihood_of(form.potentials(parameters))
            (gradient,) = torch.autograd.grad(loss, leaf)
        return loss.item(), gradient

    search = LBFGS(exact, join_values(form.initial(), form.shapes()))
    for _ in range(100):
        search.step()
    learner = Learner.begin(Objective(form, moments, penalty), Plan(iterations=100), form.initial())
    learner.run()
    parameters, _ = learner.result()

    at_optimum = split_values(search.x, form.shapes())
    best, lifted = (float(likelihood_of(form.potentials(p))) for p in (at_optimum, parameters))
    seen = moments.unary[moments.unary > 0]
    without_edges = float(seen @ seen.log())
    assert learner.history[-1].bound < lifted < best  # the bound is one
    assert lifted - without_edges > 0.75 * (best - without_edges)


def test_the_bound_after_learning_is_below_the_cycles_likelihood() -> None:
    moments, form = moments_of(SENTENCES, 2, 4), form_of("uw")
    learner = Learner.begin(Objective(form, moments), Plan(iterations=30), form.initial())
    learner.run()
    potentials = form.potentials(learner.result()[0])
    star = Star(potentials)
    tight = bound(moments, potentials, tighten(star, no_delta(star)).beliefs.log_z)
    cycle = torch.tensor([[token for sentence in SENTENCES if sentence for token in [0, 0, *sentence]]])
    # 4^19 sequences are too many: the partition function of a cycle is a trace of products of matrices
    exact = float(cyclic_scores(potentials, cycle)[0]) - log_trace(potentials, cycle.size(1))
    assert moments.tokens * tight <= exact + 1e-9


def log_trace(potentials: Potentials, length: int) -> float:
    """log-partition of a cycle of order 2 by products of matrices over pairs of tokens."""
    size, (one, two) = potentials.size, dense(potentials)
    step = torch.zeros(size, size, size, size, dtype=torch.float64)  # (a, b) -> (b, c)
    for b in range(size):
        step[:, b, b, :] = (potentials.unary + one[b] + two).exp()
    step = step.reshape(size * size, size * size)
    return float(torch.linalg.matrix_power(step / step.max(), length).trace().log() + length * step.max().log())


def test_the_trace_is_the_sum_over_sequences() -> None:
    form = form_of("uw", size=3)
    potentials = form.potentials(form.initial())
    assert log_trace(potentials, 5) == pytest.approx(float(cyclic_log_partition(potentials, 5)))


@pytest.mark.parametrize("method", METHODS)
def test_resumed_training_is_the_same_training(method: str) -> None:
    form = form_of("uw")
    objective = Objective(form, moments_of(SENTENCES, 2, 4), penalty=0.01)
    valid = moments_of([[1, 2], [3, 1]], 2, 4)
    whole = Learner.begin(objective, Plan(method, iterations=8), form.initial(), valid)
    whole.run()
    half = Learner.begin(objective, Plan(method, iterations=4), form.initial(), valid)
    half.run()
    rest = Learner.resume(objective, Plan(method, iterations=8), half.state(), valid)
    rest.run()
    assert torch.equal(rest.search.x, whole.search.x)
    assert torch.equal(rest.best, whole.best)
    assert [p.bound for p in rest.history] == [p.bound for p in whole.history]


@pytest.mark.parametrize("name", FORMS)
def test_curvature_is_about_the_second_derivative_where_all_is_independent(name: str) -> None:
    """Of log Z★ / (K+1), the entries of other rows being as large as they are taken to be."""
    moments = moments_of([[1, 2], [2, 1, 1], [2]], 2, 3)
    form = form_of(name, size=3)
    found, generator = of_words(form, moments), torch.Generator().manual_seed(1)
    assert {one: tuple(value.shape) for one, value in found.items()} == form.shapes() | {"delta": (2, 3)}
    for own in found:
        rest = {one: torch.zeros(shape, dtype=torch.float64) for one, shape in form.shapes().items()}
        rest["unary"] = moments.unary.log()
        for other in rest.keys() - {"unary", "edges", own}:
            signs = torch.randint(0, 2, rest[other].shape, generator=generator) * 2.0 - 1.0
            rest[other] += signs * (SQUARE**0.5 if other != "R" else 0.5)
        if {"U", "V", "W"} & rest.keys() and own in ("unary", "delta"):
            rest |= {one: torch.zeros_like(value) for one, value in rest.items() if one != "unary"}

        def log_z(x: torch.Tensor, own: str = own, rest: dict[str, torch.Tensor] = rest) -> torch.Tensor:
            delta = x if own == "delta" else torch.zeros(2, 3, dtype=torch.float64)
            return star_log_partition(form.potentials(rest | ({} if own == "delta" else {own: x})), delta) / 3

        here = torch.zeros_like(found[own]) if own != "unary" else rest["unary"]
        hessian = torch.autograd.functional.hessian(log_z, here)
        diagonal = hessian.view(here.numel(), -1).diagonal().view(here.shape)
        if own in ("U", "V", "W", "R"):  # what an entry is multiplied by depends on signs; a row's mean does not
            diagonal = diagonal.mean(-1, keepdim=True)
        assert bool(((found[own] / diagonal > 0.25) & (found[own] / diagonal < 6.0)).all()), own


def test_the_scaled_search_is_the_sooner_one() -> None:
    tokens = np.minimum(np.random.default_rng(1).zipf(1.5, 20_000), 100)
    tokens[1::2] = (tokens[::2] * 7) % 100 + 1  # words that follow others, some often, some rarely
    moments = count_moments(tokens, np.full(2000, 10), SEPARATOR, 1, 101)
    for name, width in (("explicit", 0), ("uw", 8)):
        objective = Objective(Form(name, 1, torch.zeros(101, dtype=torch.float64), width), moments, penalty=1e-6)
        start = objective.form.initial(1, moments.unary.clamp(min=1.0 / moments.tokens).log())
        scaled = Learner.begin(objective, Plan(iterations=15), start)
        state = scaled.state()
        scales = state["scales"]
        state |= {"search_x": state["search_x"] * scales, "search_gradient": state["search_gradient"] / scales}
        unscaled = Learner.resume(objective, Plan(iterations=15), state | {"scales": torch.ones_like(scales)})
        reached = []
        for learner in (scaled, unscaled):
            learner.run()
            reached.append(learner.history[-1].objective)
        assert reached[0] > reached[1] + 0.1, (name, reached)


def test_training_stops_when_another_text_gets_worse() -> None:
    form = form_of("explicit")
    objective, valid = Objective(form, moments_of(SENTENCES, 2, 4)), moments_of([[3, 2, 2, 2, 3]], 2, 4)
    learner = Learner.begin(objective, Plan(iterations=100, patience=5), form.initial(), valid)
    learner.run()
    assert len(learner.history) < 100
    assert not any(progress.best for progress in learner.history[-5:])
    best = max(progress.valid or -9.0 for progress in learner.history)
    parameters, delta = learner.result()
    found = objective.at(parameters, delta)
    assert bound(valid, found.potentials, found.beliefs.log_z) == pytest.approx(best)


# ---- features -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["urw", "uw", "uvw"])
def test_signatures_give_what_all_words_give(name: str) -> None:
    """S² sums instead of V²: the same bound and the same gradients, with θ⁰ = log b(x) + u·φ(x)."""
    class_of = torch.tensor([0, 1, 2, 1, 2, 2])
    weights = torch.tensor([0.2, 0.1, 0.3, 0.05, 0.15, 0.2], dtype=torch.float64)
    rows = torch.tensor([[1.0, 0.0], [0.5, 1.0], [0.0, -1.0]], dtype=torch.float64)
    class_weights = torch.zeros(3, dtype=torch.float64).index_add(0, class_of, weights)
    small = Form(name, 2, class_weights.log(), 2, rows.to_sparse())
    large = Form(name, 2, weights.log(), 2, rows[class_of].to_sparse())
    sentences = [[1, 2, 5, 3], [4, 4, 1], [2, 3]]
    of_classes = moments_of([[int(class_of[word]) for word in sentence] for sentence in sentences], 2, 3)
    of_words = moments_of(sentences, 2, 6)
    parameters = small.initial(4)
    delta = torch.randn(2, 3, dtype=torch.float64)
    found = Objective(small, of_classes).at(parameters, delta)
    expected = Objective(large, of_words).at(parameters, delta[:, class_of])
    shares = float(of_words.unary @ (weights.log() - class_weights.log()[class_of]))  # what says which member it is
    assert found.bound + shares == pytest.approx(expected.bound)
    for name in parameters:
        torch.testing.assert_close(found.gradient[name], expected.gradient[name])
    tight, other = (tighten(Star(value.potentials), no_delta(Star(value.potentials))) for value in (found, expected))
    assert tight.beliefs.log_z == pytest.approx(other.beliefs.log_z, abs=1e-6)  # the best δ is one per signature


def test_explicit_potentials_have_no_features() -> None:
    with pytest.raises(OptionError, match="--form explicit: not possible with --prior"):
        form_of("explicit", features=torch.eye(4).to_sparse())
