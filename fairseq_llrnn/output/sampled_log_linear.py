"""The log-linear output over a sample of its classes: only rows of these, and of the targets, are composed.

    LogLinearHead(prior, H, normaliser=Sampled(8192))

Sizes: N positions, S classes, U sampled classes, H hidden width, J slots, E entries (backgrounds/masses.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.masses import Masses
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.output.class_sampling import ClassSampler, Sample, sampled_log_prob
from fairseq_llrnn.output.class_source import Head, refuse_beside
from fairseq_llrnn.output.log_linear import LogLinearOutput, SlotScores
from fairseq_llrnn.output.normalisers import Distribution, Exact, ExactRows, Normalised, Normaliser

OPTION = "--sampled-classes"
NOT_SMOOTHED = f"{OPTION}: not supported with --label-smoothing, which looks at all classes"


@dataclass(frozen=True)
class Sampled:
    """Train with about so many signatures, drawn anew for every batch (class_sampling.py); all else is exact."""

    expected: int

    def __call__(self, head: Head) -> SampledSum:
        """Raises OptionError: classes that need all rows; another normaliser, which needs few of them."""
        refuse_beside(head, OPTION)
        if "normaliser" in head.given and not isinstance(head.given["normaliser"], Exact | SampledSum):
            raise OptionError(f"{OPTION}: not supported with {head.given['normaliser'].option}; leave one of them out")
        return SampledSum(ClassSampler(head.static_log_mass(), self.expected))


class SampledSum(Normaliser):
    """A sum over a sample, in training."""

    name, option = "sampled", OPTION

    def __init__(self, sampler: ClassSampler) -> None:
        super().__init__()
        self.sampler = sampler

    def over(self, output: LogLinearOutput, weight: Tensor, replaced: int | None) -> Normalised:
        if self.training:
            return SampledOutput(output, self.sampler.draw(), replaced)
        return ExactRows(output, output.composed(weight=weight), replaced)


class SampledOutput:
    """Rows of one sample, for one batch."""

    def __init__(self, output: LogLinearOutput, sample: Sample, replaced: int | None = None) -> None:
        self.output, self.sample, self.replaced = output, sample, replaced
        self.rows, self.bias = output.composed(sample.classes)

    def log_prob(
        self,
        hidden: Tensor,
        classes: Tensor,
        masses: Tensor | Masses,
        log_share: Tensor,
        slots: SlotScores | None = None,
    ) -> Tensor:
        """As of Normalised, with log Ẑ in the place of log Z: (N,)."""
        static = classes.clamp_max(self.output.rows.num_rows - 1)
        of_sample, of_target = _masses(Masses.of(masses, len(hidden)), self.sample.classes, static)
        different, which = torch.unique(static, return_inverse=True)
        rows, bias = self.output.composed(different)
        return log_share.to(self.bias.dtype) + sampled_log_prob(
            hidden,
            self.sample,
            self.rows.to(hidden.dtype),
            self.bias + of_sample.to(self.bias.dtype),
            classes,
            rows.to(hidden.dtype)[which],
            bias[which] + of_target.to(bias.dtype),
            None if slots is None else slots.scores + slots.log_mass.to(slots.scores.dtype),
            self.output.rows.num_rows,
        )

    def smoothing_gain(
        self, hidden: Tensor, classes: Tensor, log_q: Tensor, log_mass: Tensor, slots: SlotScores | None = None
    ) -> Tensor:
        """Raise OptionError."""
        raise OptionError(NOT_SMOOTHED)

    def distribution(
        self, hidden: Tensor, slots: SlotScores | None, masses: Masses, temperature: float | Tensor = 1.0
    ) -> Distribution:
        """Exact."""
        return self._exact.distribution(hidden, slots, masses, temperature)

    @cached_property
    def _exact(self) -> ExactRows:
        return ExactRows(self.output, None, self.replaced)


def _masses(log_mass: Masses, classes: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Log masses of sampled classes (U,), (1, U) or (N, U), and of the targets (N,).

    log_mass: of N rows. classes: (U,), rising. targets: (N,).
    """
    some, own = log_mass.shared[:, classes], log_mass.entries
    if own is None:
        return (some if len(some) == 1 else log_mass.each_row(some)), log_mass.of_classes(targets)
    place = torch.searchsorted(classes, own.classes).clamp_max(max(0, len(classes) - 1))
    drawn = classes[place] == own.classes if len(classes) else torch.zeros_like(place, dtype=torch.bool)
    entries = replace(own, rows=own.rows[drawn], classes=place[drawn], added=own.added[drawn])
    return Masses(some, log_mass.num_rows, entries).dense(), log_mass.of_classes(targets)
