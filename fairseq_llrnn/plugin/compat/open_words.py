"""Strings outside the dictionary, whose ids begin at V: how a decoder with an open vocabulary reads and scores them.

Sizes: V words, O open classes, N targets.
"""

from __future__ import annotations

import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_llrnn.open_vocabulary.mixture import OpenMixture, log_spelling
from fairseq_llrnn.open_vocabulary.table import OpenTable


def known_words(tokens: Tensor, dictionary: Dictionary) -> Tensor:
    """The tokens with <unk> for strings outside the dictionary: all that a table with a row per word can read."""
    return tokens.masked_fill(tokens >= len(dictionary), dictionary.unk())


class OpenStrings:
    """The open classes of a decoder, and the strings that were met."""

    def __init__(self, mixture: OpenMixture, table: OpenTable, dictionary: Dictionary) -> None:
        self.mixture, self.table, self.dictionary = mixture, table, dictionary

    def known(self, tokens: Tensor) -> Tensor:
        return known_words(tokens, self.dictionary)

    def read_as(self, strings: Tensor, known: Tensor) -> Tensor:
        """The tokens `known` with V + o in the place of strings beyond the dictionary, o the class they look like."""
        outside = strings >= len(self.dictionary)
        if not bool(outside.any()):
            return known
        classes = torch.from_numpy(self.table.read_as(strings[outside].cpu().numpy())).to(known)
        return known.masked_scatter(outside, len(self.dictionary) + classes)

    def as_in_text(self, strings: Tensor, known: Tensor) -> Tensor:
        """The tokens `known` with words in the place of their twins: by these a text is held out in training."""
        outside = strings >= len(self.dictionary)
        words = torch.from_numpy(self.table.words_of(strings[outside].cpu().numpy())).to(known)
        return known.masked_scatter(outside, torch.where(words < 0, self.dictionary.unk(), words))

    def spelt(self, log_prob: Tensor, scores: Tensor, targets: Tensor, classes: Tensor) -> Tensor:
        """log p of the targets (N,), where that of <unk> stands for strings outside the dictionary that are no slots.

        Args:
            scores: of the open classes, (N, O). classes: of the targets, (N,).
        """
        outside = (targets >= len(self.dictionary)) & (classes == self.mixture.unk_class)
        places = outside.nonzero().squeeze(1)
        if len(places) == 0:
            return log_prob
        log_strings = torch.from_numpy(self.table.log_probs(targets[places].cpu().numpy())).to(scores.device)
        return log_prob.index_add(0, places, log_spelling(scores[places], log_strings).to(log_prob.dtype))
