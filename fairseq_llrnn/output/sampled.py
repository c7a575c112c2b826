"""Sampled training, for priors with too many signatures to sum: a random part of the classes stands for all.

Sizes: N positions, S classes, U sampled classes, H hidden width, J slots, E entries (backgrounds/class_weights.py).
Let w(σ) = B_K(σ) exp(a(K)ᵀφ(σ)), so that Z = Σ_σ w(σ), and t the target's class. Every class is drawn independently,
with the probability

    π(σ) = min(1, c·B(σ)),   B the background without context,   c such that Σ_σ π(σ) = n

(Poisson sampling): frequent classes are always included, and one sample serves all positions of a batch. Then

    Ẑ = w(t) + Σ_{σ drawn, σ ≠ t} w(σ) / π(σ)                                              [Horvitz & Thompson 1952]

Properties (tests/output/test_sampling.py enumerates all samples of small cases):

* Ẑ is unbiased: E[Ẑ] = Z. So is its gradient, in all parameters: E[∇Ẑ] = ∇Z = Z·E_p[φ] (in a).
* log Ẑ is not: E[log Ẑ] ≤ log Z, since log is concave, by about Var(Ẑ)/(2Z²). Its gradient is a self-normalised
  estimate of E_p[φ], a quotient of two unbiased estimates: it is consistent, and its bias is of the same order.
  Both are exact for n = S.
* The loss log Ẑ − log w(t) is never negative, because Ẑ contains w(t).

Training follows ∇ log Ẑ. Validation is exact.
Importance sampling from the background, in training neural language models: Bengio & Senécal 2003; Jean et al. 2015.

    LogLinearHead(prior, H, normaliser=Sampled(8192))           only rows of the sample, and of targets, are composed
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.class_weights import (
    NEGATIVE_INFINITY,
    ClassWeights,
    broadcast_groups,
    find_sorted,
    log_shares,
)
from fairseq_llrnn.backgrounds.exact_buffers import ExactBuffers
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.output.class_source import Head, check_row_sources
from fairseq_llrnn.output.normalisers import (
    Distribution,
    Exact,
    ExactRows,
    LogLinearOutput,
    Normalised,
    Normaliser,
    SlotScores,
)

_MOST_ROUNDS = 100


def inclusion_probabilities(log_mass: Tensor, expected: float) -> Tensor:
    """Return π(σ) = min(1, c·B(σ)) with Σ π = `expected`: (S,) float64, or 1 for all classes with mass if they are no
    more.

    Args:
        log_mass: (S,) log B(σ), with −inf for a class that is never drawn.
    """
    exact = log_mass.double()
    mass = (exact - exact.amax()).exp()
    certain = torch.zeros_like(mass, dtype=torch.bool)
    for _ in range(_MOST_ROUNDS):  # each round makes at least one more class certain, most of them many
        rest = mass.masked_fill(certain, 0.0)
        room = expected - int(certain.sum())
        if room >= int((rest > 0).sum()):
            return (mass > 0).double()
        share = rest * (max(room, 0.0) / rest.sum())
        is_certain = share > 1.0
        if not bool(is_certain.any()):
            return torch.where(certain, 1.0, share)
        certain |= is_certain
    return torch.where(certain, 1.0, share.clamp_max(1.0))


@dataclass(frozen=True)
class Sample:
    """Sampled classes, in ascending order, and the weight 1/π of each."""

    classes: Tensor  # (U,) int64
    log_weights: Tensor  # (U,) −log π ≥ 0


class ClassSampler(ExactBuffers):
    """Draw samples of about `expected` classes from the masses (S,) of a background without context."""

    inclusion: Tensor  # (S,)

    def __init__(self, log_mass: Tensor, expected: int) -> None:
        super().__init__()
        if expected < 1:
            raise ValueError(f"expected={expected}: expected at least 1 class")
        self.keep(inclusion=inclusion_probabilities(log_mass, expected))

    def draw(self) -> Sample:
        """Return a new sample, drawn with torch's generator."""
        drawn = torch.rand(self.inclusion.shape, dtype=torch.float64, device=self.inclusion.device) < self.inclusion
        classes = drawn.nonzero().squeeze(1)
        return Sample(classes, -self.inclusion[classes].log())


