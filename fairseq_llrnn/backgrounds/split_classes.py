"""The best words where some have left their classes for classes of their own: slots of evidence, exceptions of experts.

Sizes: N hypotheses, C classes that are asked for, J classes of one member.
"""

from __future__ import annotations

from torch import Tensor, where
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background


def best_staying(
    background: Background, state: Tensor, classes: Tensor, leaving: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """The k best members of classes (N, C) that are not among the words `leaving` (N, J).

    Returns:
        their log shares as the background has them, before any left, and the words: (N, C, k) each.
    """
    shares, words = background.best_members(state, classes, k + leaving.size(1))
    gone = (words.unsqueeze(3) == leaving[:, None, None]).any(3)
    values, which = shares.masked_fill(gone, NEGATIVE_INFINITY).topk(k, dim=2)
    return values, words.gather(2, which)


def beside_own(
    own: Tensor, own_shares: Tensor, own_words: Tensor, best: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Best members of classes (N, C) of which some are of one member, as the contract's `best_members`.

    Args:
        own: which of the J a class is, (N, C); negative for the others. own_shares, own_words: of the J, (N, J).
        best: log shares and words of the others, (N, C, k).
    """
    shares, words = best
    k, is_own, which = shares.size(2), (own >= 0).unsqueeze(2), own.clamp_min(0)
    alone = functional.pad(own_shares.gather(1, which).unsqueeze(2), (0, k - 1), value=NEGATIVE_INFINITY)
    word = functional.pad(own_words.gather(1, which).unsqueeze(2), (0, k - 1))
    shares = where(is_own, alone, shares)
    return shares, where(is_own, word, words).masked_fill(shares.isneginf(), 0)
