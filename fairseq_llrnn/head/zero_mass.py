"""Targets that the background forbids, whose loss would be infinite: which word, where.

Sizes: B batch, T time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import UNK

if TYPE_CHECKING:
    from fairseq_llrnn.head.head import LogLinearHead

FIX_ZERO_MASS = "build the prior with a background that covers it, e.g. --background unigram"
LEAVE_OUT = "leave such sentences out (LogLinearHead.possible finds them), or " + FIX_ZERO_MASS


@dataclass(frozen=True)
class Forbidden:
    """The first of some words without mass."""

    row: int  # from 0
    position: int  # from 1
    token: int
    around: Tensor  # the tokens near it, without padding
    many: int  # how many there are


def first_forbidden(log_prob: Tensor, words: Tensor, pad: int) -> Forbidden | None:
    """The first of the words (B, T), but padding, whose log_prob (B, T) is −inf; None where there is none."""
    impossible = torch.isneginf(log_prob) & words.ne(pad)
    if torch.compiler.is_compiling() or not bool(impossible.any()):  # compiled, it is a loss of inf
        return None
    row, position = impossible.nonzero()[0].tolist()
    near = words[row, max(0, position - 5) : position + 4]
    return Forbidden(row, position + 1, int(words[row, position]), near[near.ne(pad)], int(impossible.sum()))


def refuse_forbidden(
    head: LogLinearHead, log_prob: Tensor, targets: Tensor, ids: Tensor | None = None, fix: str = FIX_ZERO_MASS
) -> None:
    """Raise DataError for the first target, (B, T), but padding, whose log_prob (B, T) is −inf: its loss is infinite.

    Args:
        ids: (B,) the samples' numbers, from zero; None, or another length, where they are not known. fix: what to do.
    """
    forbidden = first_forbidden(log_prob, targets, head.pad)
    if forbidden is None:
        return
    symbols, has_ids = head.prior.session.target.symbols, ids is not None and len(ids) == len(targets)
    place = f"at position {forbidden.position} of sample {int(ids[forbidden.row]) + 1}, " if has_ids else ""  # type: ignore[index]
    words = [symbols[token] if token < len(symbols) else UNK for token in (forbidden.token, *forbidden.around.tolist())]
    around = [word for word, token in zip(words[1:], forbidden.around.tolist(), strict=True) if token != head.eos]
    raise DataError(
        f"the background gives word {words[0]!r} no mass, but it is the target {place}in {' '.join(around)!r} "
        f"({forbidden.many} such targets in this batch); {fix}"
    )
