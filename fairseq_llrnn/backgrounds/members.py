"""The best members of classes if several lists contain weights of words, for searches.

Sizes: M pairs of a row and a class, W candidates of one pair.

A word counts in the first list that contains it. Later lists are overruled. A ranked list has the heaviest words
first, so that its k best suffice, plus one for each word that may overrule one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, log_difference, row_numbers


@dataclass(frozen=True)
class Members:
    """The members of M classes in one list."""

    begin: Tensor  # (M,) the first place of each class in the list
    counts: Tensor  # (M,) the number of its members
    cost: Tensor  # (M,) added to the log weights of the list
    words: Callable[[Tensor], Tensor]  # places in the list (any shape) -> words
    weights: Callable[[Tensor], Tensor]  # places in the list (any shape) -> log weights
    # indices (m,) of the M, words (m, W) -> (m, W) bool; none of a first list
    overruled: Callable[[Any, Tensor], Tensor] = lambda index, words: torch.zeros_like(words, dtype=torch.bool)
    ranked: bool = True


def candidates(lists: Iterable[Members], k: int | None) -> tuple[Tensor, Tensor]:
    """Return log weights and words of members of each class, with the k heaviest among them: (M, W) each, −inf for
    none.

    Args:
        k: None: all members.
    """
    weights, words, before = [], [], 0  # the largest number of members of a class in earlier lists
    above: Tensor | None = None
    for members in lists:
        width = int(members.counts.max()) if len(members.counts) else 0
        if k is not None and members.ranked:
            width = min(width, k + before)
        step = torch.arange(width, device=members.counts.device)
        inside = step < members.counts.unsqueeze(1)  # shape: (M, W)
        places = (members.begin.unsqueeze(1) + step).masked_fill(~inside, 0)
        words.append(members.words(places))
        excluded = ~inside | members.overruled(slice(None), words[-1])
        weights.append((members.cost.unsqueeze(1) + members.weights(places)).masked_fill(excluded, NEGATIVE_INFINITY))
        above = members.counts if above is None else above + members.counts
        before = int(above.max()) if len(above) else 0
    return torch.cat(weights, 1), torch.cat(words, 1)


def best_of(
    lists: Iterable[Members], log_mass: Tensor, k: int, forbidden: Callable[[Tensor, Tensor], Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Return the k members with the largest log shares in masses (M,): log shares and words (M, k), padded with −inf
    and 0.

    Args:
        forbidden: excludes words that have mass: indices of the M, and words, (…,) each -> bool.
    """
    weights, words = candidates(lists, k if forbidden is None else None)
    if forbidden is not None:
        out = forbidden(row_numbers(words).flatten(), words.flatten()).view_as(words)
        weights = weights.masked_fill(out, NEGATIVE_INFINITY)
    missing = max(0, k - weights.size(1))
    values, best = functional.pad(weights, (0, missing), value=NEGATIVE_INFINITY).topk(k, dim=1)
    shares = log_difference(values, log_mass.unsqueeze(1))
    return shares, functional.pad(words, (0, missing)).gather(1, best).masked_fill(shares.isneginf(), 0)


def heaviest(lists: Iterable[Members]) -> Tensor:
    """Return the log weight of the best member of each class, given ranked lists: (M,)."""
    best = []
    for members in lists:
        place, end = members.begin.clone(), members.begin + members.counts
        left = (place < end).nonzero().squeeze(1)
        while len(left) > 0:  # few words are overruled, so that few classes remain after the first rounds
            excluded = members.overruled(left, members.words(place[left]).unsqueeze(1)).squeeze(1)
            place[left] += excluded.long()
            left = left[excluded & (place[left] < end[left])]
        none = place >= end
        weight = members.cost + members.weights(place.masked_fill(none, 0))
        best.append(weight.masked_fill(none, NEGATIVE_INFINITY))
    return best[0] if len(best) == 1 else torch.stack(best).amax(0)
