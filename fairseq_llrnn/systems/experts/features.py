"""The weights a_e(K) of expert features, and the rows of the output layer with the experts' values.

Sizes: B batch, T time (or positions of one sentence), F features, J exceptions, E experts, G columns, H hidden width,
H' including the columns and weights of experts.

With a_e(K) = W_e h + c_e, experts add Σ_e a_e(K) v_e(K, x) to the score of a word. For words without exception v_e(K,
σ) = everywhere_e(K) + Σ_g coefficient_e,g(K) φ_g(σ) for some features g of the prior. The constant part changes no
probability, and is subtracted from exceptions instead. u_g(K) = Σ_e a_e(K) coefficient_e,g(K) is the weight of feature
g, which column g of P selects. The score is then one linear form, of a slightly wider state and of rows composed from
wider weights:

    [h, u(K), a(K)]   ·   Φ [W, P, 0]                            classes, also context ones
                      ·   [E_σ, 0, v(K, x) − everywhere(K)]      the exception x of original class σ

All code for hidden states and composed rows works with these. Initial weights are zero, so experts have no effect at
first.

`expert_terms` returns the contributions of experts to the words of a sentence, for explanations: gates and values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import BoundBackground
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output.class_source import ClassSource, ClassSourceOf, ClassTerms, Place
from fairseq_llrnn.output.context_classes import ContextClasses, each_layer
from fairseq_llrnn.output.normalisers import Detail
from fairseq_llrnn.output.records import Batch, RowPair
from fairseq_llrnn.systems.experts.panel import Contexts, Panel
from fairseq_llrnn.systems.experts.user_code import check


def experts_of(panel: Panel) -> ClassSourceOf:
    """Return the class source of these experts, for `LogLinearHead(prior, H, classes=[experts_of(panel)])`."""
    return lambda head: ExpertFeatures(panel, head.prior.output.features, head.hidden_size)


class ExpertFeatures(ClassSource):
    """Expert features of an output layer over the signatures of `features`. Exceptions are context classes."""

    name, option, kind = "experts", "--expert", Contexts

    def __init__(self, panel: Panel, features: FeatureTable, hidden_size: int) -> None:
        super().__init__()
        self.panel = panel
        self.features = features
        self.weight = nn.Parameter(torch.zeros(len(panel.experts), hidden_size))
        self.bias = nn.Parameter(torch.zeros(len(panel.experts)))

    def bind(self, background: BoundBackground, source: Tensor | None) -> ContextClasses:
        """Return the background of a batch, with classes for exceptions. source: (B, L), or None in a language model.

        Raises:
            DataError: an expert fails, now or in a later context of the background.
        """
        return ContextClasses(background, Contexts(self.panel, source))

    def weights(self, hidden: Tensor) -> Tensor:
        """Return a_e(K): (…, H) -> (…, E), at least float32."""
        precise = torch.promote_types(self.weight.dtype, torch.float32)
        return hidden.to(precise) @ self.weight.to(precise).T + self.bias.to(precise)

    @property
    def num_columns(self) -> int:  # type: ignore[override]
        """Return G + E, with the columns that the experts have named so far."""
        return len(self.panel.columns) + len(self.panel.experts)

    def columns(self, weight: Tensor) -> Tensor:
        """Return [P, 0], (F, G + E). Column 0, the constant part, is empty."""
        pick = weight.new_zeros(len(weight), self.num_columns)
        for name, column in self.panel.columns.items():
            if name:
                pick[self.features.index[name], column] = 1.0
        return pick

    def widen(self, hidden: Tensor, place: Place) -> Tensor:
        """Return [h, u, a]: hidden (B, T, H) -> (B, T, H + G + E)."""
        contexts = self._contexts(place)
        weights = self.weights(hidden)
        coefficients = contexts.group_coefficients(place.contexts).to(weights.dtype)  # shape: (B, T, E, G)
        of_columns = (weights.unsqueeze(2) @ coefficients).squeeze(2)
        return torch.cat([hidden, of_columns.to(hidden.dtype), weights.to(hidden.dtype)], dim=2)

    def rows_at(self, place: Place) -> RowPair:
        """Return [E, 0, v − everywhere] and the bias of each exception: (B, T, J, H') and (B, T, J)."""
        shape, numbers, contexts = place.shape, place.contexts, self._contexts(place)
        classes = place.view.pick(place.view.table.original).view(*shape, -1)  # shape: (B, T, J)
        rows, bias = place.rows.normalised.composed  # type: ignore[attr-defined]
        static = len(rows)
        inside = classes.clamp_max(static - 1)
        of_class, of_bias = functional.embedding(inside, rows), bias[inside]
        if place.below:
            long = max(pair[0].size(1) for pair in place.below)
            below, below_bias = (
                torch.cat([pair[i].expand(-1, long, *pair[i].shape[2:]) for pair in place.below], dim=2) for i in (0, 1)
            )
            sentence = torch.arange(shape[0], device=rows.device).view(-1, 1, 1)
            time = torch.arange(long, device=rows.device).view(1, -1, 1)  # broadcasts for long = 1
            below_class, is_below = (classes - static).clamp_min(0), classes >= static
            of_class = torch.where(is_below.unsqueeze(3), below[sentence, time, below_class], of_class)
            of_bias = torch.where(is_below, below_bias[sentence, time, below_class], of_bias)
        width, experts = self.weight.size(1), len(self.panel.experts)
        of_features, columns = of_class[..., :width], of_class[..., width : of_class.size(-1) - experts]
        values, is_exception = contexts.exception_values(numbers)  # shape: (B, T, J, E)
        coefficients = contexts.group_coefficients(numbers).to(rows.dtype)  # shape: (B, T, E, G)
        as_others = columns.to(rows.dtype) @ coefficients.transpose(2, 3)  # shape: (B, T, J, E)
        everywhere = coefficients[..., 0].unsqueeze(2)  # shape: (B, T, 1, E)
        values = torch.where(is_exception, values.to(rows.dtype) - everywhere, as_others)
        return torch.cat([of_features, torch.zeros_like(columns), values], dim=3), of_bias

    def adaptor(self, hidden: Tensor) -> Tensor:
        """Return a_e(K): (N, H + G + E) -> (N, E)."""
        return hidden[:, -len(self.panel.experts) :]

    def check_weights(self, state_dict: dict[str, Any], prefix: str) -> None:
        check(self.option, "the checkpoint", state_dict, len(self.panel.experts), prefix)

    def explained(self, batch: Batch, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return scores including the experts' constant parts, which explanations list."""
        width, hidden = self.weight.size(1), batch.hidden[0]
        sources = (layer.source for layer in each_layer(batch.view.bound))
        contexts = next(source for source in sources if isinstance(source, Contexts))
        of_classes = {**arguments.get("terms", {}), Contexts: expert_terms(contexts, hidden)}
        return {"scores": arguments["scores"] + hidden[:, width : width + 1], "terms": of_classes}

    @staticmethod
    def _contexts(place: Place) -> Contexts:
        assert isinstance(place.view.source, Contexts)
        return place.view.source


EXPERT = "Expert"  # prefix of an expert's score in the list of a word's features: Expert:NAME


def expert_terms(contexts: Contexts, hidden: Tensor) -> ClassTerms:
    """Return the contribution of each expert to words of one sentence: the gate a_e(K) times the value v_e(K, x).

    contexts: of a batch with this sentence only. hidden: (T, H').
    """
    panel = contexts.panel
    gates = hidden[:, -len(panel.experts) :].tolist()

    def at(
        place: int, context: int, token: int, features: Mapping[str, float]
    ) -> tuple[list[tuple[str, float]], Detail]:
        columns = list(panel.columns)  # names, in the order of their numbers
        of_columns = {"": 1.0, **features}
        answer, values = contexts.answers[context], []
        for e, coefficients in enumerate(answer.coefficients):
            value = answer.exceptions[token][e] if token in answer.exceptions else None
            if value is None:
                value = math.fsum(c * of_columns.get(columns[column], 0.0) for column, c in coefficients.items())
            values.append(value)
        weighed = list(zip(panel.names, gates[place], values, strict=True))
        facts = [{"name": name, "weight": weight, "value": value} for name, weight, value in weighed]
        items = tuple((f"{name} {weight:+.2f} × {value:g}",) for name, weight, value in weighed)
        added = [(f"{EXPERT}:{name}", weight * value) for name, weight, value in weighed if value]
        return added, Detail("experts", facts, "experts", items)

    return at
