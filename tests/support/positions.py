"""Results of a background at every position of a batch (B, T), position b·T + t."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import Background
from fairseq_llrnn.backgrounds.states import States, select
from fairseq_llrnn.output.records import Batch


def states(background: Background, previous: Tensor) -> list[States]:
    """Return the states before each position: T times those of B rows."""
    flat, numbers = background.flat_states(previous), torch.arange(previous.numel()).view_as(previous)
    return [select(flat, of_step) for of_step in numbers.unbind(1)]


def log_mass(background: Background, previous: Tensor) -> Tensor:
    """(B, T, S)"""
    return background.teacher_forced(previous)[1].dense().view(*previous.shape, -1)


def log_share(background: Background, previous: Tensor, targets: Tensor) -> Tensor:
    """(B, T)"""
    return background.log_share(background.flat_states(previous), targets.flatten()).view_as(targets)


def log_shares(background: Background, previous: Tensor) -> Tensor:
    """(B, T, V)"""
    shares = background.log_shares(background.flat_states(previous))
    return shares.expand(previous.numel(), -1).view(*previous.shape, -1)


def classes(background: Background, targets: Tensor) -> Tensor:
    """(B, T)"""
    before = background.flat_states(functional.pad(targets, (1, 0))[:, :-1])
    return background.classes(before, targets.flatten()).view_as(targets)


def word_log_probs(background: Background, log_probs: Tensor, previous: Tensor) -> Tensor:
    """(B, T, S) -> (B, T, V)"""
    found = background.word_log_probs(log_probs.flatten(0, 1), background.flat_states(previous))
    return found.view(*previous.shape, -1)


def class_scores(batch: Batch) -> Tensor:
    """aᵀφ of all classes of a batch that a head with an exact normaliser has made: (B, T, S + J)."""
    scores: Tensor = batch.rows.classes.scores(batch.hidden.flatten(0, 1), batch.slots)  # type: ignore[attr-defined]
    return scores.unflatten(0, batch.hidden.shape[:2])
