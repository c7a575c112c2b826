"""The background of a batch of sentences with evidence: masses, shares, columns (the formula is in evidence.py).

Sizes: B sentences of a batch, N hypotheses, T time, V words, S signatures, J slots.
"""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.core.backgrounds.contract import NEGATIVE_INFINITY, Background
from fairseq_llrnn.core.evidence.slots import NO_WORD, Slots

if TYPE_CHECKING:
    from fairseq_llrnn.core.backgrounds.evidence import EvidenceBackground

LOG_UNK_KEEPS = -6.907755  # log of a thousandth


class EvidenceMixture(Background):
    """b(C; x) of a batch. A hypothesis' state: the number of its sentence, then the state of b₁."""

    def __init__(self, owner: EvidenceBackground, base: Background, slots: Slots) -> None:
        """base: b₁ of the same sentences."""
        super().__init__(owner.class_of, owner.num_classes + slots.words.size(1))
        self.base, self.slots = base, slots
        self._owner = (owner,)
        self._remaining: int | None = None
        self._reaching = (base,)  # b₁ with the limit of a search, for shares; in tuples: no sub-modules
        self.static = owner.num_classes  # S
        self.vocabulary = len(owner.class_of)  # V
        self.pad, self.unk = owner.pad, owner.unk
        self.constant = base.constant
        inside = slots.exist & (slots.words < self.vocabulary)  # shape: (B, J)
        self.inside = inside
        self.place = slots.words.masked_fill(~inside, owner.pad)  # the word that leaves its class, or <pad>
        self.places_class = self.class_of[self.place]  # shape: (B, J)
        # the first of the words that leave one class writes its mass: written twice, it would have its gradient twice
        beside = (self.places_class.unsqueeze(2) == self.places_class.unsqueeze(1)) & inside.unsqueeze(1)
        self.writes = inside & ~beside.tril(-1).any(2)  # shape: (B, J)
        self.written = torch.where(self.writes, self.places_class, self.class_of[owner.pad])
        each = torch.log(torch.tensor(owner.table.rules.weight)) - slots.count.clamp_min(1).log()
        self.log_evidence = each.unsqueeze(1).masked_fill(~slots.exist, NEGATIVE_INFINITY)  # shape: (B, J)
        self.unk_keeps = torch.where(slots.unknown.any(1), LOG_UNK_KEEPS, 0.0)  # shape: (B,)

    # ---- training and limits ---------------------------------------------------------------------------------------

    def held_out(self, tokens: Tensor) -> Background:
        base = self.base.held_out(self._known(tokens))
        return self if base is self.base else EvidenceMixture(self._owner[0], base, self.slots)

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
        base = self.base.advance(self._base(state), self._known(tokens))
        return torch.cat([state[:, :1], base.view(len(state), -1)], dim=1)

    def _base(self, state: Tensor) -> Tensor:
        """The state of b₁, in the shape that it has."""
        return state[:, 1:].reshape(len(state), *self._base_shape)

    @cached_property
    def _base_shape(self) -> torch.Size:
        return self.base.start(len(self.slots.words)).shape[1:]

    def _known(self, tokens: Tensor) -> Tensor:
        return tokens.masked_fill(tokens >= self.vocabulary, self.unk)

    # ---- tokens ---------------------------------------------------------------------------------------------------

    def slot(self, sentence: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Which slot of its sentence each token is, and whether it is one; any shape."""
        same = self.slots.words[sentence] == tokens.unsqueeze(-1)  # shape: (…, J)
        return same.long().argmax(-1), same.any(-1)

    def classes(self, state: Tensor, tokens: Tensor) -> Tensor:
        return self._classes(state[:, 0], tokens)

    def classes_along(self, tokens: Tensor) -> Tensor:
        return self._classes(self._sentence_of(tokens), tokens)

    def _classes(self, sentence: Tensor, tokens: Tensor) -> Tensor:
        which, is_slot = self.slot(sentence, tokens)
        return torch.where(is_slot, self.static + which, self.class_of[self._known(tokens)])

    def only_member(self, state: Tensor, classes: Tensor) -> Tensor:
        slot = classes - self.static
        string = self.slots.words[state[:, 0]].gather(1, slot.clamp_min(0)).clamp_min(0)
        of_static = self.base.only_member(self._base(state), classes.clamp_max(self.static - 1))
        return torch.where(slot >= 0, string, of_static)

    def readable(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        """Strings outside the vocabulary, and what a slot of an unknown word wrote, are read as <unk>."""
        sentence = self._sentence_of(tokens, state)
        which, is_slot = self.slot(sentence, tokens)
        unread = is_slot & self.slots.unknown[sentence, which]
        return self._known(tokens).masked_fill(unread, self.unk)

    def _sentence_of(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        """The sentence of each token (N, T): i in row i, or that of state i."""
        if state is not None:
            return state[:, :1].expand_as(tokens)
        return torch.arange(len(tokens), device=tokens.device).unsqueeze(1).expand_as(tokens)

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
        sentence = state[:, 0]
        mass = self.base.log_mass(self._base(state)).expand(len(state), -1)
        _, left, own = self._leaving(state)
        # the classes that a word has left; where none did, <pad>'s, to which what it has is written
        written = self.written[sentence]
        mass = mass.scatter(1, written, torch.where(self.writes[sentence], left, mass.gather(1, written)))
        unk = self.class_of[self.unk].view(1, 1).expand(len(state), 1)
        mass = mass.scatter(1, unk, mass.gather(1, unk) + self.unk_keeps[sentence].unsqueeze(1))
        return torch.cat([mass, torch.logaddexp(self.log_evidence[sentence], own)], dim=1)

    def _leaving(self, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of the words that are slots, (N, J) each: the log mass of their class before and after, and log b₁."""
        if self.constant:
            before, after, own = self._leaving_once
            return before[state[:, 0]], after[state[:, 0]], own[state[:, 0]]
        return self._find_leaving(state)

    @cached_property
    def _leaving_once(self) -> tuple[Tensor, Tensor, Tensor]:
        return self._find_leaving(self.start(len(self.slots.words)))

    def _find_leaving(self, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        base, words, inside = self._base(state), self.place[state[:, 0]], self.inside[state[:, 0]]
        many = words.size(1)
        before = self.base.log_mass(base).expand(len(state), -1).gather(1, self.class_of[words])
        after = self.base.log_mass_without(base, words, inside)
        share = self.base.log_share(base.repeat_interleave(many, 0), words.flatten()).view_as(words)
        own = torch.where(inside & ~share.isneginf(), before + share, NEGATIVE_INFINITY)
        return before, after, own

    def log_mass_without(self, state: Tensor, words: Tensor, taken: Tensor) -> Tensor:
        """As the contract's; words that are slots have left their classes before, and leave an empty slot."""
        sentence = state[:, 0]
        which, is_slot = self.slot(sentence.unsqueeze(1).expand_as(words), words)
        others = words.masked_fill(is_slot, self.pad)
        out = torch.cat([self.inside[sentence], taken & ~is_slot], dim=1)
        rest = self.base.log_mass_without(self._base(state), torch.cat([self.place[sentence], others], dim=1), out)
        rest = rest[:, -words.size(1) :] + (words == self.unk) * self.unk_keeps[sentence].unsqueeze(1)
        own = self.log_mass_of_slots(state).gather(1, which).masked_fill(taken, NEGATIVE_INFINITY)
        return torch.where(is_slot, own, rest)

    def log_mass_along(self, previous: Tensor) -> Tensor:
        return self._masses.unsqueeze(1) if self.constant else super().log_mass_along(previous)

    def log_share(self, state: Tensor, tokens: Tensor) -> Tensor:
        which, is_slot = self.slot(state[:, 0], tokens)
        known = self._known(tokens)
        share = self._reaching[0].log_share(self._base(state), known) + self._lift(state, self.class_of[known])
        own = self._share_of_slots(state).gather(1, which.unsqueeze(1)).squeeze(1)
        return torch.where(is_slot, own, share)

    def log_mass_of_slots(self, state: Tensor) -> Tensor:
        """log b(C; x_j) of every slot: (N, J)."""
        return torch.logaddexp(self.log_evidence[state[:, 0]], self._leaving(state)[2])

    def _share_of_slots(self, state: Tensor) -> Tensor:
        """The log share of every slot's only member: 0, or −inf for a slot without mass or out of reach; (N, J)."""
        masses = self.log_mass_of_slots(state)
        shares = masses.masked_fill(~masses.isneginf(), 0.0)
        if self._remaining is None:
            return shares
        words = self._known(self.slots.words[state[:, 0]].clamp_min(0))
        base = self._base(state).repeat_interleave(words.size(1), 0)
        steps = self.base.steps_to_end(self.base.advance(base, words.flatten())).view_as(words)
        return shares.masked_fill(steps >= self._remaining, NEGATIVE_INFINITY)

    def _lift(self, state: Tensor, classes: Tensor) -> Tensor:
        """What the shares of the members that stay gain where others have left their class: (N,) -> (N,)."""
        before, after, _ = self._leaving(state)
        gain = torch.where(after.isneginf(), 0.0, before - after)
        here = (self.places_class[state[:, 0]] == classes.unsqueeze(1)) & self.inside[state[:, 0]]  # shape: (N, J)
        which = here.long().argmax(1, keepdim=True)
        return torch.where(here.any(1), gain.gather(1, which).squeeze(1), 0.0)

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
        classes = self.places_class[state[:, 0]]
        first = self._staying(state, classes, 1)[0].squeeze(2)  # shape: (N, J)
        best = best.scatter(1, classes, torch.where(self.inside[state[:, 0]], first, best.gather(1, classes)))
        return torch.cat([best, self._share_of_slots(state)], dim=1)

    def best_members(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        is_slot = classes >= self.static
        shares, words = self._staying(state, classes.masked_fill(is_slot, 0), k)
        which = (classes - self.static).clamp_min(0)
        own = self._share_of_slots(state).gather(1, which).unsqueeze(2)  # shape: (N, C, 1)
        string = self.slots.words[state[:, 0]].gather(1, which).clamp_min(0).unsqueeze(2)
        alone = functional.pad(own, (0, k - 1), value=NEGATIVE_INFINITY)
        shares = torch.where(is_slot.unsqueeze(2), alone, shares)
        words = torch.where(is_slot.unsqueeze(2), functional.pad(string, (0, k - 1)), words)
        return shares, words.masked_fill(shares.isneginf(), 0)

    def _staying(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k best members of static classes that are no slots: (N, C) -> log shares and words (N, C, k)."""
        leaving = self.place[state[:, 0]].masked_fill(~self.inside[state[:, 0]], NO_WORD)
        more = k + leaving.size(1)
        shares, words = self._reaching[0].best_members(self._base(state), classes, more)
        gone = (words.unsqueeze(3) == leaving[:, None, None]).any(3)
        values, which = shares.masked_fill(gone, NEGATIVE_INFINITY).topk(k, dim=2)
        many = classes.size(1)
        lift = self._lift(state.repeat_interleave(many, 0), classes.flatten()).view(*classes.shape, 1)
        return values + lift, words.gather(2, which)

    # ---- all words (only where asked for) ---------------------------------------------------------------------------

    def columns(self, state: Tensor) -> Tensor:
        """The token of each of the V + J columns: (N, V + J)."""
        strings = self.slots.words[state[:, 0]].clamp_min(0)
        words = torch.arange(self.vocabulary, device=strings.device)
        return torch.cat([words.expand(len(state), -1), strings], dim=1)

    def column_of(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        """The columns of the tokens (N, T), of sentence i in row i, or of state i; strings without a slot are <unk>."""
        which, is_slot = self.slot(self._sentence_of(tokens, state), tokens)
        outside = is_slot & (tokens >= self.vocabulary)
        return torch.where(outside, self.vocabulary + which, self._known(tokens))

    def log_weights(self, state: Tensor) -> Tensor:
        """(N, V + J)"""
        weights = self.base.log_weights(self._base(state)).expand(len(state), -1)
        unk = weights.new_zeros(self.vocabulary).index_fill(0, self.class_of.new_tensor([self.unk]), 1.0)
        return self._with_slots(weights + unk * self.unk_keeps[state[:, :1]], self.log_mass_of_slots(state), state)

    def log_shares(self, state: Tensor) -> Tensor:
        """(N, V + J)"""
        return self._with_slots(self._static_shares(state), self._share_of_slots(state), state)

    def word_log_probs(self, classes: Tensor, state: Tensor) -> Tensor:
        """(N, V + J)"""
        words = classes[:, self.class_of] + self._static_shares(state)
        slots = classes[:, self.static :]
        if self._remaining is not None:
            slots = slots.masked_fill(self._share_of_slots(state).isneginf(), NEGATIVE_INFINITY)
        return self._with_slots(words, slots, state)

    def word_log_probs_along(self, classes: Tensor, previous: Tensor) -> Tensor:
        """(B, T, V + J)"""
        steps = [self.word_log_probs(classes[:, t], state) for t, state in enumerate(self.states_along(previous))]
        return torch.stack(steps, dim=1)

    def _static_shares(self, state: Tensor) -> Tensor:
        """log shares of the words (N, V) in their static classes, from which the slots have gone."""
        before, after, _ = self._leaving(state)
        gain = torch.where(self.writes[state[:, 0]] & ~after.isneginf(), before - after, 0.0)
        lift = gain.new_zeros(len(state), self.static).scatter(1, self.written[state[:, 0]], gain)
        return self._reaching[0].log_shares(self._base(state)) + lift[:, self.class_of]

    def _with_slots(self, words: Tensor, slots: Tensor, state: Tensor) -> Tensor:
        """Values of V words (N, V) and of J slots (N, J) in columns: (N, V + J)."""
        inside = self.inside[state[:, 0]]
        result = functional.pad(words, (0, slots.size(1)), value=NEGATIVE_INFINITY)
        column = self.vocabulary + torch.arange(slots.size(1), device=slots.device)
        column = torch.where(inside, self.place[state[:, 0]], column)
        return result.scatter(1, column, slots)
