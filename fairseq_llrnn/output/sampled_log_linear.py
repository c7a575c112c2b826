"""The log-linear output over a sample of its classes: only rows of these, and of the targets, are composed.

Sizes: N positions, S classes, U sampled classes, H hidden width, J slots, E entries (backgrounds/masses.py).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.masses import Masses
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.output.class_sampling import Sample, sampled_log_prob
from fairseq_llrnn.output.exact import ExactOutput
from fairseq_llrnn.output.log_linear import LogLinearOutput, SlotScores
from fairseq_llrnn.output.normalisation import Distribution, OtherScores

NOT_SMOOTHED = "--sampled-classes: not supported with --label-smoothing, which looks at all classes"


class SampledOutput:
    """A normalisation by one sample, for one batch. Made where the parameters are to be seen used."""

    def __init__(self, output: LogLinearOutput, sample: Sample) -> None:
        self.output, self.sample = output, sample
        self.rows, self.bias = output.composed(sample.classes)

    def target_log_prob(
        self,
        hidden: Tensor,
        targets: Tensor,
        log_mass: Tensor | Masses,
        log_share: Tensor,
        slots: SlotScores | None = None,
    ) -> Tensor:
        """As LogLinearOutput.target_log_prob, with log Ẑ in the place of log Z: (N,)."""
        last = self.output.rows.num_rows - 1
        static = self.output.class_of[targets] if slots is None else slots.targets.clamp_max(last)
        of_sample, of_target = _masses(Masses.of(log_mass, len(hidden)), self.sample.classes, static)
        different, which = torch.unique(static, return_inverse=True)
        rows, bias = self.output.composed(different)
        return log_share.to(self.bias.dtype) + sampled_log_prob(
            hidden,
            self.sample,
            self.rows.to(hidden.dtype),
            self.bias + of_sample.to(self.bias.dtype),
            static if slots is None else slots.targets,
            rows.to(hidden.dtype)[which],
            bias[which] + of_target.to(bias.dtype),
            None if slots is None else slots.scores + slots.log_mass.to(slots.scores.dtype),
            self.output.rows.num_rows,
        )

    def smoothing_gain(
        self, hidden: Tensor, targets: Tensor, log_q: Tensor, log_mass: Tensor, slots: SlotScores | None = None
    ) -> Tensor:
        """Raise OptionError."""
        raise OptionError(NOT_SMOOTHED)

    def distribution(
        self, hidden: Tensor, others: OtherScores, masses: Masses, temperature: float | Tensor = 1.0
    ) -> Distribution:
        """Exact."""
        return self._exact.distribution(hidden, others, masses, temperature)

    @cached_property
    def _exact(self) -> ExactOutput:
        return ExactOutput(self.output, self.output.composed())


def _masses(log_mass: Masses, classes: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Log masses of sampled classes (U,), (1, U) or (N, U), and of the targets (N,).

    log_mass: as in LogLinearOutput.target_log_prob. classes: (U,), rising. targets: (N,).
    """
    some, own = log_mass.shared[:, classes], log_mass.entries
    if own is None:
        return (some if len(some) == 1 else log_mass.each_row(some)), log_mass.of_classes(targets)
    place = torch.searchsorted(classes, own.classes).clamp_max(max(0, len(classes) - 1))
    drawn = classes[place] == own.classes if len(classes) else torch.zeros_like(place, dtype=torch.bool)
    entries = replace(own, rows=own.rows[drawn], classes=place[drawn], added=own.added[drawn])
    return Masses(some, log_mass.num_rows, entries).dense(), log_mass.of_classes(targets)
