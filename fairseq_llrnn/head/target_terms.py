"""What a training criterion asks: log p of the targets, what label smoothing adds to it, and the adaptor's norm.

Sizes: B batch, T time, V words, S signatures, O open classes, H hidden width. Targets are ids of words, or of strings
from V on.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.experts.features import ExpertFeatures
from fairseq_llrnn.head.records import Batch
from fairseq_llrnn.open_vocabulary.open_strings import OpenStrings
from fairseq_llrnn.output.log_linear import LogLinearOutput, SlotScores


def target_log_probs(output: LogLinearOutput, strings: OpenStrings | None, batch: Batch, targets: Tensor) -> Tensor:
    """log p(target | K) in nats: targets (B, T) -> (B, T); −inf for a target that the background forbids."""
    static, words = output.rows.num_rows, _words(strings, batch, targets).flatten()
    classes, slots = _classes_and_slots(batch, words, static)
    share, masses = batch.background.log_share(batch.states, words), batch.masses.of_columns(slice(static))
    flat = batch.rows.classes.target_log_prob(batch.hidden.flatten(0, 1), words, masses, share, slots)
    if strings is not None and batch.others.opened is not None:
        if batch.rows.speller_zero is not None:
            flat = flat + batch.rows.speller_zero.to(flat.dtype)
        opened = batch.others.opened[1].flatten(0, 1)
        flat = strings.spelled(flat, opened, targets.flatten(), classes, batch.spelled_from.flatten(0, 1))
    return flat.view(targets.shape)


def _classes_and_slots(batch: Batch, words: Tensor, static: int) -> tuple[Tensor, SlotScores | None]:
    """The classes of the words (B·T,), and all classes that have no row among the S static ones."""
    others, masses, slots = batch.others.flat(), batch.masses, None
    classes = batch.background.classes(batch.states, words)
    if others.context is not None:
        slots = SlotScores(others.context, masses.each_row(masses.shared[:, static:]), classes)
    if others.opened is not None:
        scored, opened = others.opened
        slots = scored.beside(slots, opened, scored.mass(masses), classes, static)
    return classes, slots


def log_class_sizes(background: Background, leave_out: list[int]) -> Tensor:
    """Log of how many words each class has that labels are smoothed towards: (S,). leave_out: tokens that are not."""
    sizes = torch.bincount(background.class_of, minlength=background.num_classes).float()
    sizes[background.class_of[leave_out]] = 0.0
    return sizes.log()


def smoothing_gain(
    output: LogLinearOutput, strings: OpenStrings | None, log_sizes: Tensor, batch: Batch, targets: Tensor
) -> Tensor:
    """What label smoothing adds to the log-probabilities, in units of its ε (LogLinearOutput): (B, T).

    Towards all words alike (a slot is one, too) that may come next, but not </s>. Smoothed as the background has
    them, other words of the same source would get too much, and </s> as well: sentences would end too early.

    log_sizes: of `log_class_sizes`.
    """
    sizes = functional.pad(log_sizes, (0, batch.log_mass.size(-1) - len(log_sizes)))
    log_q = torch.where(batch.log_mass.isneginf(), NEGATIVE_INFINITY, sizes)
    nothing = log_q.isneginf().all(-1)  # where only </s> may come, or what follows is padding: the label stays itself
    log_q = log_q.masked_fill(nothing.unsqueeze(-1), 0.0)
    static, words = output.rows.num_rows, _words(strings, batch, targets)
    _, slots = _classes_and_slots(batch, words.flatten(), static)
    if batch.others.opened is not None:
        log_q = functional.pad(log_q, (0, 1), value=NEGATIVE_INFINITY)  # nothing is smoothed towards <unk>
    if slots is not None:
        flat = slots.scores, slots.log_mass, slots.targets
        slots = SlotScores(*(each.unflatten(0, words.shape) for each in flat))
    gain = batch.rows.classes.smoothing_gain(batch.hidden, words, log_q, batch.log_mass[..., :static], slots)
    return gain.masked_fill(nothing, 0.0)


def adaptor_norm(output: LogLinearOutput, experts: ExpertFeatures | None, hidden: Tensor, p: float) -> Tensor:
    """‖a(K)‖ₚ at every position: (B, T, H') -> (B, T). Experts' weights are part of a."""
    flat, width = hidden.flatten(0, 1), output.weight.size(1)
    norm = output.adaptor_norm(flat[:, :width], p)
    if experts is not None:
        own = torch.linalg.vector_norm(flat[:, -len(experts.panel.experts) :].to(norm.dtype), p, -1)
        norm = torch.linalg.vector_norm(torch.stack([norm, own], dim=1), p, -1)
    return norm.view(hidden.shape[:2])


def _words(strings: OpenStrings | None, batch: Batch, targets: Tensor) -> Tensor:
    """The targets as the background knows them: one of evidence knows strings by their ids."""
    return targets if strings is None or batch.rows.slots is not None else strings.known(targets)
