"""Sums of weights by their logarithms, where −inf is no weight: finite in value and gradient as far as the sum is.

Sizes: V words, S classes, N rows.
"""

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.masses import NEGATIVE_INFINITY

LEAST_LOG_WEIGHT = -1_000.0  # of a part of a mixture: less may be learned, and changes no digit of any sum


def log_odds(logit: Tensor) -> tuple[Tensor, Tensor]:
    """log λ and log (1 − λ) from log λ/(1−λ), in float64, whatever has been learned."""
    exact = logit.double().clamp(LEAST_LOG_WEIGHT, -LEAST_LOG_WEIGHT)
    return functional.logsigmoid(exact), functional.logsigmoid(-exact)


def log_part_weights(logits: Tensor) -> Tensor:
    """log softmax of what has been learned, over the last dimension, in float64."""
    return logits.double().log_softmax(-1).clamp_min(LEAST_LOG_WEIGHT)


def class_log_sums(log_weights: Tensor, class_of: Tensor, num_classes: int) -> Tensor:
    """log Σ_{x∈σ} exp(log_weights[·, x]) for every class: (N, V) -> (N, S) float64; −inf for a class without mass.

    What is summed is relative to the largest weight, in the dtype of the weights. The logarithm itself would lose the
    digits in single precision that the difference to a member's weight, its share, is made of.
    """
    # shape: (N, S), the largest weight of every class, so that no exponential overflows
    index = class_of.expand_as(log_weights)
    top = log_weights.new_full((log_weights.size(0), num_classes), NEGATIVE_INFINITY)
    top = top.scatter_reduce(1, index, log_weights, reduce="amax", include_self=True)
    empty = top == NEGATIVE_INFINITY
    finite_top = top.masked_fill(empty, 0.0).detach()  # the sum does not depend on it
    sums = torch.zeros_like(top).scatter_add(1, index, (log_weights - finite_top.gather(1, index)).exp())
    # the logarithm of an empty class would have the gradient 0 · ∞
    return (sums.masked_fill(empty, 1.0).log() + finite_top.double()).masked_fill(empty, NEGATIVE_INFINITY)


def log_shares(terms: Tensor) -> Tensor:
    """log softmax over the last dimension, −inf without a gradient where all terms are −inf.

    Not `terms - log_sum(terms)`: where terms are large, that has lost the digits which say that shares sum to one.
    """
    nothing = terms.isneginf().all(-1, keepdim=True)
    return terms.masked_fill(nothing, 0.0).log_softmax(-1).masked_fill(nothing, NEGATIVE_INFINITY)


def log_sum(terms: Tensor) -> Tensor:
    """log Σ exp over the last dimension, whose gradient is 0 where all terms are −inf."""
    nothing = terms.isneginf().all(-1, keepdim=True)
    return terms.masked_fill(nothing, 0.0).logsumexp(-1).masked_fill(nothing.squeeze(-1), NEGATIVE_INFINITY)
