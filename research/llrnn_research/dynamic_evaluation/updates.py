"""The steps of dynamic evaluation: after a group of sentences, weights θ follow its gradient g, and decay towards θ₀.

    θ ← θ − η g / (√MS + ε) + min(1, λ √MS / mean √MS) (θ₀ − θ)

θ₀ are the weights after training. MS is the mean of squared gradients of groups of the training text, per weight. mean
√MS is the mean over all weights, so weights with large gradients in training decay faster.

Source: Krause, Kahembwe, Murray & Renals 2018, "Dynamic Evaluation of Neural Sequence Models" (ICML), equations 6 to 9.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor


def gradients(loss: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradients of a scalar for each tensor of `weights`, or zeros if it does not depend on it."""
    slopes = torch.autograd.grad(loss, list(weights), allow_unused=True)
    return [
        torch.zeros_like(weight) if slope is None else slope.to_dense() if slope.is_sparse else slope
        for slope, weight in zip(slopes, weights, strict=True)
    ]


def mean_squares(losses: Iterable[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
    """Return MS, in the shapes of `weights`: the mean of the squared gradients of scalars."""
    sums, count = [torch.zeros_like(weight) for weight in weights], 0
    for count, loss in enumerate(losses, start=1):  # noqa: B007
        for total, slope in zip(sums, gradients(loss, weights), strict=True):
            total.addcmul_(slope, slope)
    return [total / count for total in sums]


class Updates:
    """Change `weights` in place."""

    def __init__(self, weights: Sequence[Tensor], squares: Sequence[Tensor], epsilon: float) -> None:
        """squares: MS, in the shapes of `weights`. epsilon: ε."""
        self.weights = list(weights)
        self.start = [weight.detach().clone() for weight in weights]  # θ₀
        roots = [square.sqrt() for square in squares]
        mean = sum(float(root.sum()) for root in roots) / sum(root.numel() for root in roots)
        self.scales = [1.0 / (root + epsilon) for root in roots]  # factors of η
        self.pulls = [root / (mean or 1.0) for root in roots]  # factors of λ, 0 if all gradients are 0

    @torch.no_grad()
    def reset(self) -> None:
        """Set θ ← θ₀."""
        for weight, start in zip(self.weights, self.start, strict=True):
            weight.copy_(start)

    def step(self, loss: Tensor, rate: float, decay: float) -> None:
        """Do a step with the gradient of a scalar at θ, rate η and decay λ."""
        slopes = gradients(loss, self.weights)
        with torch.no_grad():
            for weight, slope, start, scale, pull in zip(
                self.weights, slopes, self.start, self.scales, self.pulls, strict=True
            ):
                weight += (decay * pull).clamp(max=1.0) * (start - weight) - rate * scale * slope
