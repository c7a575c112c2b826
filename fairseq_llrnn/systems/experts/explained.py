"""What experts contribute to the words of one sentence, for its explanation: their gates and values.

Sizes: T positions, E experts, H' hidden width with the columns and weights of experts (features.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from fairseq_llrnn.output.class_source import ClassTerms
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.output.normalisers import Detail
from fairseq_llrnn.systems.experts.contexts import Contexts

EXPERT = "Expert"  # what a word's score has from an expert, in the list of its features: Expert:NAME


def expert_terms(layer: ContextClasses, contexts: Contexts, hidden: Tensor) -> ClassTerms:
    """What each expert adds to words of one sentence, weight · value: a_e(K), the same for all words, and v_e(K, x).

    Args:
        layer: of the background of a batch of this sentence alone. contexts: its source. hidden: (T, H').
    """
    panel = contexts.panel
    gates = hidden[:, -len(panel.experts) :].tolist()

    def at(
        place: int, state: Tensor, token: int, features: Mapping[str, float]
    ) -> tuple[list[tuple[str, float]], Detail]:
        context = int(layer.contexts_of(state))
        columns = list(panel.columns)  # names, in the order of their numbers
        of_columns = {"": 1.0, **features}
        exceptions = dict(zip(contexts.exceptional[context], contexts.values[context], strict=True))
        values = []
        for e in range(len(panel.experts)):
            value = exceptions[token][e] if token in exceptions else None
            if value is None:
                coefficients = contexts.coefficients[context][e].items()
                value = math.fsum(c * of_columns.get(columns[column], 0.0) for column, c in coefficients)
            values.append(value)
        weighed = list(zip(panel.names, gates[place], values, strict=True))
        facts = [{"name": name, "weight": weight, "value": value} for name, weight, value in weighed]
        items = tuple((f"{name} {weight:+.2f} × {value:g}",) for name, weight, value in weighed)
        added = [(f"{EXPERT}:{name}", weight * value) for name, weight, value in weighed if value]
        return added, Detail("experts", facts, "experts", items)

    return at
