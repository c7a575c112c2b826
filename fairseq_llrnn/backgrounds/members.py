"""The best members of classes, where several lists say what words weigh: what a search asks.

Sizes: M classes that are asked about, each in some row, W candidates of one.

A word counts in the first list that has it, and is overruled in the others. Of a ranked list the heaviest come first,
so that no more than the k best of it are needed, and one more for each word that may overrule one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, log_difference, row_numbers


def none_overruled(which: Any, words: Tensor) -> Tensor:
    """As of a first list."""
    return torch.zeros_like(words, dtype=torch.bool)


@dataclass(frozen=True)
class Members:
    """What one list has of M classes."""

    begin: Tensor  # (M,) where those of each class begin in the list
    many: Tensor  # (M,)
    cost: Tensor  # (M,) what is added to the log weights in the list
    words: Callable[[Tensor], Tensor]  # places in the list (any shape) -> the words there
    weights: Callable[[Tensor], Tensor]  # … and their log weights
    overruled: Callable[[Any, Tensor], Tensor] = none_overruled  # of some of the M, (m,), words (m, W) -> (m, W) bool
    ranked: bool = True


def candidates(lists: Iterable[Members], k: int | None) -> tuple[Tensor, Tensor]:
    """Log weights and words of members of each class, the k heaviest among them: (M, W) each, −inf for none.

    Args:
        k: None: all members.
    """
    weights, words, before = [], [], 0  # the most that one class has in the lists before
    above: Tensor | None = None
    for each in lists:
        width = int(each.many.max()) if len(each.many) else 0
        if k is not None and each.ranked:
            width = min(width, k + before)
        step = torch.arange(width, device=each.many.device)
        inside = step < each.many.unsqueeze(1)  # shape: (M, W)
        places = (each.begin.unsqueeze(1) + step).masked_fill(~inside, 0)
        words.append(each.words(places))
        gone = ~inside | each.overruled(slice(None), words[-1])
        weights.append((each.cost.unsqueeze(1) + each.weights(places)).masked_fill(gone, NEGATIVE_INFINITY))
        above = each.many if above is None else above + each.many
        before = int(above.max()) if len(above) else 0
    return torch.cat(weights, 1), torch.cat(words, 1)


def best_of(
    lists: Iterable[Members], log_mass: Tensor, k: int, forbidden: Callable[[Tensor, Tensor], Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """The k with the largest log shares in masses (M,): log shares and words (M, k); −inf and 0 where there are fewer.

    Args:
        forbidden: words that do not count, though they have mass: which of the M, and words -> bool, (…,) each.
    """
    weights, words = candidates(lists, k if forbidden is None else None)
    if forbidden is not None:
        out = forbidden(row_numbers(words).flatten(), words.flatten()).view_as(words)
        weights = weights.masked_fill(out, NEGATIVE_INFINITY)
    missing = max(0, k - weights.size(1))
    values, where = functional.pad(weights, (0, missing), value=NEGATIVE_INFINITY).topk(k, dim=1)
    shares = log_difference(values, log_mass.unsqueeze(1))
    return shares, functional.pad(words, (0, missing)).gather(1, where).masked_fill(shares.isneginf(), 0)


def heaviest(lists: Iterable[Members]) -> Tensor:
    """The log weight of the best member of each class: (M,); of ranked lists."""
    best = []
    for each in lists:
        place, end = each.begin.clone(), each.begin + each.many
        left = (place < end).nonzero().squeeze(1)
        while len(left) > 0:  # few are overruled: few stay to be looked at after the first rounds
            gone = each.overruled(left, each.words(place[left]).unsqueeze(1)).squeeze(1)
            place[left] += gone.long()
            left = left[gone & (place[left] < end[left])]
        none = place >= end
        weight = each.cost + each.weights(place.masked_fill(none, 0))
        best.append(weight.masked_fill(none, NEGATIVE_INFINITY))
    return best[0] if len(best) == 1 else torch.stack(best).amax(0)
