"""Static weights: one per word, the same everywhere; beside others in a product or a mixture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairseq_llrnn.prior.arrays import check_log_weights
from fairseq_llrnn.prior.part import BuildContext, Part, SavedPart, register_part

if TYPE_CHECKING:
    from fairseq_llrnn.backgrounds.base import Background
    from fairseq_llrnn.prior.prior import Prior


@register_part("static")
@dataclass(frozen=True)
class StaticPart(Part):
    """Weights of V words that are not those of b₀."""

    log_weights: np.ndarray  # (V,) float64, nats; −inf forbids

    is_base = True

    def arrays(self) -> dict[str, np.ndarray]:
        return {"log_weights": self.log_weights}

    @classmethod
    def read(cls, saved: SavedPart) -> StaticPart:
        log_weights = saved.array("log_weights", np.float64)
        check_log_weights(log_weights, len(saved.prior.symbols))
        return cls(log_weights)

    def background(self, below: Background, context: BuildContext) -> Background:
        import torch

        from fairseq_llrnn.backgrounds.base import StaticBackground

        return StaticBackground(context.class_of, context.num_classes, torch.from_numpy(self.log_weights.copy()))

    def lines(self, prior: Prior) -> list[str]:
        return ["weights of its own"]

    def reweighed(self, change: Callable[[np.ndarray], np.ndarray]) -> StaticPart:
        return replace(self, log_weights=change(self.log_weights))
