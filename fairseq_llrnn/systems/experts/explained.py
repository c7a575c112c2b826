"""What experts contribute to the words of one sentence, for its explanation: their gates and values.

Sizes: T positions, E experts, H' hidden width with the columns and weights of experts (features.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.systems.experts.contexts import Contexts

EXPERT = "Expert"  # what a word's score has from an expert, in the list of its features: Expert:NAME


@dataclass(frozen=True)
class Contribution:
    """One expert at one position: it adds weight · value to the score of the word."""

    name: str
    weight: float  # a_e(K), the gate: the same for all words
    value: float  # v_e(K, x)


class ExpertTerms:
    """The experts in one sentence, word by word.

    Args:
        bound: the background of a batch of this sentence alone. hidden: (T, H').
    """

    def __init__(self, bound: ContextClasses, contexts: Contexts, hidden: Tensor) -> None:
        self.bound, self.contexts = bound, contexts
        self._weights: list[list[float]] = hidden[:, -len(self.contexts.panel.experts) :].tolist()

    def contributions(
        self, place: int, state: Tensor, token: int, features: Mapping[str, float]
    ) -> tuple[Contribution, ...]:
        """What each expert adds to a token, the word or slot with these output features, at a place and state there."""
        context = int(self.bound.contexts_of(state))
        columns = list(self.contexts.panel.columns)  # names, in the order of their numbers
        of_columns = {"": 1.0, **features}
        exceptions = dict(zip(self.contexts.exceptional[context], self.contexts.values[context], strict=True))
        found = []
        for e, name in enumerate(self.contexts.panel.names):
            value = exceptions[token][e] if token in exceptions else None
            if value is None:
                coefficients = self.contexts.coefficients[context][e].items()
                value = math.fsum(c * of_columns.get(columns[column], 0.0) for column, c in coefficients)
            found.append(Contribution(name, self._weights[place][e], value))
        return tuple(found)