def sampled_log_prob(
    hidden: Tensor,
    sample: Sample,
    rows: Tensor,
    bias: Tensor,
    targets: Tensor,
    target_rows: Tensor,
    target_bias: Tensor,
    slot_scores: Tensor | None = None,
    num_classes: int = 0,
) -> Tensor:
    """Return log w(t) − log Ẑ at every position: (N,).

    Args:
        hidden: (N, H). rows: E of the sampled classes, (U, H). bias: Φc + log B_K of them, (U,) or (N, U).
        targets: classes (N,). target_rows, target_bias: of the targets, (N, H) and (N,) with log B_K.
        slot_scores: of the slots of each position, (N, J), with their log masses; they are summed exactly. Slot j is
            class `num_classes` + j; the rows and biases of a target that is a slot are ignored.
    """
    exact = bias.dtype
    scores = (hidden @ rows.T).to(exact) + (bias + sample.log_weights.to(exact))  # shape: (N, U)
    scores = scores.masked_fill(sample.classes == targets.unsqueeze(1), NEGATIVE_INFINITY)
    target_scores = (hidden * target_rows).sum(1).to(exact) + target_bias
    if slot_scores is None:
        return log_shares(torch.cat([scores, target_scores.unsqueeze(1)], dim=1))[:, -1]
    slot = targets - num_classes
    target_scores = target_scores.masked_fill(slot >= 0, NEGATIVE_INFINITY)
    shares = log_shares(torch.cat([scores, target_scores.unsqueeze(1), slot_scores], dim=1))
    place = scores.size(1) + (1 + slot).clamp_min(0)
    return shares.gather(1, place.unsqueeze(1)).squeeze(1)


OPTION = "--sampled-classes"
NOT_SMOOTHED = f"{OPTION}: not supported with --label-smoothing, which needs all classes"


@dataclass(frozen=True)
class Sampled:
    """A normaliser that samples about `expected` signatures for each training batch. Evaluation is exact."""

    expected: int

    def __call__(self, head: Head) -> SampledSum:
        """Make the module for a head.

        Raises:
            OptionError: classes that need all rows, or another normaliser that is not exact.
        """
        check_row_sources(head, OPTION)
        other = head.attached.get("normaliser")
        if other is not None and not isinstance(other, Exact | SampledSum):
            raise OptionError(f"{OPTION}: not supported with {other.option}; leave one of them out")
        return SampledSum(ClassSampler(head.static_log_mass(), self.expected))


class SampledSum(Normaliser):
    """A sum over a sample, in training."""

    name, option = "sampled", OPTION

    def __init__(self, sampler: ClassSampler) -> None:
        super().__init__()
        self.sampler = sampler

    def compose_rows(self, output: LogLinearOutput, weight: Tensor, replaced: int | None) -> Normalised:
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
        class_weights: Tensor | ClassWeights,
        log_share: Tensor,
        slots: SlotScores | None = None,
        is_counted: Tensor | None = None,
    ) -> Tensor:
        """As in Normalised, with log Ẑ instead of log Z: (N,)."""
        static = classes.clamp_max(self.output.rows.num_rows - 1)
        of_sample, of_target = _masses(ClassWeights.of(class_weights, len(hidden)), self.sample.classes, static)
        different, index = torch.unique(static, return_inverse=True)
        rows, bias = self.output.composed(different)
        return log_share.to(self.bias.dtype) + sampled_log_prob(
            hidden,
            self.sample,
            self.rows.to(hidden.dtype),
            self.bias + of_sample.to(self.bias.dtype),
            classes,
            rows.to(hidden.dtype)[index],
            bias[index] + of_target.to(bias.dtype),
            None if slots is None else slots.scores + slots.log_mass.to(slots.scores.dtype),
            self.output.rows.num_rows,
        )

    def smoothing_gain(
        self, hidden: Tensor, classes: Tensor, log_q: Tensor, log_mass: Tensor, slots: SlotScores | None = None
    ) -> Tensor:
        """Raise OptionError."""
        raise OptionError(NOT_SMOOTHED)

    def scores(self, hidden: Tensor, slots: SlotScores | None) -> Tensor:
        """Return the exact scores."""
        return self._exact.scores(hidden, slots)

    def distribution(
        self, hidden: Tensor, slots: SlotScores | None, class_weights: ClassWeights, temperature: float | Tensor = 1.0
    ) -> Distribution:
        """Return the exact distribution."""
        return self._exact.distribution(hidden, slots, class_weights, temperature)

    @cached_property
    def _exact(self) -> ExactRows:
        return ExactRows(self.output, None, self.replaced)


def _masses(log_mass: ClassWeights, classes: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return log masses of sampled classes (U,), as (1, U) or (N, U), and of the targets (N,).

    log_mass: of N rows. classes: (U,), ascending. targets: (N,).
    """
    mass, updates = log_mass.shared[:, classes], log_mass.entries
    if updates is None:
        return (mass if len(mass) == 1 else broadcast_groups(mass, log_mass.num_rows)), log_mass.for_classes(targets)
    place, drawn = find_sorted(classes, updates.classes)
    entries = replace(updates, rows=updates.rows[drawn], classes=place[drawn], added=updates.added[drawn])
    return ClassWeights(mass, log_mass.num_rows, entries).dense(), log_mass.for_classes(targets)
