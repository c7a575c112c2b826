"""Find the potentials that maximise the bound of a text (Algorithm 4.2).

`both` optimises parameters and δ together. Each step costs one solution of the star, and the objective is the same
(objective.py). `nested` is the thesis' algorithm: it finds the tightest δ before each step in the parameters. Both
search over numbers that are scaled by their curvature (lbfgs.py).

Sizes: R kinds of tokens, K order, P numbers in all parameters.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from llrnn_research.markov_field.lbfgs import of_words
from llrnn_research.markov_field.objective import ITERATIONS, tighten

from .lbfgs import LBFGS
from .moments import Moments
from .objective import Objective, Value, bound
from .potentials import Parameters
from .star import Star

METHODS = ("both", "nested")


@dataclass(frozen=True)
class Progress:
    """The progress after one step."""

    iteration: int
    seconds: float  # since training began
    objective: float  # of the training text, nats per token: the bound minus the penalty
    bound: float
    valid: float | None  # the bound of the other text
    best: bool  # whether `valid` (or else `objective`) is the highest so far


@dataclass(frozen=True)
class Plan:
    """Method and stopping criteria."""

    method: str = METHODS[0]
    iterations: int = 200
    tolerance: float = 1e-6  # stop if ten steps gain less than this share of the objective
    patience: int = 10  # stop after this many steps without a better `valid`
    dual_iterations: int = ITERATIONS  # of `nested`


@dataclass
class Learner:
    """A training in progress, which can be saved and resumed."""

    objective: Objective
    plan: Plan
    scales: Tensor  # (P,) factors of the search's numbers
    search: LBFGS
    valid: Moments | None
    delta: Tensor  # (K, R) of `nested`, outside the L-BFGS search
    best: Tensor  # (P,) the parameters, then δ (K·R)
    best_value: float
    history: list[Progress]
    seconds: float  # before this process

    @classmethod
    def begin(cls, objective: Objective, plan: Plan, parameters: Parameters, valid: Moments | None = None) -> Learner:
        """Start from these parameters and δ = 0."""
        form = objective.form
        delta = torch.zeros(form.order, form.size, dtype=torch.float64)
        curvature = of_words(form, objective.moments)
        curvature |= {name: objective.penalty + curvature[name] for name in form.shapes() if name != "unary"}
        start, scales = join_values(parameters, form.shapes()), join_values(curvature, form.shapes())
        if plan.method == "both":
            start = torch.cat([start, delta.flatten()])
            scales = torch.cat([scales, curvature["delta"].flatten()])
        learner = cls.__new__(cls)
        learner.scales = scales.rsqrt()
        learner.objective, learner.plan, learner.valid, learner.delta = objective, plan, valid, delta
        learner.history, learner.best_value, learner.seconds = [], -math.inf, 0.0
        learner.search = LBFGS(learner._function, start / learner.scales)
        learner.best = learner._whole()
        return learner

    # ---- the next step --------------------------------------------------------------------------------------------

    def run(self, watch: Callable[[Learner, Progress], None] = lambda learner, progress: None) -> None:
        """Optimise until `is_done`. `watch` is called after each step."""
        begun = time.monotonic() - self.seconds
        while not self.is_done():
            moved = self.search.step()
            self.seconds = time.monotonic() - begun
            progress = self._note()
            self.history.append(progress)
            watch(self, progress)
            if not moved:
                break

    def is_done(self) -> bool:
        """Return whether a stopping criterion of the plan holds."""
        steps, plan = self.history, self.plan
        if len(steps) >= plan.iterations:
            return True
        if self.valid is not None and len(steps) >= plan.patience and not any(p.best for p in steps[-plan.patience :]):
            return True
        objective = steps[-1].objective if steps else 0.0
        return len(steps) > 10 and objective - steps[-11].objective < plan.tolerance * abs(objective)

    def _function(self, scaled: Tensor) -> tuple[float, Tensor]:
        """Return −L and its gradient, which L-BFGS minimises."""
        shapes, x = self.objective.form.shapes(), self.scales * scaled
        if self.plan.method == "both":
            size = len(x) - self.delta.numel()
            value = self.objective.at(split_values(x[:size], shapes), x[size:].view_as(self.delta))
            gradient = torch.cat([join_values(value.gradient, shapes), value.delta_gradient.flatten()])
        else:
            parameters = split_values(x, shapes)
            star = Star(self.objective.form.potentials(parameters), self.objective.memory)
            self.delta = tighten(star, self.delta, self.plan.dual_iterations).delta
            value = self.objective.at(parameters, self.delta)
            gradient = join_values(value.gradient, shapes)
        self._last = (scaled, value)
        return -value.objective, -gradient * self.scales

    def _value(self) -> Value:
        """Return the value at the search's point, cached unless training was resumed or a step failed."""
        last = getattr(self, "_last", None)
        if last is None or not torch.equal(last[0], self.search.x):
            self._function(self.search.x)
        return self._last[1]

    def _note(self) -> Progress:
        value = self._value()
        valid = None if self.valid is None else bound(self.valid, value.potentials, value.beliefs.log_z)
        score = value.objective if valid is None else valid
        if best := score > self.best_value:
            self.best_value, self.best = score, self._whole()
        return Progress(len(self.history) + 1, self.seconds, value.objective, value.bound, valid, best)

    def _whole(self) -> Tensor:
        x = self.scales * self.search.x
        return x if self.plan.method == "both" else torch.cat([x, self.delta.flatten()])

    def result(self) -> tuple[dict[str, Tensor], Tensor]:
        """Return the best parameters, and their δ (K, R)."""
        size = len(self.best) - self.delta.numel()
        shapes = self.objective.form.shapes()
        return split_values(self.best[:size], shapes), self.best[size:].view_as(self.delta).clone()

    # ---- as arrays --------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        """Return the state that `resume` needs in addition to objective, plan and texts."""
        rows = [
            [p.iteration, p.seconds, p.objective, p.bound, math.nan if p.valid is None else p.valid, float(p.best)]
            for p in self.history
        ]
        history = torch.tensor(rows, dtype=torch.float64).view(-1, 6)
        arrays = {"delta": self.delta, "best": self.best, "best_value": torch.tensor([self.best_value]).double()}
        arrays |= {"scales": self.scales}
        return arrays | {"history": history} | {f"search_{name}": value for name, value in self.search.state().items()}

    @staticmethod
    def is_state(objective: Objective, plan: Plan, state: Mapping[str, Tensor]) -> bool:
        """Return whether the arrays, perhaps of an untrusted file, are a state of such a training."""
        form = objective.form
        size = sum(math.prod(shape) for shape in form.shapes().values())
        dual = form.order * form.size
        searched = size + (dual if plan.method == "both" else 0)
        shapes = {
            "delta": (form.order, form.size), "best": (size + dual,), "best_value": (1,), "history": (None, 6),
            "search_x": (searched,), "search_gradient": (searched,), "search_value": (1,),
            "search_steps": (None, 2, searched), "scales": (searched,),
        }  # fmt: skip
        for name, shape in shapes.items():
            array = state.get(name)
            if array is None or array.dim() != len(shape):
                return False
            fits = all(length in (None, actual) for length, actual in zip(shape, array.shape, strict=True))
            needed = array[:, [0, 1, 2, 3, 5]] if name == "history" and fits else array  # column 4 may be NaN
            fits = fits or (name == "search_steps" and not len(array))  # no step is stored yet
            if not fits or not bool(needed.isfinite().all()):
                return False
        return bool((state["scales"] > 0.0).all())

    @classmethod
    def resume(
        cls, objective: Objective, plan: Plan, state: Mapping[str, Tensor], valid: Moments | None = None
    ) -> Learner:
        """Return the training at `state`; its next steps equal those of the original training."""
        learner = cls.__new__(cls)
        learner.objective, learner.plan, learner.valid = objective, plan, valid
        learner.delta, learner.best = state["delta"].clone(), state["best"].clone()
        learner.scales = state["scales"].clone()
        learner.best_value = float(state["best_value"][0])
        learner.history = [
            Progress(int(row[0]), row[1], row[2], row[3], None if math.isnan(row[4]) else row[4], bool(row[5]))
            for row in state["history"].tolist()
        ]
        learner.seconds = learner.history[-1].seconds if learner.history else 0.0
        search = {name.removeprefix("search_"): value for name, value in state.items() if name.startswith("search_")}
        learner.search = LBFGS.resume(learner._function, search)
        return learner


def join_values(values: Mapping[str, Tensor], names: Mapping[str, Sequence[int]]) -> Tensor:
    """Concatenate all values in the order of the names: (P,)."""
    return torch.cat([values[name].flatten() for name in names])


def split_values(x: Tensor, shapes: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
    """Split a vector into values, the reverse of `join_values`."""
    pieces = x.split([math.prod(shape) for shape in shapes.values()])
    return {name: piece.view(*shape) for (name, shape), piece in zip(shapes.items(), pieces, strict=True)}
