"""Methods of LogLinearHead for batches: log-probabilities of targets and words, losses, label smoothing, penalties.

Sizes: B batch, T time, N positions (B·T), V words, S signatures, J context classes, J₁ context classes for source
strings. Probabilities are natural logarithms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.numbers import check_penalty
from fairseq_llrnn.head.checks import LEAVE_OUT, check_allowed, check_token_ids
from fairseq_llrnn.output.class_source import ClassSource, Head
from fairseq_llrnn.output.context_classes import ContextClasses, layers_of
from fairseq_llrnn.output.normalisers import Normaliser, SlotScores
from fairseq_llrnn.output.records import Batch, Condition, chunked

if TYPE_CHECKING:
    from fairseq_llrnn.open_vocabulary.open_strings import OpenWords


class ScoredHead(Head, Protocol):
    """The attributes of a head that its losses use."""

    class_sizes: Tensor  # (S,) int64
    open_words: OpenWords | None
    normaliser: Normaliser

    @property
    def has_learned_background(self) -> bool: ...

    def bind(self, previous: Tensor, source: Tensor | None = None) -> Condition: ...

    def previous(self, targets: Tensor) -> Tensor: ...

    def for_background(self, tokens: Tensor) -> Tensor: ...

    def source_of(self, layer: ContextClasses) -> ClassSource: ...


@chunked
def target_log_probs(head: ScoredHead, batch: Batch, targets: Tensor, is_summed: bool = False) -> Tensor:
    """Return log p(target | K) in nats: targets (B, T) -> (B, T), with −inf if the background forbids the target.

    Args:
        is_summed: whether all gradients but those of padding are equal, as in a sum or mean: then the exact
            normaliser computes gradients in the forward pass (functional.log_linear_nll).
    """
    words, static = head.for_background(targets).flatten(), head.output.rows.num_rows
    class_weights = batch.class_weights
    if class_weights.shared.size(1) > static:
        class_weights = class_weights.select_classes(slice(static))
    classes, share = batch.view.locate(words)
    places = classes if batch.slots is None else batch.slots.places(classes, static)
    is_counted = targets.ne(head.pad).flatten() if is_summed else None
    arguments = batch.hidden.flatten(0, 1), places, class_weights, share, batch.slots, is_counted
    log_prob = batch.rows.normalised.log_prob(*arguments)
    if head.open_words is not None:
        log_prob = head.open_words.finish(log_prob, batch, targets.flatten(), classes)
    return log_prob.view(targets.shape)


@chunked
def smoothing_gain(head: ScoredHead, batch: Batch, targets: Tensor) -> Tensor:
    """Return the term that label smoothing adds to these log-probabilities, in units of its ε: (B, T).

    Labels are smoothed uniformly over all words (and slots) that may come next, except </s>. A signature counts
    with all of its words if one of them may come, because counting words per state would cost more than the layer.
    It also counts in full if a slot has taken its word. Smoothing in proportion to the background would favour
    other words of the same source and </s>: sentences would end too early.
    """
    sizes = functional.pad(head.class_sizes.float().log(), (0, batch.log_mass.size(-1) - len(head.class_sizes)))
    log_q = torch.where(batch.log_mass.isneginf(), NEGATIVE_INFINITY, sizes)
    unsmoothed = log_q.isneginf().all(-1)  # only </s> may come, or padding: the label stays unsmoothed
    log_q = log_q.masked_fill(unsmoothed.unsqueeze(-1), 0.0)
    classes = batch.view.classes(head.for_background(targets).flatten())
    classes, slots, num_static = classes.view(targets.shape), batch.slots, head.output.rows.num_rows
    if slots is not None:
        classes = slots.places(classes, num_static)
        if slots.replaced is not None:
            log_q = functional.pad(log_q, (0, 1), value=NEGATIVE_INFINITY)  # nothing is smoothed towards <unk>
        values = [value.unflatten(0, targets.shape) for value in (slots.scores, slots.log_mass)]
        slots = SlotScores(values[0], values[1], slots.replaced)
    static = batch.log_mass[..., :num_static]
    gain = batch.rows.normalised.smoothing_gain(batch.hidden, classes, log_q, static, slots)
    if head.has_learned_background:
        gain = gain + _background_gain(head, batch, targets, log_q).to(gain.dtype)
    return gain.masked_fill(unsmoothed, 0.0)


def _background_gain(head: ScoredHead, batch: Batch, targets: Tensor, log_q: Tensor) -> Tensor:
    """Return E_q[log b] − log b(target), with q uniform over the words of a signature that may come: (B, T)
    float64.
    """
    counts, total = batch.view.share_sums()
    share = (total / counts.clamp_min(1.0)).unflatten(0, (len(targets) if len(total) > 1 else 1, -1))
    mass = batch.log_mass
    log_b = torch.where(mass.isneginf(), 0.0, mass + share)
    expected = (log_q.double().softmax(-1)[..., : mass.size(-1)] * log_b).sum(-1)
    words = head.for_background(targets).flatten()
    classes, of_target = batch.view.locate(words)
    of_target = of_target + batch.class_weights.for_classes(classes)
    return expected - of_target.masked_fill(of_target.isneginf(), 0.0).view(targets.shape)


@chunked
def adaptor_norm(head: ScoredHead, batch: Batch, p: float = 2.0) -> Tensor:
    """Return ‖a(K)‖ₚ at every position, including the weights that class sources add to a: (B, T) (paper, §2.2).

    Raises:
        OptionError: the normaliser has rows of its own, which the norm would not contain.
    """
    if not head.normaliser.rows_are_features:
        raise OptionError(
            f"--adaptor-penalty: not supported with {head.normaliser.option}, which has rows outside the "
            "adaptor; leave one of them out"
        )
    flat = batch.hidden.flatten(0, 1)
    norm = head.output.adaptor_norm(flat[:, : head.hidden_size], p)
    for source in head.sources:
        if (weights := source.adaptor(flat)) is not None:
            of_source = torch.linalg.vector_norm(weights.to(norm.dtype), p, -1)
            norm = torch.linalg.vector_norm(torch.stack([norm, of_source], dim=1), p, -1)
    return norm.view(batch.hidden.shape[:2])


@chunked
def sources_of(head: ScoredHead, batch: Batch, targets: Tensor) -> Tensor:
    """Return the index in `sources` of the source whose string is the target. Targets (B, T) -> (B, T), −1 if none.

    Classes that only separate a word of the dictionary (translations) count as none.
    """
    classes = batch.view.classes(head.for_background(targets).flatten()).view_as(targets)
    source_of = torch.full_like(targets, -1)
    for layer in layers_of(batch.view):
        if layer.source.unk is not None:
            added = layer.source.log_added(layer.contexts).unflatten(0, targets.shape)
            index = classes - layer.num_below
            inside = (index >= 0) & (index < added.size(2))
            added = added.gather(2, index.clamp(0, added.size(2) - 1).unsqueeze(2))
            inside &= ~added.squeeze(2).isneginf()
            source_of = source_of.masked_fill(inside, head.sources.index(head.source_of(layer.bound)))
    return source_of


@chunked
def word_log_probs(head: ScoredHead, batch: Batch) -> Tensor:
    """Return log p of all words, and of the strings of context classes: (B, T, V + J₁)."""
    return batch.word_log_probs().view(*batch.hidden.shape[:2], -1)


def possible(head: ScoredHead, targets: Tensor, source: Tensor | None = None) -> Tensor:
    """Return whether the background allows every target of each sentence: (B, T), padded -> (B,) bool.

    Use it to remove sentences outside a grammar, which `loss` rejects. source: (B, L).

    Raises:
        DataError: a token is the id of no word, or as `bind`.
    """
    check_token_ids(head, targets=targets)
    condition, tokens = head.bind(head.previous(targets), source), head.for_background(targets)
    shares = [
        background.view_of(condition.previous[rows]).locate(tokens[rows].flatten())[1]
        for rows, background in condition.backgrounds
    ]
    return (torch.cat(shares).view_as(targets).isfinite() | targets.eq(head.pad)).all(1)


def loss_of(
    head: ScoredHead, batch: Batch, targets: Tensor, label_smoothing: float = 0.0, adaptor_penalty: float = 0.0,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Return the loss of a batch. Arguments and errors as in `forward`."""
    if not 0.0 <= label_smoothing < 1.0:  # NaN is not
        raise OptionError(f"label_smoothing {label_smoothing}: expected a share from 0 to below 1, e.g. 0.1")
    check_penalty("adaptor_penalty", adaptor_penalty)
    log_prob = target_log_probs(head, batch, targets, reduction != "none")
    check_allowed(head, log_prob, targets, fix=LEAVE_OUT)
    real = targets.ne(head.pad)
    loss = regularised(head, -log_prob, batch, targets, label_smoothing, adaptor_penalty).masked_fill(~real, 0.0)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / real.sum().clamp_min(1)


def regularised(
    head: ScoredHead, loss: Tensor, batch: Batch, targets: Tensor, label_smoothing: float, adaptor_penalty: float,
    p: float = 2,
) -> Tensor:  # fmt: skip
    """Add label smoothing and the penalty `adaptor_penalty` · ‖a(K)‖ₚ to a loss (B, T)."""
    if label_smoothing:
        loss = loss - label_smoothing * smoothing_gain(head, batch, targets)
    if adaptor_penalty:
        loss = loss + adaptor_penalty * adaptor_norm(head, batch, p)
    return loss
