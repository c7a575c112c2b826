"""The log-linear output over a sample of its classes: only rows of these, and of the targets, are composed.

Sizes: N positions, S classes, U sampled classes, H hidden width, J slots, E entries of corrections (core/sampling.py).
"""

from __future__ import annotations

import torch
from torch import Tensor

from fairseq_llrnn.core.backgrounds.contract import NEGATIVE_INFINITY
from fairseq_llrnn.core.backgrounds.corrections import Corrections
from fairseq_llrnn.core.log_linear import LogLinearOutput, SlotScores
from fairseq_llrnn.core.sampling import Sample, sampled_log_prob


class SampledOutput:
    """An output layer and one sample, for one batch. Made where its parameters are to be seen used."""

    def __init__(self, output: LogLinearOutput, sample: Sample) -> None:
        self.output, self.sample = output, sample
        self.rows, self.bias = self._composed(sample.classes)

    def _composed(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Φ W (K, H) and Φ c (K,) of some classes."""
        bias = self.output.bias
        exact = bias.float() if bias.dtype in (torch.float16, torch.bfloat16) else bias
        compose = self.output.rows.compose_some
        return compose(self.output.weight, classes), compose(exact.unsqueeze(1), classes).squeeze(1)

    def target_log_prob(
        self,
        hidden: Tensor,
        targets: Tensor,
        log_mass: Tensor | Corrections,
        log_share: Tensor,
        slots: SlotScores | None = None,
    ) -> Tensor:
        """As LogLinearOutput.target_log_prob, with log Ẑ in the place of log Z: (N,)."""
        last = self.output.rows.num_rows - 1
        static = self.output.class_of[targets] if slots is None else slots.targets.clamp_max(last)
        of_sample, of_target = _masses(log_mass, self.sample.classes, static)
        different, which = torch.unique(static, return_inverse=True)
        rows, bias = self._composed(different)
        return log_share + sampled_log_prob(
            hidden,
            self.sample,
            self.rows.to(hidden.dtype),
            self.bias + of_sample.to(self.bias.dtype),
            static if slots is None else slots.targets,
            rows.to(hidden.dtype)[which],
            bias[which] + of_target.to(bias.dtype),
            None if slots is None else slots.scores + slots.log_mass,
            self.output.rows.num_rows,
        )


def _masses(log_mass: Tensor | Corrections, classes: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Log masses of sampled classes (U,), (1, U) or (N, U), and of the targets (N,).

    log_mass: as in LogLinearOutput.target_log_prob. classes: (U,), rising. targets: (N,).
    """
    many = len(targets)
    if not isinstance(log_mass, Corrections):
        groups = torch.arange(many, device=targets.device) // max(1, many // len(log_mass))
        of_sample = log_mass[:, classes]
        return (of_sample if len(log_mass) == 1 else of_sample[groups]), log_mass[groups, targets]
    place = torch.searchsorted(classes, log_mass.classes).clamp_max(max(0, len(classes) - 1))
    drawn = classes[place] == log_mass.classes if len(classes) else torch.zeros_like(place, dtype=torch.bool)
    some = Corrections(
        log_mass.shared[:, classes],
        log_mass.rows[drawn],
        place[drawn],
        log_mass.added[drawn],
        log_mass.only,
        log_mass.constant,
    )
    at_target = log_mass.classes == targets[log_mass.rows]
    row = log_mass.rows[at_target]
    own = log_mass.shared[0, targets] + log_mass.constant
    own = own.index_add(0, row, log_mass.added[at_target])
    if log_mass.only is not None:
        found = torch.zeros_like(log_mass.only).index_fill(0, row, True)
        own = own.masked_fill(log_mass.only & ~found, NEGATIVE_INFINITY)
    return some.dense(many), own
