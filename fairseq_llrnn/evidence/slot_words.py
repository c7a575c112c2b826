"""The words of a batch's slots: which token is which slot, its class, its column; which words leave their classes.

Sizes: B sentences of a batch, N hypotheses, V words, S signatures, J slots. Nothing here depends on masses, nor on what
a hypothesis has written: `sentence` says whose slots are meant, one number for each hypothesis (N,) or token.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY
from fairseq_llrnn.evidence.slots import Slots


class SlotWords:
    """Tokens are ids of the open vocabulary: below V the dictionary's, above it strings."""

    def __init__(self, slots: Slots, class_of: Tensor, static: int, pad: int, unk: int) -> None:
        """class_of: (V,) static classes, S of them (`static`). pad, unk: each alone in its class."""
        self.slots, self.class_of, self.static, self.unk = slots, class_of, static, unk
        self.vocabulary = len(class_of)
        self.inside = slots.exist & (slots.words < self.vocabulary)  # shape: (B, J)
        self.leaves = slots.words.masked_fill(~self.inside, pad)  # the word that leaves its class, or <pad>
        self.left = class_of[self.leaves]  # shape: (B, J), the classes that they leave
        # the first of the words that leave one class writes its mass: written twice, it would have its gradient twice
        beside = (self.left.unsqueeze(2) == self.left.unsqueeze(1)) & self.inside.unsqueeze(1)
        self.writes = self.inside & ~beside.tril(-1).any(2)  # shape: (B, J)
        self.written = torch.where(self.writes, self.left, class_of[pad])

    # ---- tokens ---------------------------------------------------------------------------------------------------

    def known(self, tokens: Tensor) -> Tensor:
        """The tokens with <unk> for strings outside the vocabulary."""
        return tokens.masked_fill(tokens >= self.vocabulary, self.unk)

    def slot(self, sentence: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Which slot of its sentence each token is, and whether it is one; any shape."""
        same = self.slots.words[sentence] == tokens.unsqueeze(-1)  # shape: (…, J)
        return same.long().argmax(-1), same.any(-1)

    def classes(self, sentence: Tensor, tokens: Tensor) -> Tensor:
        """The class of each token, slots' from S on; any shape."""
        which, is_slot = self.slot(sentence, tokens)
        return torch.where(is_slot, self.static + which, self.class_of[self.known(tokens)])

    def readable(self, sentence: Tensor, tokens: Tensor) -> Tensor:
        """The tokens with <unk> for strings outside the vocabulary, and for what a slot of an unknown word wrote."""
        which, is_slot = self.slot(sentence, tokens)
        unread = is_slot & self.slots.unknown[sentence, which]
        return self.known(tokens).masked_fill(unread, self.unk)

    def strings(self, sentence: Tensor) -> Tensor:
        """The token of every slot: (N,) -> (N, J), 0 where there is none."""
        return self.slots.words[sentence].clamp_min(0)

    # ---- columns ----------------------------------------------------------------------------------------------------

    def columns(self, sentence: Tensor) -> Tensor:
        """The token of each of the V + J columns: (N,) -> (N, V + J)."""
        strings = self.strings(sentence)
        words = torch.arange(self.vocabulary, device=strings.device)
        return torch.cat([words.expand(len(sentence), -1), strings], dim=1)

    def column_of(self, sentence: Tensor, tokens: Tensor) -> Tensor:
        """The column of each token; that of <unk> for a string that no slot of the sentence offers. Any shape."""
        which, is_slot = self.slot(sentence, tokens)
        outside = is_slot & (tokens >= self.vocabulary)
        return torch.where(outside, self.vocabulary + which, self.known(tokens))

    def in_columns(self, sentence: Tensor, of_words: Tensor, of_slots: Tensor) -> Tensor:
        """Values of V words (N, V) and of J slots (N, J) in their columns: (N, V + J), −inf for columns without one."""
        result = functional.pad(of_words, (0, of_slots.size(1)), value=NEGATIVE_INFINITY)
        column = self.vocabulary + torch.arange(of_slots.size(1), device=of_slots.device)
        column = torch.where(self.inside[sentence], self.leaves[sentence], column)
        return result.scatter(1, column, of_slots)
