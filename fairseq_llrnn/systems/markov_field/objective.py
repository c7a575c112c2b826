"""The lower bound on a text's log-likelihood, per token, with its gradients (thesis, equation 4.2 and below 4.13).

Sizes: R kinds of tokens, K order.

    L(θ, t; δ) = ⟨μ̂, θ⟩ − log Z★(θ, δ) / (K+1)

is valid for every δ. It is concave in θ and δ together, for log Z★ is a logarithm of a sum of exponentials that are
linear in both. So it can be maximised over δ alone (Algorithm 4.1), over θ with the best δ (4.2), or over both at once.

`tighten` is Algorithm 4.1: the dual variables δ that make the bound on log Z tightest, for given potentials. log Z★
is smooth in δ, so that L-BFGS takes the place of the thesis' sub-gradient steps (§4.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_llrnn.systems.markov_field.lbfgs import LBFGS
from fairseq_llrnn.systems.markov_field.moments import Moments
from fairseq_llrnn.systems.markov_field.potentials import Form, Parameters, Potentials
from fairseq_llrnn.systems.markov_field.star import MEMORY, Beliefs, Star


@dataclass(frozen=True)
class Value:
    """What is maximised, at one point."""

    objective: float  # the bound less the penalty, nats per token
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
    penalty: float = 0.0  # λ of λ/2 · Σ parameters², without θ⁰'s own
    memory: int = MEMORY  # bytes that exponentials may take

    def at(self, parameters: Parameters, delta: Tensor) -> Value:
        """Value and gradients for parameters and δ (K, R)."""
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
        """Σ_l ⟨μ̂ˡ, θˡ⟩, and the gradient of L in θ: in Aˡ and Bˡ where θ is of low rank."""
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
    """⟨μ̂⁰, θ⁰⟩; −inf where the text has what is forbidden."""
    seen = moments.unary > 0
    return float(moments.unary[seen] @ potentials.unary[seen])


def bound(moments: Moments, potentials: Potentials, log_z: float) -> float:
    """L of another text, for log Z★ at any δ: nats per token."""
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
    """Where it ended."""

    delta: Tensor  # (K, R)
    beliefs: Beliefs
    log_z: tuple[float, ...]  # at the beginning, and after each iteration


def tighten(star: Star, delta: Tensor, iterations: int = ITERATIONS, tolerance: float = TOLERANCE) -> Tightened:
    """By L-BFGS, from `delta` (K, R), until log Z★ falls by less than `tolerance` of itself."""

    def function(x: Tensor) -> tuple[float, Tensor]:
        beliefs = star.solve(x.view_as(delta))
        return beliefs.log_z, beliefs.dual_gradient.flatten()

    search = LBFGS(function, delta.flatten())
    values = [search.value]
    while len(values) <= iterations and search.step():
        values.append(search.value)
        if values[-2] - values[-1] < tolerance * max(1.0, abs(values[-1])):
            break
    best = search.x.view_as(delta)
    return Tightened(best, star.solve(best), tuple(values))
