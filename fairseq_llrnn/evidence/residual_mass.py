"""What it does to the static classes that words leave them: the masses that remain, and the shares in them.

Sizes: B sentences of a batch, N hypotheses, V words, S signatures, J slots. The mass of a class is summed again without
the words that are slots (`Background.log_mass_without`): as a difference of masses it would lose its digits. All that
stay in it gain the same, log B_before − log B_after, in their log shares.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.evidence.slot_words import SlotWords

Masses = tuple[Tensor, Tensor, Tensor]


class Leaving:
    """The words of slots that leave their classes in a background b₁ of the same sentences.

    A hypothesis is the number of its sentence (N,) and its state of b₁ (N, …).
    """

    def __init__(self, base: Background, words: SlotWords) -> None:
        """base: b₁."""
        self.base, self.words = base, words

    def masses(self, sentence: Tensor, state: Tensor) -> Masses:
        """Of every slot, (N, J): the log mass of the class that it leaves before and after, and its own, −inf for none.

        Where no state changes them, they are found once for every sentence.
        """
        if not self.base.constant:
            return self._find(sentence, state)
        before, after, own = self._of_sentences
        return before[sentence], after[sentence], own[sentence]

    @cached_property
    def _of_sentences(self) -> Masses:
        many = len(self.words.left)
        return self._find(torch.arange(many, device=self.words.left.device), self.base.start(many))

    def _find(self, sentence: Tensor, state: Tensor) -> Masses:
        words, inside = self.words.leaves[sentence], self.words.inside[sentence]
        before = self.base.log_mass(state).expand(len(state), -1).gather(1, self.words.left[sentence])
        after = self.base.log_mass_without(state, words, inside)
        share = self.base.log_share(state.repeat_interleave(words.size(1), 0), words.flatten()).view_as(words)
        own = torch.where(inside & ~share.isneginf(), before + share, NEGATIVE_INFINITY)
        return before, after, own

    def log_mass(self, sentence: Tensor, state: Tensor) -> Tensor:
        """The masses of the static classes without those words: (N, S)."""
        mass = self.base.log_mass(state).expand(len(state), -1)
        _, after, _ = self.masses(sentence, state)
        # the classes that a word has left; where none did, <pad>'s, to which what it has is written
        written = self.words.written[sentence]
        return mass.scatter(1, written, torch.where(self.words.writes[sentence], after, mass.gather(1, written)))

    def gain(self, sentence: Tensor, state: Tensor, classes: Tensor) -> Tensor:
        """What the log shares gain of those that stay in the classes: (N, C) -> (N, C)."""
        before, after, _ = self.masses(sentence, state)
        gain = torch.where(after.isneginf(), 0.0, before - after)
        left, inside = self.words.left[sentence].unsqueeze(1), self.words.inside[sentence].unsqueeze(1)
        here = (left == classes.unsqueeze(2)) & inside  # shape: (N, C, J)
        return torch.where(here.any(2), gain.gather(1, here.long().argmax(2)), 0.0)

    def log_shares(self, reach: Background, sentence: Tensor, state: Tensor) -> Tensor:
        """The log shares of all words in what is left of their classes: (N, V).

        reach: b₁, or what a limit of length leaves of it.
        """
        before, after, _ = self.masses(sentence, state)
        gain = torch.where(self.words.writes[sentence] & ~after.isneginf(), before - after, 0.0)
        lift = gain.new_zeros(len(state), self.words.static).scatter(1, self.words.written[sentence], gain)
        return reach.log_shares(state) + lift[:, self.words.class_of]
