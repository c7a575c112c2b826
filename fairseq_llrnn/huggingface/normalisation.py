"""log p′ of the next token, of logits and weights. Rows that have ended, and dead ends.

Sizes: N hypotheses, K tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY
from fairseq_llrnn.huggingface.token_weights import FREE, Row

DEAD_END = -1e9  # log p of the end of an incomplete text, finite since sampling needs a token


def mask_after_eos(log_p: Tensor, ended: Tensor, eos: int, pad: int) -> Tensor:
    """Return log p (N, K) in which `pad` alone follows texts that have ended, (N,) bool, with log p 0.

    In other rows without a possible token, the log p of `eos` is DEAD_END. A beam search keeps such a hypothesis if a
    grammar has fewer texts than there are beams. NaN is a dead end, too: transformers normalises rows of −∞ alone.
    """
    rows = (ended | ~(log_p.amax(1) > NEGATIVE_INFINITY)).nonzero().flatten().tolist()
    if rows:
        log_p = log_p.clone()
        end_rows_(log_p, rows, ended[rows], eos, pad)
    return log_p


def end_rows_(log_p: Tensor, rows: list[int], ended: Tensor, eos: int, pad: int) -> None:
    """Leave one token in some rows of log p (N, K): `pad` where a text has ended, (len(rows),) bool, or else `eos`."""
    log_p[rows] = NEGATIVE_INFINITY
    dead_end = max(DEAD_END, torch.finfo(log_p.dtype).min)
    log_p[rows, torch.where(ended, pad, eos)] = torch.where(ended, 0.0, dead_end).to(log_p.dtype)


def rows_in_time(
    rows: Sequence[Row], in_reach: Sequence[np.ndarray | None], remaining: int, eos: int, num_tokens: int,
    scores: Tensor,
) -> list[Row]:  # fmt: skip
    """Return the rows without the tokens after which the text cannot end within `remaining` tokens. Free rows stay.

    Args:
        in_reach: of `TokenWeights.in_reach`.
    """
    found = []
    for row, reached in zip(rows, in_reach, strict=True):
        if remaining <= 1 and row is not FREE:
            only_end = np.arange(num_tokens) == eos
            reached = only_end if reached is None else reached & only_end
        if reached is not None:
            row = row.without(torch.from_numpy(~reached).to(scores.device), scores)
        found.append(row)
    return found


def _log_sum_exp(values: np.ndarray) -> float:
    """Return log Σ exp of values, (M,), and −inf of none. Numpy prints no warning for NaN and ∞."""
    if len(values) < 50 and math.isfinite(values.dot(values)):
        return float(np.logaddexp.reduce(values, initial=NEGATIVE_INFINITY))
    largest = float(values.max())
    return largest + math.log(np.exp(values - largest).sum()) if math.isfinite(largest) else largest


def normalised(rows: Sequence[Row], scores: Tensor, num_tokens: int) -> tuple[Tensor, list[int]]:
    """Return log p' of hypotheses, (N, K), −inf for tokens without weight, and the rows without a possible token."""
    if scores.size(1) == num_tokens and all(row.tokens is None and row.log_weights is not None for row in rows):
        weights = [row.log_weights for row in rows if row.log_weights is not None]
        log_p = (scores + (weights[0] if len(weights) == 1 else torch.stack(weights))).log_softmax(1)
        return log_p, [number for number, first in enumerate(log_p[:, 0].tolist()) if math.isnan(first)]  # then all are
    log_p = scores.new_full(scores.shape, NEGATIVE_INFINITY)
    dead = []
    in_numpy = scores.device.type == "cpu" and scores.dtype in (torch.float32, torch.float64)
    in_numpy &= not scores.requires_grad
    given, out = (scores.numpy(), log_p.numpy()) if in_numpy else (None, None)
    for number, row in enumerate(rows):
        if given is not None and out is not None and row.tokens is not None:  # quicker than torch by half
            tokens = row.tokens.numpy()
            few = given[number].take(tokens)
            if row.log_weights is not None:
                few += row.log_weights.numpy()
            total = _log_sum_exp(few)
            if math.isfinite(total):
                out[number][tokens] = few - total
            else:
                dead.append(number)
            continue
        size = scores.size(1) if row is FREE else num_tokens
        values = scores[number, :size] if row.tokens is None else scores[number].index_select(0, row.tokens)
        if row.log_weights is not None:
            values = values + row.log_weights
        values = values.log_softmax(0)
        if len(values) == 0 or math.isnan(values[0].item()):
            dead.append(number)
        elif row.tokens is None:
            log_p[number, :size] = values
        else:
            log_p[number].index_copy_(0, row.tokens, values)
    return log_p, dead
