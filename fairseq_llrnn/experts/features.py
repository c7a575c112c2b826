"""The weights a_e(K) of expert features, and the rows of the output layer that know the experts' values.

Sizes: B batch, T time, S signatures, J₁ context classes below, J exceptions, E experts, G columns, H hidden width.

With a_e(K) = W_e h + c_e, experts add Σ_e a_e(K) v_e(K, σ) to the score of a class. For a class without exception
v_e(K, σ) = Σ_g coefficient_e,g(K) · column_g(σ), so that with u_g(K) = Σ_e a_e(K) coefficient_e,g(K) the score is still
one linear form, of a state that is a little wider than h:

    [h, u(K), a_e(K)]   ·   [E_σ, column(σ), 0]         classes, also context ones
                        ·   [E_σ, 0, v(K, x)]           the exception x of former class σ

Everything that works with hidden states and composed rows works with these. Weights begin at zero: at first,
no expert counts.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.experts.contexts import Contexts
from fairseq_llrnn.experts.panel import Panel
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output.context_classes import ContextClasses


class ExpertFeatures(nn.Module):
    """Expert features of an output layer over the S rows of `features`."""

    def __init__(self, panel: Panel, features: FeatureTable, hidden_size: int) -> None:
        super().__init__()
        self.panel = panel
        self.features = features
        self.weight = nn.Parameter(torch.zeros(len(panel.experts), hidden_size))
        self.bias = nn.Parameter(torch.zeros(len(panel.experts)))
        self._columns: dict[str, Tensor] = {}

    def bind(self, background: Background, sources: Tensor | None) -> ContextClasses:
        """The background of a batch, with classes for exceptions. sources: (B, L); None in a language model.

        Raises:
            DataError: an expert fails, here or when the background meets another context.
        """
        return ContextClasses(background, Contexts(self.panel, sources))

    def weights(self, hidden: Tensor) -> Tensor:
        """a_e(K): (…, H) -> (…, E), at least float32."""
        precise = torch.promote_types(self.weight.dtype, torch.float32)
        return hidden.to(precise) @ self.weight.to(precise).T + self.bias.to(precise)

    def widen(self, hidden: Tensor, numbers: Tensor, contexts: Contexts) -> Tensor:
        """[h, u, a]: hidden (B, T, H) in the contexts with these numbers (B, T) -> (B, T, H + G + E)."""
        weights = self.weights(hidden)
        coefficients = contexts.group_coefficients(numbers).to(weights.dtype)  # shape: (B, T, E, G)
        of_columns = (weights.unsqueeze(2) @ coefficients).squeeze(2)
        return torch.cat([hidden, of_columns.to(hidden.dtype), weights.to(hidden.dtype)], dim=2)

    def widen_rows(self, rows: Tensor) -> Tensor:
        """[E, column, 0]: rows of classes (S, H) -> (S, H + G + E)."""
        return torch.cat([rows, self._columns_of(rows).T, rows.new_zeros(len(rows), len(self.panel.experts))], dim=1)

    def widen_other_rows(self, rows: Tensor, compose: Callable[[Tensor], Tensor]) -> Tensor:
        """As `widen_rows`, of other classes than the prior's: (…, H) -> (…, H + G + E).

        Args:
            compose: Φ W of these classes: (F, G) -> (…, G).
        """
        columns = compose(self._pick(rows))
        columns = torch.cat([torch.ones_like(columns[..., :1]), columns[..., 1:]], dim=-1)
        return torch.cat([rows, columns, rows.new_zeros(*rows.shape[:-1], self._experts)], dim=-1)

    def exception_rows(
        self,
        composed: tuple[Tensor, Tensor],
        below: tuple[Tensor, Tensor] | None,
        classes: Tensor,
        numbers: Tensor,
        contexts: Contexts,
    ) -> tuple[Tensor, Tensor]:
        """[E, 0, v] and the bias of each exception in contexts with these numbers (B, T): (B, T, J, …) and (B, T, J).

        Args:
            composed: widened rows of the classes (S, H + G + E), and their bias (S,). below: likewise of context
                classes of the background below, (B', J₁, H + G + E) and (B', J₁); row b serves row b of the numbers.
            classes: that the exceptions have left, (B, T, J).
        """
        (rows, bias), static = composed, len(composed[0])
        inside = classes.clamp_max(static - 1)
        of_class, of_bias = functional.embedding(inside, rows), bias[inside]
        if below is not None:
            which = (classes - static).clamp_min(0)
            sentence = torch.arange(len(classes), device=classes.device).view(-1, 1, 1)
            is_below = classes >= static
            of_class = torch.where(is_below.unsqueeze(3), below[0][sentence, which], of_class)
            of_bias = torch.where(is_below, below[1][sentence, which], of_bias)
        width, experts = self.weight.size(1), self._experts
        own, columns = of_class[..., :width], of_class[..., width : of_class.size(-1) - experts]  # (B, T, J, …)
        values, known = contexts.exception_values(numbers)  # shape: (B, T, J, E)
        coefficients = contexts.group_coefficients(numbers).to(rows.dtype)  # shape: (B, T, E, G)
        as_others = columns.to(rows.dtype) @ coefficients.transpose(2, 3)  # shape: (B, T, J, E)
        values = torch.where(known, values.to(rows.dtype), as_others)
        return torch.cat([own, torch.zeros_like(columns), values], dim=3), of_bias

    @property
    def width(self) -> int:
        """H + G + E, with the columns that the experts have named so far."""
        return self.weight.size(1) + len(self.panel.columns) + self._experts

    @property
    def _experts(self) -> int:
        return len(self.panel.experts)

    def _columns_of(self, like: Tensor) -> Tensor:
        """The columns over S classes, (G, S); those that were never asked for before are made."""
        for name in self.panel.columns:
            if name not in self._columns:
                self._columns[name] = self._column(name)
        return torch.stack([self._columns[name] for name in self.panel.columns]).to(like)

    def _column(self, name: str) -> Tensor:
        if not name:
            return torch.ones(self.features.num_rows)
        column = torch.zeros(self.features.num_rows)
        entries = torch.from_numpy(self.features.indices) == self.features.index[name]
        row = torch.repeat_interleave(
            torch.arange(self.features.num_rows), torch.from_numpy(self.features.offsets).diff()
        )
        column[row[entries]] = torch.from_numpy(self.features.values)[entries]
        return column

    def _pick(self, like: Tensor) -> Tensor:
        """The matrix (F, G) that takes features to columns, but for column 0."""
        pick = like.new_zeros(self.features.num_features, len(self.panel.columns))
        for name, column in self.panel.columns.items():
            if name:
                pick[self.features.index[name], column] = 1.0
        return pick
