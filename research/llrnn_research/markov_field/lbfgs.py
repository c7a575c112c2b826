"""L-BFGS with backtracking (Nocedal & Wright 2006, algorithms 7.4 and 3.1), whose state can be saved.

Sizes: P parameters, m stored steps, R kinds of tokens, F features, K order.

`of_words` and `of_tags` return the approximate curvature of the bounds in each parameter, which scales them for L-BFGS.

The second derivative of log Σ exp(x · s) in x is the variance of the factor of x. For the indicator of an event of
probability p it is p (1 − p), here about p. Words, tags, pairs and features that are a thousand times rarer have a
thousand times less curvature, and an unscaled search would leave them at their initial values. For pairs, p is the mean
of the observed frequency and of the frequency under independence, so that unseen pairs do not count as impossible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from llrnn_research.markov_field.moments import Moments
from llrnn_research.markov_field.potentials import EXPLICIT, Form
from llrnn_research.markov_field.tagger import TagForm, TagMoments

KEPT = 7  # m
SUFFICIENT, SHRINK, TRIALS = 1e-4, 0.5, 30
Function = Callable[[Tensor], tuple[float, Tensor]]  # x (P,) -> value and gradient


@dataclass
class LBFGS:
    """Minimise a function step by step."""

    function: Function
    x: Tensor  # (P,)
    value: float = field(init=False)
    gradient: Tensor = field(init=False)  # (P,)
    evaluations: int = 0
    steps: list[tuple[Tensor, Tensor]] = field(default_factory=list)  # differences of x and of gradients

    def __post_init__(self) -> None:
        self.value, self.gradient = self._evaluate(self.x)

    def step(self) -> bool:
        """Do one step down. Return False without a change if none is found (because of rounding, or at the minimum)."""
        direction = self._direction()
        slope = float(direction @ self.gradient)
        if slope >= 0.0:
            if not self.steps:
                return False
            self.steps.clear()
            direction, slope = -self.gradient, -float(self.gradient @ self.gradient)
        size = 1.0 if self.steps else min(1.0, 1.0 / max(float(self.gradient.norm()), 1e-300))
        for _ in range(TRIALS):
            x = self.x + size * direction
            value, gradient = self._evaluate(x)
            if value <= self.value + SUFFICIENT * size * slope:
                break
            size *= SHRINK
        else:
            if not self.steps:
                return False
            self.steps.clear()  # once more, straight down
            return self.step()
        moved = value < self.value
        difference = (x - self.x, gradient - self.gradient)
        if float(difference[0] @ difference[1]) > 1e-12 * float(difference[1] @ difference[1]):
            self.steps = [*self.steps, difference][-KEPT:]
        self.x, self.value, self.gradient = x, value, gradient
        return moved

    def _evaluate(self, x: Tensor) -> tuple[float, Tensor]:
        self.evaluations += 1
        return self.function(x)

    def _direction(self) -> Tensor:
        """Return −H g by the two-loop recursion."""
        direction, factors = -self.gradient, []
        for moved, changed in reversed(self.steps):
            factor = float(moved @ direction) / float(moved @ changed)
            direction = direction - factor * changed
            factors.append(factor)
        if self.steps:
            moved, changed = self.steps[-1]
            direction = direction * (float(moved @ changed) / float(changed @ changed))
        for (moved, changed), factor in zip(self.steps, reversed(factors), strict=True):
            direction = direction + (factor - float(changed @ direction) / float(moved @ changed)) * moved
        return direction

    # ---- as arrays --------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        """Return the state that `resume` needs in addition to the function."""
        steps = torch.stack([torch.stack(step) for step in self.steps]) if self.steps else self.x.new_zeros(0, 2, 0)
        return {"x": self.x, "gradient": self.gradient, "value": self.x.new_tensor([self.value]), "steps": steps}

    @classmethod
    def resume(cls, function: Function, state: Mapping[str, Tensor]) -> LBFGS:
        """Return the search at `state`; its next step equals that of the original search."""
        search = cls.__new__(cls)
        search.function, search.evaluations = function, 0
        search.x, search.gradient = state["x"].clone(), state["gradient"].clone()
        search.value = float(state["value"][0])
        search.steps = [(moved.clone(), changed.clone()) for moved, changed in state["steps"]]
        return search


SQUARE = 0.05  # assumed square of a row's entry, the factor of the other side's curvature


def of_words(form: Form, moments: Moments) -> dict[str, Tensor]:
    """Return positive curvatures for the parameters of form.shapes(), and for `delta` (K, R)."""
    order, least = form.order, 1.0 / moments.tokens
    seen = moments.unary.clamp(min=least)
    curvature = {"delta": (2.0 / (order + 1) * seen).expand(order, -1)}
    if form.name == EXPLICIT:
        pairs = torch.stack([matrix.to_dense() for matrix in moments.pairs])
        edges = 0.5 * (order + 1) * (pairs + seen.unsqueeze(1) * seen)
        return curvature | {"unary": seen, "edges": edges}
    rows = seen
    if form.features is not None:  # shape: (F,)
        rows = torch.sparse.mm(form.features.square().t(), seen.unsqueeze(1)).squeeze(1).clamp(min=least)
    one_edge = (order + 1) * SQUARE * rows.unsqueeze(1)  # shape: (rows, 1)
    num_edges = {"urw": {"U": order, "W": order}, "uw": {"U": order, "W": 1}, "uvw": {"U": 1, "V": 2 * order, "W": 1}}
    curvature |= {name: (edges * one_edge).expand(form.shapes()[name]) for name, edges in num_edges[form.name].items()}
    if form.name == "urw":
        curvature["R"] = torch.full(form.shapes()["R"], (order + 1) * SQUARE**2, dtype=torch.float64)
    return curvature | {"unary": rows}


def of_tags(form: TagForm, moments: TagMoments) -> dict[str, Tensor]:
    """Return positive curvatures for the parameters and dual variables of form.shapes()."""
    tags, least = moments.tags.clamp(min=1.0 / moments.tokens), 1.0 / moments.tokens
    features = torch.sparse.mm(form.features.t(), moments.signatures.unsqueeze(1)).squeeze(1)  # shape: (F,)
    weights = form.weights.view(-1, 1, 1)
    shapes = form.shapes()
    curvature = {
        "tags": tags,
        "pairs": 0.5 * (moments.pairs + tags.unsqueeze(1) * tags),
        "words": 0.5 * (moments.words + tags.unsqueeze(1) * features) / weights,
        "gamma": (weights * tags).expand(shapes["gamma"]),
        "epsilon": (form.weights.unsqueeze(1) * moments.signatures).expand(shapes["epsilon"]),
    }
    return {name: value.abs().clamp(min=least**2) for name, value in curvature.items()}
