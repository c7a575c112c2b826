"""About how curved the tagger's bound is in each of its numbers, so that L-BFGS can climb where all are alike.

The second derivative of log Σ exp(x · s) in x is the variance of what x is multiplied by. For the indicator of an event
of probability p it is p (1 − p), here about p: tags, pairs and features that are a thousand times rarer than others are
a thousand times less curved, and an unscaled search leaves them where they began. p is half what the treebank has and
half what it would have if all were independent, so that what never came is not taken for impossible.

Sizes: T tags, S signatures, F features, K order, M offsets.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .tagger import TagForm, TagMoments


def curvature(form: TagForm, moments: TagMoments) -> dict[str, Tensor]:
    """For the parameters and dual variables of form.shapes(), all above nothing."""
    tags, least = moments.tags.clamp(min=1.0 / moments.tokens), 1.0 / moments.tokens
    features = torch.sparse.mm(form.features.t(), moments.signatures.unsqueeze(1)).squeeze(1)  # shape: (F,)
    weights = form.weights.view(-1, 1, 1)
    shapes = form.shapes()
    found = {
        "tags": tags,
        "pairs": 0.5 * (moments.pairs + tags.unsqueeze(1) * tags),
        "words": 0.5 * (moments.words + tags.unsqueeze(1) * features) / weights,
        "gamma": (weights * tags).expand(shapes["gamma"]),
        "epsilon": (form.weights.unsqueeze(1) * moments.signatures).expand(shapes["epsilon"]),
    }
    return {name: value.abs().clamp(min=least**2) for name, value in found.items()}
