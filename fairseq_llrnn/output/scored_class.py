"""A class whose score is no product of one row and the hidden state, since it stands for O classes with rows.

Sizes: N positions, O classes, F features, H hidden width, S signatures.

    score  =  log Σ_o exp(row_o · h + bias_o)

It is a context class that is there in every context: its one member leaves its signature, where it is alone, for a
class of the same mass and another score. As nothing but the score changes, no background needs to know of it
(context_classes.py would give every state masses of its own, where a background has few entries): the head puts the
score in the place of the signature's.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.masses import Masses
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output.feature_weights import SparseRows, at_least_float32, row_scores
from fairseq_llrnn.output.log_linear import SlotScores

# Added to the score that the signature's own row would have, which no longer counts: its exponential is 0 in any
# precision.
OUT_OF_REACH = -1e5


class ScoredClass(nn.Module):
    """O classes beside an output layer, with whose weights they are scored, in the place of one of its signatures."""

    def __init__(self, features: FeatureTable, of_class: int) -> None:
        """features: O rows. of_class: the signature, of one member."""
        super().__init__()
        self.rows = SparseRows(features)
        self.of_class = of_class

    def composed(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Rows (O, H) and biases (O,) of the classes; of weight (F, H) and bias (F,) of LogLinearOutput."""
        return self.rows.compose(weight), self.rows.compose(at_least_float32(bias).unsqueeze(1)).squeeze(1)

    def scores(self, hidden: Tensor, composed: tuple[Tensor, Tensor]) -> Tensor:
        """Those of the O classes: (…, H) -> (…, O), at least float32."""
        return row_scores(hidden, *composed)

    def without_row(self, composed: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The rows and biases of LogLinearOutput.composed, with the signature out of reach."""
        rows, bias = composed
        return rows, bias.index_fill(0, torch.tensor([self.of_class], device=bias.device), OUT_OF_REACH)

    def with_score(self, class_scores: Tensor, scores: Tensor) -> Tensor:
        """Scores of the signatures (…, S) with this one's in its place, from the scores of the O classes (…, O)."""
        place = torch.tensor([self.of_class], device=scores.device)
        return class_scores.index_copy(-1, place, scores.logsumexp(-1, keepdim=True).to(class_scores.dtype))

    def mass(self, masses: Masses) -> Tensor:
        """Its log mass in each row: (N,)."""
        classes = torch.full((masses.num_rows,), self.of_class, device=masses.shared.device)
        return masses.of_classes(classes)

    def beside(
        self, slots: SlotScores | None, scores: Tensor, mass: Tensor, classes: Tensor, static: int
    ) -> SlotScores:
        """The context classes of some positions, and this one as the last of them, for LogLinearOutput.

        Args:
            slots: what there is without it. scores: of the O classes, (…, O). mass: its log mass, (…,).
            classes: of the targets, (…,); those of context classes from S on. static: S.
        """
        column = scores.logsumexp(-1, keepdim=True)
        mass = mass.to(column.dtype).unsqueeze(-1)
        if slots is not None:
            mass = torch.cat([slots.log_mass.to(mass.dtype), mass], dim=-1)
            column = torch.cat([slots.scores, column], dim=-1)
        return SlotScores(column, mass, classes.masked_fill(classes == self.of_class, static + column.size(-1) - 1))
