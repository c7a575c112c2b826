"""Masses of classes that differ from one shared row at few places: what a context changes of a background.

Sizes: N rows (hypotheses, or positions of a batch), S signatures, E entries. All weights are natural logarithms.

    log B(n, σ)  =  shared(σ) + Σ added[e] over the entries e at (n, σ) + constant(n)
    log B(n, σ)  =  −∞     where row n is in `only` and has no entry at σ

An n-gram changes the masses of the few words that its history has seen, and gives all others the same factor; a
grammar allows a few words, and forbids the rest. So the output layer adds E numbers to its scores, and no N×S tensor of
masses is ever made.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

NEGATIVE_INFINITY = float("-inf")


@dataclass(frozen=True)
class Corrections:
    """Log masses of N rows (module docstring)."""

    shared: Tensor  # (1, S), finite at every class that has an entry
    rows: Tensor  # (E,) int64
    classes: Tensor  # (E,) int64
    added: Tensor  # (E,) entries of the same place add up; −inf forbids
    only: Tensor | None  # (N,) bool: rows in which a class without an entry is forbidden; None: no row
    constant: Tensor  # (N,) what all classes of the row have besides; it cancels in p unless there are slots

    def dense(self, num_rows: int) -> Tensor:
        """The log masses themselves, (N, S): the definition. `num_rows` is N."""
        mass = self.correct(self.shared.expand(num_rows, -1).clone())
        return mass + self.constant.unsqueeze(1)

    def correct(self, scores: Tensor) -> Tensor:
        """Change scores (N, S) that hold `shared` into ones that hold the masses but for `constant`, in place."""
        num_rows, num_classes = scores.shape
        flat = self.rows * num_classes + self.classes  # shape: (E,)
        if self.only is not None:
            # the entries of these rows are kept aside, for −inf takes nothing away again
            inside = self.only[self.rows]
            kept = flat[inside]
            values = scores.reshape(-1)[kept]
            scores.masked_fill_(self.only.unsqueeze(1), NEGATIVE_INFINITY)
            scores.view(-1)[kept] = values
        scores.view(-1).index_add_(0, flat, self.added.to(scores.dtype))
        return scores

    def of_classes(self, classes: Tensor) -> Tensor:
        """The log mass of one class in each row: (N,) -> (N,)."""
        here = self.classes == classes[self.rows]
        rows = self.rows[here]
        mass = self.shared[0, classes] + self.constant
        mass = mass.index_add(0, rows, self.added[here].to(mass.dtype))
        if self.only is None:
            return mass
        return mass.masked_fill(self.only.index_fill(0, rows, False), NEGATIVE_INFINITY)
