"""Conditionals of one token, pseudo-likelihood, the conditional from left to right."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from field_oracles import cyclic_scores, dense, no_delta, random_potentials, sequences

from fairseq_llrnn.systems.markov_field.background import log_probs_left_to_right, next_log_probs, outlook
from fairseq_llrnn.systems.markov_field.moments import layout
from fairseq_llrnn.systems.markov_field.objective import tighten
from fairseq_llrnn.systems.markov_field.potentials import Form
from fairseq_llrnn.systems.markov_field.pseudo_likelihood import learn_by_pseudo_likelihood, log_conditionals, windows
from fairseq_llrnn.systems.markov_field.star import Star


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
    rho = outlook(potentials, torch.full((5,), 0.2, dtype=torch.float64))
    found = next_log_probs(potentials, rho, torch.arange(5).unsqueeze(1))
    torch.testing.assert_close(found, chain_conditional(potentials, 300))


def test_the_outlook_helps_for_order_two() -> None:
    """Beside the field's own conditionals, from sums over all that may follow, in the mean over contexts."""
    potentials = random_potentials(3, 2, spread=0.7, seed=8)
    star = Star(potentials)
    rho = outlook(potentials, tighten(star, no_delta(star)).beliefs.nodes[0])
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
    rho = outlook(potentials, torch.full((4,), 0.25, dtype=torch.float64))
    cycle = np.array([0, 0, 1, 2, 3, 0, 0, 2])
    window = windows(cycle, 2)[:, :3]
    found = log_probs_left_to_right(potentials, rho, window)
    for i in range(len(cycle)):
        before = torch.tensor([[cycle[i - 1], cycle[i - 2]]])
        every = next_log_probs(potentials, rho, before)[0]
        assert float(every.exp().sum()) == pytest.approx(1.0)
        assert float(found[i]) == pytest.approx(float(every[cycle[i]]))
