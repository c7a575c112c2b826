"""The exact normalisation: log Z is a sum over all signatures.

Sizes: N positions, S signatures, J context classes, H hidden width (with experts, wider).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.masses import Masses
from fairseq_llrnn.output.log_linear import LogLinearOutput, SlotScores, class_log_probs
from fairseq_llrnn.output.normalisation import Distribution, OtherScores


@dataclass(frozen=True)
class ExactOutput:
    """A normalisation over the rows of all signatures."""

    output: LogLinearOutput
    composed: tuple[Tensor, Tensor]  # rows (S, H) and biases (S,), as LogLinearOutput.composed has them

    def target_log_prob(
        self,
        hidden: Tensor,
        targets: Tensor,
        log_mass: Masses,
        log_share: Tensor,
        slots: SlotScores | None = None,
    ) -> Tensor:
        given = hidden, targets, log_mass, log_share
        return self.output.target_log_prob(*given, composed=self.composed, slots=slots)

    def smoothing_gain(
        self, hidden: Tensor, targets: Tensor, log_q: Tensor, log_mass: Tensor, slots: SlotScores | None = None
    ) -> Tensor:
        return self.output.smoothing_gain(hidden, targets, log_q, self.composed, slots)

    def scores(self, hidden: Tensor, others: OtherScores) -> Tensor:
        """aᵀφ of all classes: (…, H) -> (…, S + J), at least float32."""
        scores = self.output.class_scores(hidden, self.composed)
        if others.opened is not None:
            scored, of_open = others.opened
            scores = scored.with_score(scores, of_open)
        return scores if others.context is None else torch.cat([scores, others.context], dim=-1)

    def distribution(
        self, hidden: Tensor, others: OtherScores, masses: Masses, temperature: float | Tensor = 1.0
    ) -> Distribution:
        scores = self.scores(hidden, others)
        scores = scores if isinstance(temperature, float) and temperature == 1.0 else scores / temperature
        return Distribution(class_log_probs(scores, masses))
