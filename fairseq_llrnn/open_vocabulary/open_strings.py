"""Strings outside the dictionary, whose ids begin at V: how a head with an open vocabulary reads and scores them.

Sizes: V words, O open classes, N targets.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fairseq_llrnn.open_vocabulary.mixture import OpenMixture, log_spelling
from fairseq_llrnn.open_vocabulary.table import OpenTable


class OpenStrings:
    """The open classes of a head, and the strings that were met."""

    def __init__(self, mixture: OpenMixture, table: OpenTable, num_words: int, unk: int) -> None:
        """num_words: V. unk: the token that stands for strings outside the dictionary."""
        self.mixture, self.table, self.num_words, self.unk = mixture, table, num_words, unk

    def known(self, tokens: Tensor) -> Tensor:
        """The tokens with <unk> for strings outside the dictionary."""
        return tokens.masked_fill(tokens >= self.num_words, self.unk)

    def read_as(self, strings: Tensor, known: Tensor) -> Tensor:
        """The tokens `known` with V + o in the place of strings beyond the dictionary, o the class they look like."""
        outside = strings >= self.num_words
        if not bool(outside.any()):
            return known
        classes = torch.from_numpy(self.table.read_as(strings[outside].cpu().numpy())).to(known)
        return known.masked_scatter(outside, self.num_words + classes)

    def as_in_text(self, strings: Tensor, known: Tensor) -> Tensor:
        """The tokens `known` with words in the place of their aliases: as in the text that b is estimated from."""
        outside = strings >= self.num_words
        words = torch.from_numpy(self.table.words_of(strings[outside].cpu().numpy())).to(known)
        return known.masked_scatter(outside, torch.where(words < 0, self.unk, words))

    def spelled(self, log_prob: Tensor, scores: Tensor, targets: Tensor, classes: Tensor) -> Tensor:
        """log p of the targets (N,), where that of <unk> stands for strings outside the dictionary that are no slots.

        Args:
            scores: of the open classes, (N, O). classes: of the targets, (N,).
        """
        outside = (targets >= self.num_words) & (classes == self.mixture.of_class)
        places = outside.nonzero().squeeze(1)
        if len(places) == 0:
            return log_prob
        log_strings = torch.from_numpy(self.table.log_probs(targets[places].cpu().numpy())).to(scores.device)
        return log_prob.index_add(0, places, log_spelling(scores[places], log_strings).to(log_prob.dtype))
