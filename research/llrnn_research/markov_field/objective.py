"""The lower bound on a text's log-likelihood, per token, with its gradients (thesis, equation 4.2 and below 4.13).

Sizes: R kinds of tokens, K order.

    L(θ, t; δ) = ⟨μ̂, θ⟩ − log Z★(θ, δ) / (K+1)

holds for every δ. It is concave in θ and δ together, because log Z★ is a log-sum-exp of linear functions of both. So it
can be maximised over δ alone (Algorithm 4.1), over θ with the best δ (4.2), or over both together.

`tighten` is Algorithm 4.1: it finds the dual variables δ with the tightest bound on log Z for given potentials. log Z★
is smooth in δ, so L-BFGS replaces the thesis' sub-gradient steps (§4.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from llrnn_research.markov_field.lbfgs import LBFGS
from llrnn_research.markov_field.moments import Moments
from llrnn_research.markov_field.potentials import Form, Parameters, Potentials
from llrnn_research.markov_field.star import MEMORY, Beliefs, Star


@dataclass(frozen=True)
class Value:
    """The objective at one point."""

    objective: float  # the bound minus the penalty, nats per token
    bound: float  # L
    gradient: Mapping[str, Tensor]  # of the parameters
    delta_gradient: Tensor  # (K, R)
    beliefs: Beliefs
    potentials: Potentials


@dataclass(frozen=True)
class Objective:
    """L for one text and one form of potentials."""

    form: Form
    moments: Moments
    penalty: float = 0.0  # λ of λ/2 · Σ parameters², except for those of θ⁰
    memory: int = MEMORY  # bytes that exponentials may take

    def at(self, parameters: Parameters, delta: Tensor) -> Value:
        """Return value and gradients for parameters and δ (K, R)."""
        potentials = self.form.potentials(parameters)
        star = Star(potentials, self.memory)
        beliefs = star.solve(delta)
        scale = 1.0 / (potentials.order + 1)
        expected, gradient = self._edges(star, beliefs)
        bound = unary_term(self.moments, potentials) + expected - scale * beliefs.log_z
        raw = self.form.gradient(parameters, gradient)
        penalised = {name: value for name, value in parameters.items() if name != "unary"}
        objective = bound - 0.5 * self.penalty * sum(float(value.square().sum()) for value in penalised.values())
        if self.penalty:
            raw = {name: raw[name] - self.penalty * penalised[name] if name in penalised else raw[name] for name in raw}
        return Value(objective, bound, raw, -scale * beliefs.dual_gradient, beliefs, potentials)

    def _edges(self, star: Star, beliefs: Beliefs) -> tuple[float, Potentials]:
        """Return Σ_l ⟨μ̂ˡ, θˡ⟩, and the gradient of L in θ (for low rank, in Aˡ and Bˡ)."""
        potentials, moments = star.potentials, self.moments
        left, right, expected = [], [], 0.0
        for edge, pairs in enumerate(moments.pairs):
            if potentials.right is None:
                places, values = pairs.indices(), pairs.values()
                expected += float(potentials.left[edge][places[0], places[1]] @ values)
                gradient = star.marginals(beliefs, edge).neg_()
                gradient[places[0], places[1]] += values
                left.append(gradient)
                continue
            a, b = potentials.left[edge], potentials.right[edge]
            seen_b, seen_a = torch.sparse.mm(pairs, b), torch.sparse.mm(pairs.t(), a)
            expected += float((seen_b * a).sum())
            model_b, model_a = star.products(beliefs, edge, b, a)
            left.append(seen_b - model_b)
            right.append(seen_a - model_a)
        unary = moments.unary - beliefs.nodes.mean(0)
        return expected, Potentials(unary, tuple(left), tuple(right) or None)


def unary_term(moments: Moments, potentials: Potentials) -> float:
    """Return ⟨μ̂⁰, θ⁰⟩, or −inf if the text has forbidden tokens."""
    seen = moments.unary > 0
    return float(moments.unary[seen] @ potentials.unary[seen])


def bound(moments: Moments, potentials: Potentials, log_z: float) -> float:
    """Return L of another text, for log Z★ at any δ, in nats per token."""
    expected = unary_term(moments, potentials)
    for edge, pairs in enumerate(moments.pairs):
        places, values = pairs.indices(), pairs.values()
        if potentials.right is None:
            expected += float(potentials.left[edge][places[0], places[1]] @ values)
        else:
            expected += float((torch.sparse.mm(pairs, potentials.right[edge]) * potentials.left[edge]).sum())
    return expected - log_z / (potentials.order + 1)


ITERATIONS = 200
TOLERANCE = 1e-9  # of log Z★, relative


@dataclass(frozen=True)
class Tightened:
    """The result of `tighten`."""

    delta: Tensor  # (K, R)
    beliefs: Beliefs
    log_z: tuple[float, ...]  # initially, and after each iteration


def tighten(star: Star, delta: Tensor, iterations: int = ITERATIONS) -> Tightened:
    """Minimise log Z★ by L-BFGS from `delta` (K, R), until its relative decrease is below TOLERANCE."""

    def function(x: Tensor) -> tuple[float, Tensor]:
        beliefs = star.solve(x.view_as(delta))
        return beliefs.log_z, beliefs.dual_gradient.flatten()

    search = LBFGS(function, delta.flatten())
    values = [search.value]
    while len(values) <= iterations and search.step():
        values.append(search.value)
        if values[-2] - values[-1] < TOLERANCE * max(1.0, abs(values[-1])):
            break
    best = search.x.view_as(delta)
    return Tightened(best, star.solve(best), tuple(values))
