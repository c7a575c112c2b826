"""About how curved the bounds are in each of their numbers, so that L-BFGS can climb where all are alike.

The second derivative of log Σ exp(x · s) in x is the variance of what x is multiplied by. For the indicator of an event
of probability p it is p (1 − p), here about p: words, tags, pairs and features that are a thousand times rarer than
others are a thousand times less curved, and an unscaled search leaves them where they began. Of pairs, p is half what
the text has and half what it would have if all were independent, so that what never came is not taken for impossible.

Sizes: R kinds of tokens, T tags, S signatures, F features, K order, D width, M offsets.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .moments import Moments
from .potentials import EXPLICIT, Form
from .tagger import TagForm, TagMoments

SQUARE = 0.05  # what the square of a row's entry is taken to be: what its other side is multiplied by


def of_words(form: Form, moments: Moments) -> dict[str, Tensor]:
    """For the parameters of form.shapes(), and `delta` (K, R), all above nothing."""
    order, least = form.order, 1.0 / moments.tokens
    seen = moments.unary.clamp(min=least)
    curvature = {"delta": (2.0 / (order + 1) * seen).expand(order, -1)}
    if form.name == EXPLICIT:
        pairs = torch.stack([one.to_dense() for one in moments.pairs])
        edges = 0.5 * (order + 1) * (pairs + seen.unsqueeze(1) * seen)
        return curvature | {"unary": seen, "edges": edges}
    rows = seen
    if form.features is not None:  # shape: (F,)
        rows = torch.sparse.mm(form.features.square().t(), seen.unsqueeze(1)).squeeze(1).clamp(min=least)
    one_edge = (order + 1) * SQUARE * rows.unsqueeze(1)  # shape: (rows, 1)
    many = {"urw": {"U": order, "W": order}, "uw": {"U": order, "W": 1}, "uvw": {"U": 1, "V": 2 * order, "W": 1}}
    curvature |= {name: (edges * one_edge).expand(form.shapes()[name]) for name, edges in many[form.name].items()}
    if form.name == "urw":
        curvature["R"] = torch.full(form.shapes()["R"], (order + 1) * SQUARE**2, dtype=torch.float64)
    return curvature | {"unary": rows}


def of_tags(form: TagForm, moments: TagMoments) -> dict[str, Tensor]:
    """For the parameters and dual variables of form.shapes(), all above nothing."""
    tags, least = moments.tags.clamp(min=1.0 / moments.tokens), 1.0 / moments.tokens
    features = torch.sparse.mm(form.features.t(), moments.signatures.unsqueeze(1)).squeeze(1)  # shape: (F,)
    weights = form.weights.view(-1, 1, 1)
    shapes = form.shapes()
    curvature = {
        "tags": tags,
        "pairs": 0.5 * (moments.pairs + tags.unsqueeze(1) * tags),
        "words": 0.5 * (moments.words + tags.unsqueeze(1) * features) / weights,
        "gamma": (weights * tags).expand(shapes["gamma"]),
        "epsilon": (form.weights.unsqueeze(1) * moments.signatures).expand(shapes["epsilon"]),
    }
    return {name: value.abs().clamp(min=least**2) for name, value in curvature.items()}
