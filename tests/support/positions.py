"""Results of a background at every position of a batch (B, T), position b·T + t."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import BoundBackground, View
from fairseq_llrnn.backgrounds.class_weights import row_numbers
from fairseq_llrnn.backgrounds.states import States, select
from fairseq_llrnn.output.records import Batch


def states(background: BoundBackground, previous: Tensor) -> list[States]:
    """Return the states before each position: T times those of B rows."""
    flat, numbers = background.flat_states(previous), torch.arange(previous.numel()).view_as(previous)
    return [select(flat, of_step) for of_step in numbers.unbind(1)]


def log_mass(background: BoundBackground, previous: Tensor, hidden: Tensor | None = None) -> Tensor:
    """(B, T, S)"""
    return background.view_of(previous, hidden).class_mass.dense().view(*previous.shape, -1)


def log_share(background: BoundBackground, previous: Tensor, targets: Tensor) -> Tensor:
    """(B, T)"""
    return background.view_of(previous).locate(targets.flatten())[1].view_as(targets)


def log_shares(background: BoundBackground, previous: Tensor) -> Tensor:
    """(B, T, V)"""
    shares = background.view_of(previous).log_shares
    return shares.expand(previous.numel(), -1).view(*previous.shape, -1)


def classes(background: BoundBackground, targets: Tensor) -> Tensor:
    """(B, T)"""
    before = functional.pad(targets, (1, 0))[:, :-1]
    return background.view_of(before).classes(targets.flatten()).view_as(targets)


def word_log_probs(background: BoundBackground, log_probs: Tensor, previous: Tensor) -> Tensor:
    """(B, T, S) -> (B, T, V)"""
    found = background.view_of(previous).expand(log_probs.flatten(0, 1))
    return found.view(*previous.shape, -1)


def best_members(view: View, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best members of classes (N, C) of each row: log shares and tokens (N, C, k)."""
    shares, tokens = view.best(classes.flatten(), k, row_numbers(classes).flatten())
    return shares.view(*classes.shape, k), tokens.view(*classes.shape, k)


def columns(batch: Batch, targets: Tensor) -> Tensor:
    """The columns of the targets (B, T) in results about all words: (B, T)."""
    return batch.view.column_of(targets.flatten().unsqueeze(1)).view_as(targets)


def class_scores(batch: Batch) -> Tensor:
    """aᵀφ of all classes of a batch that a head with an exact normaliser has made: (B, T, S + J)."""
    scores: Tensor = batch.rows.normalised.scores(batch.hidden.flatten(0, 1), batch.slots)  # type: ignore[attr-defined]
    return scores.unflatten(0, batch.hidden.shape[:2])
