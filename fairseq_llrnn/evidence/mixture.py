"""The background of a batch of sentences with evidence: masses, shares, columns (the formula is in evidence.py).

Sizes: B sentences of a batch, N hypotheses, T time, V words, S signatures, J slots. evidence_words.py says which tokens
are slots, evidence_leaving.py what the static classes lose to them; here are the states, and the slots' own masses.
"""

from __future__ import annotations

import copy
from functools import cached_property

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.backgrounds.split_classes import beside_own, best_staying
from fairseq_llrnn.evidence.residual_mass import Leaving
from fairseq_llrnn.evidence.slot_words import SlotWords
from fairseq_llrnn.evidence.slots import NO_WORD, Slots

LOG_UNK_KEEPS = -6.907755  # log of a thousandth


class EvidenceMixture(Background):
    """b(C; x) of a batch. A hypothesis' state: the number of its sentence, then the state of b₁."""

    def __init__(self, base: Background, slots: Slots, pad: int, unk: int, weight: float) -> None:
        """base: b₁ of the same sentences. pad, unk: each alone in its class. weight: ε."""
        super().__init__(base.class_of, base.num_classes + slots.words.size(1))
        self.base, self.slots, self.pad, self.unk, self.weight = base, slots, pad, unk, weight
        self._remaining: int | None = None
        self._reaching = (base,)  # b₁ with the limit of a search, for shares; in a tuple: copies share sub-modules
        self.static = base.num_classes  # S
        self.vocabulary = len(self.class_of)  # V
        self.constant = base.constant
        self.words = SlotWords(slots, self.class_of, self.static, pad, unk)
        self.leaving = Leaving(base, self.words)
        each = torch.log(torch.tensor(weight)) - slots.count.clamp_min(1).log()
        self.log_evidence = each.unsqueeze(1).masked_fill(~slots.exist, NEGATIVE_INFINITY)  # shape: (B, J)
        self.unk_keeps = torch.where(slots.unknown.any(1), LOG_UNK_KEEPS, 0.0)  # shape: (B,)

    # ---- training and limits ---------------------------------------------------------------------------------------

    def held_out(self, tokens: Tensor) -> Background:
        base = self.base.held_out(self.words.known(tokens))
        return self if base is self.base else EvidenceMixture(base, self.slots, self.pad, self.unk, self.weight)

    def within(self, remaining: int) -> Background:
        base = self.base.within(remaining)
        if base is self.base:
            return self
        limited = copy.copy(self)
        limited._reaching, limited._remaining = (base,), remaining
        return limited

    def steps_to_end(self, state: Tensor) -> Tensor:
        return self.base.steps_to_end(self._base(state))

    # ---- states --------------------------------------------------------------------------------------------------

    def start(self, n: int) -> Tensor:
        """State of one hypothesis per sentence: `n` is the number of sentences."""
        base = self.base.start(n)
        sentence = torch.arange(n, device=self.class_of.device, dtype=base.dtype)
        return torch.cat([sentence.unsqueeze(1), base.view(n, -1)], dim=1)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        base = self.base.advance(self._base(state), self.words.known(tokens))
        return torch.cat([state[:, :1], base.view(len(state), -1)], dim=1)

    def _base(self, state: Tensor) -> Tensor:
        """The state of b₁, in the shape that it has."""
        return state[:, 1:].reshape(len(state), *self._base_shape)

    @cached_property
    def _base_shape(self) -> torch.Size:
        return self.base.start(len(self.slots.words)).shape[1:]

    # ---- tokens ---------------------------------------------------------------------------------------------------

    def classes(self, state: Tensor, tokens: Tensor) -> Tensor:
        return self.words.classes(state[:, 0], tokens)

    def classes_along(self, tokens: Tensor) -> Tensor:
        return self.words.classes(_sentence_of(tokens, None), tokens)

    def only_member(self, state: Tensor, classes: Tensor) -> Tensor:
        slot = classes - self.static
        string = self.words.strings(state[:, 0]).gather(1, slot.clamp_min(0))
        of_static = self.base.only_member(self._base(state), classes.clamp_max(self.static - 1))
        return torch.where(slot >= 0, string, of_static)

    def readable(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        return self.words.readable(_sentence_of(tokens, state), tokens)

    # ---- masses and shares ----------------------------------------------------------------------------------------

    def log_mass(self, state: Tensor) -> Tensor:
        if self.constant:
            return self._masses.index_select(0, state[:, 0])
        return self._log_mass(state)

    @cached_property
    def _masses(self) -> Tensor:
        """(B, S + J) where no state changes them."""
        return self._log_mass(self.start(len(self.slots.words)))

    def _log_mass(self, state: Tensor) -> Tensor:
        mass = self.leaving.log_mass(state[:, 0], self._base(state))
        unk = self.class_of[self.unk].view(1, 1).expand(len(state), 1)
        mass = mass.scatter(1, unk, mass.gather(1, unk) + self.unk_keeps[state[:, 0]].unsqueeze(1))
        return torch.cat([mass, self.log_mass_of_slots(state)], dim=1)

    def log_mass_of_slots(self, state: Tensor) -> Tensor:
        """log b(C; x_j) of every slot: (N, J)."""
        _, _, own = self.leaving.masses(state[:, 0], self._base(state))
        return torch.logaddexp(self.log_evidence[state[:, 0]], own)

    def log_mass_without(self, state: Tensor, words: Tensor, taken: Tensor) -> Tensor:
        """As the contract's; words that are slots have left their classes before, and leave an empty slot."""
        sentence = state[:, 0]
        which, is_slot = self.words.slot(sentence.unsqueeze(1).expand_as(words), words)
        both = torch.cat([self.words.leaves[sentence], words.masked_fill(is_slot, self.pad)], dim=1)
        out = torch.cat([self.words.inside[sentence], taken & ~is_slot], dim=1)
        rest = self.base.log_mass_without(self._base(state), both, out)
        rest = rest[:, -words.size(1) :] + (words == self.unk) * self.unk_keeps[sentence].unsqueeze(1)
        own = self.log_mass_of_slots(state).gather(1, which).masked_fill(taken, NEGATIVE_INFINITY)
        return torch.where(is_slot, own, rest)

    def log_mass_along(self, previous: Tensor) -> Tensor:
        return self._masses.unsqueeze(1) if self.constant else super().log_mass_along(previous)

    def log_share(self, state: Tensor, tokens: Tensor) -> Tensor:
        sentence, base, known = state[:, 0], self._base(state), self.words.known(tokens)
        which, is_slot = self.words.slot(sentence, tokens)
        gain = self.leaving.gain(sentence, base, self.class_of[known].unsqueeze(1)).squeeze(1)
        own = self._share_of_slots(state).gather(1, which.unsqueeze(1)).squeeze(1)
        return torch.where(is_slot, own, self._reaching[0].log_share(base, known) + gain)

    def _share_of_slots(self, state: Tensor) -> Tensor:
        """The log share of every slot's only member: 0, or −inf for a slot without mass or out of reach; (N, J)."""
        masses = self.log_mass_of_slots(state)
        shares = masses.masked_fill(~masses.isneginf(), 0.0)
        if self._remaining is None:
            return shares
        words = self.words.known(self.words.strings(state[:, 0]))
        base = self._base(state).repeat_interleave(words.size(1), 0)
        steps = self.base.steps_to_end(self.base.advance(base, words.flatten())).view_as(words)
        return shares.masked_fill(steps >= self._remaining, NEGATIVE_INFINITY)

    def log_share_along(self, previous: Tensor, targets: Tensor) -> Tensor:
        if not self.constant:
            return super().log_share_along(previous, targets)
        batch, time = targets.shape
        state = self.start(batch).repeat_interleave(time, 0)
        return self.log_share(state, targets.flatten()).view_as(targets)

    # ---- the best words (search) ------------------------------------------------------------------------------------

    def best_share(self, state: Tensor) -> Tensor:
        if self.constant:
            return self._best_shares.index_select(0, state[:, 0])
        return self._best_share(state)

    @cached_property
    def _best_shares(self) -> Tensor:
        return self._best_share(self.start(len(self.slots.words)))

    def _best_share(self, state: Tensor) -> Tensor:
        best = self._reaching[0].best_share(self._base(state)).expand(len(state), -1)
        left = self.words.left[state[:, 0]]
        first = self._staying(state, left, 1)[0].squeeze(2)  # shape: (N, J)
        best = best.scatter(1, left, torch.where(self.words.inside[state[:, 0]], first, best.gather(1, left)))
        return torch.cat([best, self._share_of_slots(state)], dim=1)

    def best_members(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        slot = classes - self.static
        best = self._staying(state, classes.masked_fill(slot >= 0, 0), k)
        return beside_own(slot, self._share_of_slots(state), self.words.strings(state[:, 0]), best)

    def _staying(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k best members of static classes that are no slots: (N, C) -> log shares and words (N, C, k)."""
        sentence, base = state[:, 0], self._base(state)
        leaving = self.words.leaves[sentence].masked_fill(~self.words.inside[sentence], NO_WORD)
        shares, words = best_staying(self._reaching[0], base, classes, leaving, k)
        return shares + self.leaving.gain(sentence, base, classes).unsqueeze(2), words

    # ---- all words (only where asked for) ---------------------------------------------------------------------------

    def columns(self, state: Tensor) -> Tensor:
        """The token of each of the V + J columns: (N, V + J)."""
        return self.words.columns(state[:, 0])

    def column_of(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        """The columns of the tokens (N, T), of sentence i in row i, or of state i; strings without a slot are <unk>."""
        return self.words.column_of(_sentence_of(tokens, state), tokens)

    def log_weights(self, state: Tensor) -> Tensor:
        """(N, V + J)"""
        weights = self.base.log_weights(self._base(state)).expand(len(state), -1)
        unk = weights.new_zeros(self.vocabulary).index_fill(0, self.class_of.new_tensor([self.unk]), 1.0)
        weights = weights + unk * self.unk_keeps[state[:, :1]]
        return self.words.in_columns(state[:, 0], weights, self.log_mass_of_slots(state))

    def log_shares(self, state: Tensor) -> Tensor:
        """(N, V + J)"""
        return self.words.in_columns(state[:, 0], self._static_shares(state), self._share_of_slots(state))

    def word_log_probs(self, classes: Tensor, state: Tensor) -> Tensor:
        """(N, V + J)"""
        words = classes[:, self.class_of] + self._static_shares(state)
        slots = classes[:, self.static :]
        if self._remaining is not None:
            slots = slots.masked_fill(self._share_of_slots(state).isneginf(), NEGATIVE_INFINITY)
        return self.words.in_columns(state[:, 0], words, slots)

    def word_log_probs_along(self, classes: Tensor, previous: Tensor) -> Tensor:
        """(B, T, V + J)"""
        steps = [self.word_log_probs(classes[:, t], state) for t, state in enumerate(self.states_along(previous))]
        return torch.stack(steps, dim=1)

    def _static_shares(self, state: Tensor) -> Tensor:
        """log shares of the words (N, V) in their static classes, from which the slots have gone."""
        return self.leaving.log_shares(self._reaching[0], state[:, 0], self._base(state))


def _sentence_of(tokens: Tensor, state: Tensor | None) -> Tensor:
    """The sentence of each token (N, T): that of state i in row i, or i where there are no states."""
    if state is not None:
        return state[:, :1].expand_as(tokens)
    return torch.arange(len(tokens), device=tokens.device).unsqueeze(1).expand_as(tokens)
