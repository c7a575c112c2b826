"""Counted slots: each is generated as often as its sentence contains it, and none is forgotten.

Sizes: N hypotheses, B sentences, T time, J slots, G largest number of groups of a sentence, C classes (slots included),
S signatures among them, K columns.

Slots are in groups. A group has a quota. A token that is a slot's string counts for the first of its groups with
room. There are three kinds of groups:

    must      exactly as often as the quota: the slots of a full group have no weight, and neither has </s> before
              all groups are full
    wanted    a soft `must`: slots of a full group keep a thousandth of their weight, </s> a hundredth
    others    at most as often as the quota, softly

A token that spells a string of a group whose own token is another (`Group.spellings`) also keeps a thousandth of its
weight.

The state of a hypothesis has the remaining quota of each group. Every slot is alone in its class, and so is </s>. So
the weights are those of the mixture, times a factor of J + 1 classes:

    b'(K, x)  =  b(K, x) · f(K, x)        f ≠ 1 for slots of full groups, and for </s> before all groups are full

Masses change by the same factor. Shares do not change, except to −inf if a class has lost its weight. Within a limit
of length, words are out of reach if they leave too few tokens for the remaining quotas. This is exact if the background
below lets a string end anywhere. Otherwise it is a bound, and a search may miss strings.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.automata.automaton import END
from fairseq_llrnn.backgrounds.background import BoundBackground
from fairseq_llrnn.backgrounds.cached import cached_property
from fairseq_llrnn.backgrounds.class_weights import (
    NEGATIVE_INFINITY,
    ClassWeights,
    OwnClassWeights,
    broadcast_groups,
    row_numbers,
)
from fairseq_llrnn.backgrounds.states import States
from fairseq_llrnn.evidence.slots import EvidenceMixture, EvidenceSlots, Slots, WithoutFactors
from fairseq_llrnn.output.context_classes import ContextView

LOG_KEEPS = -6.907755  # log of a thousandth: the factor of slots of full groups
# log of a hundredth: the factor of </s> while a wanted slot is missing; a smaller one could prevent the end
LOG_END_KEEPS = -4.605170


@dataclass(frozen=True)
class Quotas:
    """The groups of a batch."""

    member: Tensor  # (B, J, G) bool
    most: Tensor  # (B, G) the quota; 0 for padding
    must: Tensor  # (B, G) bool
    wanted: Tensor  # (B, G) bool


def quotas_of(slots: Slots, once: bool) -> Quotas | None:
    """Return the groups of a batch, plus one group per string of the evidence if `once`, or None if there are none.

    The quota of a string of the evidence is its count in the source. It is wanted if no dictionary has the word.
    """
    batch, num_slots = slots.words.shape
    groups = []
    if slots.most.size(1):
        groups.append(Quotas(slots.member, slots.most, slots.must, torch.zeros_like(slots.must)))
    if once:
        counted = (slots.times > 0).any(0)  # shape: (J,); excludes translations
        own_group = torch.eye(num_slots, dtype=torch.bool, device=slots.times.device)[:, counted].expand(batch, -1, -1)
        wanted = slots.names_unknown[:, counted]
        groups.append(Quotas(own_group, slots.times[:, counted], torch.zeros_like(wanted), wanted))
    if not any(bool((quotas.most > 0).any()) for quotas in groups):
        return None
    columns = zip(*((q.member.flatten(0, 1), q.most, q.must, q.wanted) for q in groups), strict=True)
    member, most, must, wanted = (torch.cat(parts, dim=1) for parts in columns)
    return Quotas(member.unflatten(0, (batch, num_slots)), most, must, wanted)


@dataclass(frozen=True)
class SlotGroups:
    """The quotas of the slots of each sentence, and log factors."""

    strings: Tensor  # (B, J)
    member: Tensor  # (B, J, G)
    must: Tensor  # (B, G)
    log_open: Tensor  # (B, J)
    log_full: Tensor  # (B, J)
    log_wanting: Tensor  # (B, G)


class QuotaSlots(EvidenceSlots):
    """The slots of a batch with their quotas."""

    def __init__(
        self, slots: Slots, unk: int, weight: float, quotas: Quotas, whole: WithoutFactors | None = None
    ) -> None:
        super().__init__(slots, unk, weight, whole)
        self.most, must = quotas.most, quotas.must & (quotas.most > 0)
        self.strict = bool(must.any())
        self.longest = int((self.most * must).sum(1).max()) if self.rows else 0  # required tokens of a sentence
        # log factor of a slot when all its groups are full: (B, J)
        forbidden = (quotas.member & must.unsqueeze(1)).any(2)
        log_closed = torch.where(forbidden, NEGATIVE_INFINITY, LOG_KEEPS)
        # log factor in all states: pieces should not spell a string that has its own token
        log_open = torch.where(slots.spelling_mask, LOG_KEEPS, 0.0)
        full = (quotas.member & (self.most > 0).unsqueeze(1)).any(2)
        log_full = torch.where(full, log_closed, 0.0) + log_open
        # log factor of </s> while a group has room: (B, G)
        log_wanting = torch.where(quotas.wanted, LOG_END_KEEPS, 0.0).masked_fill(must, NEGATIVE_INFINITY)
        self.groups = SlotGroups(slots.words, quotas.member, must, log_open, log_full, log_wanting)


class CountedView(ContextView):
    """b'(K, x) in N states."""

    bound: CountedSlots
    source: QuotaSlots

    # ---- factors, by class ------------------------------------------------------------------------------------------

    @cached_property
    def _factored(self) -> Tensor:
        """The classes of `_log_factors`: (1 + J,)."""
        return torch.cat([self.class_of[END : END + 1], self.class_numbers])

    @cached_property
    def _log_factors(self) -> Tensor:
        """The log factors of </s>, and of the slots: (N, 1 + J)."""
        groups, sentence, room = self.source.groups, self.contexts, self.bound.left(self.states) > 0
        is_open = (groups.member[sentence] & room.unsqueeze(1)).any(2)
        of_slots = torch.where(is_open, groups.log_open[sentence], groups.log_full[sentence])
        of_end = torch.where(room, groups.log_wanting[sentence], 0.0).amin(1, keepdim=True)
        return torch.cat([of_end, of_slots], dim=1)

    def _select(self, classes: Tensor, values: Tensor, rows: Tensor | None = None) -> Tensor:
        """Select values of </s>, of slots and of others (N, J + 2) at classes (M, …)."""
        place = torch.where(classes >= self.num_below, classes - self.num_below + 1, values.size(1) - 1)
        place = place.masked_fill(classes == self.class_of[END], 0)
        values = values if rows is None else values[rows]
        return values.gather(1, place.reshape(len(place), -1)).view(classes.shape)

    def _log_factor_at(self, classes: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return log f at classes (M, …)."""
        return self._select(classes, functional.pad(self._log_factors, (0, 1)), rows)

    @cached_property
    def _lost(self) -> Tensor | None:
        """Whether </s>, slots and others have no share here, (N, J + 2) bool. None: all with mass have one."""
        if not self.source.strict:
            return None
        is_lost = functional.pad(self._log_factors.isneginf(), (0, 1))
        if self.remaining is not None:
            groups, sentence = self.source.groups, self.contexts
            wanting = (self.bound.left(self.states) > 0) & groups.must[sentence]
            required = (groups.member[sentence] & wanting.unsqueeze(1)).any(2)  # shape: (N, J)
            needed = self.bound.missing(self.states).unsqueeze(1) + 2 - functional.pad(required, (1, 1)).long()
            needed[:, 0] = 0  # of `</s>`
            is_lost = is_lost | (needed > self.remaining)
        return is_lost

    def _lose(self, shares: Tensor, classes: Tensor, rows: Tensor | None = None) -> Tensor:
        """Set the log shares of words of these classes (M, …) to −inf if they have no share."""
        lost = self._lost
        return shares if lost is None else shares.masked_fill(self._select(classes, lost, rows), NEGATIVE_INFINITY)

    # ---- weights, masses and shares ---------------------------------------------------------------------------------

    @cached_property
    def log_weights(self) -> Tensor:
        weights = super().log_weights
        return weights + self._log_factor_at(self.column_classes).to(weights.dtype)

    def weights_at(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        weights = super().weights_at(tokens, rows)
        return weights + self._log_factor_at(self.classes(tokens, rows), rows).to(weights.dtype)

    @cached_property
    def class_mass(self) -> ClassWeights:
        factors, of_table = self._log_factors, self.table.log_mass
        if self.places is None:
            return ClassWeights(of_table.index_add(1, self._factored, factors.to(of_table.dtype)), self.num_rows)
        changed = self.pick(of_table.index_select(1, self._factored)) + factors.to(of_table.dtype)
        own_weights = OwnClassWeights(self._factored, changed, self.num_below)
        return ClassWeights(self.pick_runs(of_table), self.num_rows, own_weights=own_weights)

    def mass_at(self, classes: Tensor, rows: Tensor | None = None) -> Tensor:
        mass = super().mass_at(classes, rows)
        return mass + self._log_factor_at(classes, rows).to(mass.dtype)

    def mass_without(self, words: Tensor, taken: Tensor) -> Tensor:
        rest, rows = super().mass_without(words, taken), row_numbers(words).flatten()
        classes = self.classes(words.flatten(), rows).view_as(words)
        return rest + self._log_factor_at(classes).to(rest.dtype)

    def locate(self, tokens: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        classes, shares = super().locate(tokens, rows)
        return classes, self._lose(shares, classes, rows)

    @cached_property
    def log_shares(self) -> Tensor:
        shares = super().log_shares
        return self._lose(shares, self.column_classes) if self.source.strict else shares

    # ---- the best words (search) ------------------------------------------------------------------------------------

    @cached_property
    def best_share(self) -> Tensor:
        best, lost = super().best_share, self._lost
        if lost is None:
            return best
        best = broadcast_groups(best, self.num_rows)
        out = lost[:, -1:].expand_as(best).index_copy(1, self._factored, lost[:, :-1])
        return best.masked_fill(out, NEGATIVE_INFINITY)

    def best(self, classes: Tensor, k: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        shares, words = super().best(classes, k, rows)
        shares = self._lose(shares, classes.unsqueeze(1).expand_as(shares), rows)
        return shares, words.masked_fill(shares.isneginf(), 0)


class CountedSlots(EvidenceMixture):
    """b'(K, x) over the slots of a batch. A state has the sentence, the remaining quotas, and the state below."""

    source: QuotaSlots
    view_type = CountedView

    def __init__(self, base: BoundBackground, source: QuotaSlots) -> None:
        super().__init__(base, source)
        self.is_context_independent = False
        if source.strict:
            self.most_steps = max(self.most_steps, source.longest + 1)
        if int((self.class_of == self.class_of[END]).sum()) > 1:
            raise ValueError("</s> must be alone in its class")

    def steps_to_end(self, states: States) -> Tensor:
        return torch.maximum(super().steps_to_end(states), self.missing(states) + 1)

    def missing(self, states: States) -> Tensor:
        """Return the number of tokens that are still required: (N,)."""
        return (self.left(states) * self.source.groups.must[self.contexts_of(states)]).sum(1).long()

    def left(self, states: States) -> Tensor:
        """Return the remaining quota of each group: (N, G)."""
        return self.columns_of(states)[:, 1:]

    def _start_columns(self, n: int) -> Tensor:
        return torch.cat([super()._start_columns(n), self.source.most[:n]], dim=1)

    def _columns_after(self, columns: Tensor, tokens: Tensor) -> Tensor:
        groups, sentence, left = self.source.groups, columns[:, 0], columns[:, 1:]
        written = groups.strings[sentence] == tokens.unsqueeze(1)  # shape: (N, J)
        is_member = (groups.member[sentence] & written.unsqueeze(2)).any(1) & (left > 0)
        first = is_member & (is_member.cumsum(1) == 1)  # shape: (N, G)
        return torch.cat([columns[:, :1], left - first.to(left.dtype)], dim=1)

    def _columns_per_position(self, previous: Tensor) -> Tensor:
        columns = [self._start_columns(len(previous))]
        for tokens in previous[:, 1:].unbind(1):
            columns.append(self._columns_after(columns[-1], tokens))
        return torch.stack(columns, dim=1)
