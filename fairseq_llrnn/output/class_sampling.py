"""Sampled training, for priors whose signatures are too many to sum: a random part of the classes stands for all.

Sizes: N positions, S classes, U sampled classes, H hidden width, J slots. With w(σ) = B_K(σ) exp(a(K)ᵀφ(σ)), so that
Z = Σ_σ w(σ), and t the target's class. Every class is drawn by itself, with the probability

    π(σ) = min(1, c·B(σ)),   B the background without context,   c such that Σ_σ π(σ) = n

(Poisson sampling): frequent classes are always in, and one sample serves all positions of a batch. Then

    Ẑ = w(t) + Σ_{σ drawn, σ ≠ t} w(σ) / π(σ)                                              [Horvitz & Thompson 1952]

What is true of it (tests/output/test_sampling.py goes through all samples of small cases):

* Ẑ is unbiased: E[Ẑ] = Z. So is its gradient, in all parameters: E[∇Ẑ] = ∇Z = Z·E_p[φ] (in a).
* log Ẑ is not: E[log Ẑ] ≤ log Z, since log is concave, by about Var(Ẑ)/(2Z²). Its gradient is a self-normalised
  estimate of E_p[φ], a quotient of two unbiased estimates: it is consistent, and its bias is of the same order.
  Both are exact for n = S.
* The loss log Ẑ − log w(t) is never negative, because the target is in Ẑ as it is.

Training follows ∇ log Ẑ. What is reported at validation is exact.
Importance sampling from the background, in training neural language models: Bengio & Senécal 2003; Jean et al. 2015.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY

_MOST_ROUNDS = 100


def inclusion_probabilities(log_mass: Tensor, expected: float) -> Tensor:
    """π(σ) = min(1, c·B(σ)) with Σ π = `expected`, or 1 for every class with mass where they are no more: (S,) float64.

    Args:
        log_mass: (S,) log B(σ); −inf for a class that is never drawn.
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
        more = share > 1.0
        if not bool(more.any()):
            return torch.where(certain, 1.0, share)
        certain |= more
    return torch.where(certain, 1.0, share.clamp_max(1.0))


@dataclass(frozen=True)
class Sample:
    """Classes that stand for all, rising, and the weight 1/π of each."""

    classes: Tensor  # (U,) int64
    log_weights: Tensor  # (U,) −log π ≥ 0


class ClassSampler(nn.Module):
    """Draws samples of about `expected` classes from the masses (S,) of a background without context."""

    inclusion: Tensor  # (S,)

    def __init__(self, log_mass: Tensor, expected: int) -> None:
        super().__init__()
        if expected < 1:
            raise ValueError(f"expected: a number of classes of at least 1, found {expected}")
        self.register_buffer("inclusion", inclusion_probabilities(log_mass, expected), persistent=False)

    def draw(self) -> Sample:
        """A new sample, by torch's generator."""
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
    """log w(t) − log Ẑ at every position: (N,).

    Args:
        hidden: (N, H). rows: E of the sampled classes, (U, H). bias: Φc + log B_K of them, (U,) or (N, U).
        targets: classes (N,). target_rows, target_bias: theirs, (N, H) and (N,) with log B_K.
        slot_scores: of the slots of each position, (N, J), with their log masses: they are few, and summed as they
            are. Slot j is class `num_classes` + j; of a target that is one, the rows and biases do not count.
    """
    exact = bias.dtype
    scores = (hidden @ rows.T).to(exact) + (bias + sample.log_weights.to(exact))  # shape: (N, U)
    scores = scores.masked_fill(sample.classes == targets.unsqueeze(1), NEGATIVE_INFINITY)
    own = (hidden * target_rows).sum(1).to(exact) + target_bias
    parts = [scores, own.unsqueeze(1)]
    if slot_scores is not None:
        slot = targets - num_classes
        parts = [scores, own.masked_fill(slot >= 0, NEGATIVE_INFINITY).unsqueeze(1), slot_scores]
        own = torch.where(slot >= 0, slot_scores.gather(1, slot.clamp_min(0).unsqueeze(1)).squeeze(1), own)
    together = torch.cat(parts, dim=1)
    top = together.detach().amax(1)  # as a difference of large numbers, log p would have too few digits
    return own - top - (together - top.unsqueeze(1)).logsumexp(1)
