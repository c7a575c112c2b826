"""Slots that know what was said: each as often as its sentence has it, and none forgotten.

Sizes: N hypotheses, B sentences, T time, J slots, C classes (of the background below, slots included), S of them
signatures, K columns.

Every slot is alone in its class, and so is </s>. So the weights of a hypothesis are those below, times a factor of a
few classes, which follows from what the hypothesis has said (quotas.py):

    b'(K, x)  =  b(K, x) · f(K, x)        f ≠ 1 for slots of full groups, and for </s> before all is said

Masses change by the same factor; shares do not, but for −inf where a class has lost its weight. Within a limit of
length, words are out of reach that leave too few tokens for what is still required. This is exact where the background
below lets a string end anywhere; else it is a bound, and a search may find less than there is.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.evidence.quotas import SaidSlots
from fairseq_llrnn.features.dictionary import EOS, SPECIALS
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.output.context_words import recalled

END = SPECIALS.index(EOS)


class CountedSlots(ContextClasses):
    """b'(K, x) over the slots of a batch. A hypothesis' state: what it has said, then the state below."""

    base: ContextClasses
    source: SaidSlots

    def __init__(self, base: Background, source: SaidSlots) -> None:
        """base: with the slots as context classes (evidence/background.py)."""
        super().__init__(base, source)
        self.first_slot = self.base.num_below  # S
        self._end_class = int(self.class_of[END])
        if int((self.class_of == self._end_class).sum()) > 1:
            raise ValueError("</s> must be alone in its class")

    def within(self, remaining: int) -> Background:
        limited = super().within(remaining)
        if limited is not self or remaining >= self.source.longest + 2:
            return limited
        limited = copy.copy(self)
        limited._remaining, limited._last = remaining, {}
        return limited

    def steps_to_end(self, state: Tensor) -> Tensor:
        needed = self.source.missing(self.contexts_of(state)) + 1
        return torch.maximum(self.base.steps_to_end(self.below(state)), needed)

    # ---- factors, by class ------------------------------------------------------------------------------------------

    @recalled
    def _log_factors(self, state: Tensor) -> Tensor:
        """Of the slots, and of </s>: (N, J + 1)."""
        contexts = self.contexts_of(state)
        end = self.source.log_end_factor(contexts).unsqueeze(1)
        return torch.cat([self.source.log_factors(contexts), end], dim=1)

    @property
    def _factored(self) -> Tensor:
        """The classes of `_log_factors`: (J + 1,)."""
        slots = torch.arange(self.first_slot, self.num_below, device=self.class_of.device)
        return torch.cat([slots, self.class_of[END : END + 1]])

    def _at(self, classes: Tensor, values: Tensor) -> Tensor:
        """Values of slots, of </s> and of others (N, J + 2) at classes (N, …)."""
        many = values.size(1)
        place = torch.where(classes >= self.first_slot, classes - self.first_slot, many - 1)
        place = place.masked_fill(classes == self._end_class, many - 2)
        return values.gather(1, place.reshape(len(place), -1)).view(classes.shape)

    def _log_factor_at(self, classes: Tensor, state: Tensor) -> Tensor:
        """The logarithm of f at classes (N, …)."""
        return self._at(classes, functional.pad(self._log_factors(state), (0, 1)))

    @recalled
    def _lost(self, state: Tensor) -> Tensor:
        """Which slots, </s> and other words have no share here: (N, J + 2) bool."""
        contexts, gone = self.contexts_of(state), self._log_factors(state).isneginf()
        others = torch.zeros_like(gone[:, :1])
        if self._remaining is not None:
            missing, required = self.source.missing(contexts).unsqueeze(1), self.source.required(contexts)
            others = missing + 2 > self._remaining
            far = torch.where(required, missing + 1, missing + 2) > self._remaining
            gone = torch.cat([gone[:, :-1] | far, gone[:, -1:]], dim=1)
        return torch.cat([gone, others], dim=1)

    def _lose(self, shares: Tensor, classes: Tensor, state: Tensor) -> Tensor:
        """Log shares (N, …) of words of these classes without what is lost."""
        return shares.masked_fill(self._at(classes, self._lost(state)), NEGATIVE_INFINITY)

    # ---- masses and shares ------------------------------------------------------------------------------------------

    def log_mass(self, state: Tensor) -> Tensor:
        mass = self.base.log_mass(self.below(state)).expand(len(state), -1)
        return mass.index_add(1, self._factored, self._log_factors(state).to(mass.dtype))

    def log_mass_per_position(self, previous: Tensor) -> Tensor:
        factors = self._log_factors(self.flat_states(previous)).view(*previous.shape, -1)
        mass = self.base.log_mass_per_position(previous).expand(*previous.shape, -1)
        return mass.index_add(2, self._factored, factors.to(mass.dtype))

    def log_mass_without(self, state: Tensor, words: Tensor, taken: Tensor) -> Tensor:
        below = self.below(state)
        rest = self.base.log_mass_without(below, words, taken)
        each = below.repeat_interleave(words.size(1), 0)
        classes = self.base.classes(each, words.flatten()).view_as(words)
        return rest + self._log_factor_at(classes, state).to(rest.dtype)

    def log_share(self, state: Tensor, tokens: Tensor) -> Tensor:
        below = self.below(state)
        share = self._reach[0].log_share(below, tokens)
        return self._lose(share, self.base.classes(below, tokens), state)

    def log_share_per_position(self, previous: Tensor, targets: Tensor) -> Tensor:
        share = self._reach[0].log_share_per_position(previous, targets)
        classes = self.base.classes_per_position(targets)
        lost = self._lose(share.flatten(), classes.flatten(), self.flat_states(previous))
        return lost.view_as(targets)

    def classes_per_position(self, tokens: Tensor) -> Tensor:
        return self.base.classes_per_position(tokens)  # what was said moves no word from its class

    # ---- the best words (search) ------------------------------------------------------------------------------------

    def best_share(self, state: Tensor) -> Tensor:
        best = self._reach[0].best_share(self.below(state)).expand(len(state), -1)
        return self._lose(best, torch.arange(best.size(1), device=best.device).expand_as(best), state)

    def best_members(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        shares, words = self._reach[0].best_members(self.below(state), classes, k)
        shares = self._lose(shares, classes.unsqueeze(2).expand_as(shares), state)
        return shares, words.masked_fill(shares.isneginf(), 0)

    # ---- all words (only where asked for) ---------------------------------------------------------------------------

    def log_weights(self, state: Tensor) -> Tensor:
        below = self.below(state)
        weights = self.base.log_weights(below).expand(len(state), -1)
        classes = self.base.column_classes(below).expand_as(weights)
        return weights + self._log_factor_at(classes, state).to(weights.dtype)

    def log_shares(self, state: Tensor) -> Tensor:
        below = self.below(state)
        shares = self._reach[0].log_shares(below).expand(len(state), -1)
        return self._lose(shares, self.base.column_classes(below).expand_as(shares), state)

    def word_log_probs(self, classes: Tensor, state: Tensor) -> Tensor:
        below = self.below(state)
        words = self._reach[0].word_log_probs(classes, below)
        return self._lose(words, self.base.column_classes(below).expand_as(words), state)

    def word_log_probs_per_position(self, classes: Tensor, previous: Tensor) -> Tensor:
        return self._reach[0].word_log_probs_per_position(classes, previous)
