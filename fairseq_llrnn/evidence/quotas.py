"""How often the slots of a sentence are to be said, and how often a hypothesis has said them.

Sizes: B sentences, J slots, G groups of the sentence that has most of them, N hypotheses.

Slots are in groups; a group has a quota. A token that is a slot's string counts for the first of its groups that has
room. Three kinds of groups:

    must      exactly as often as the quota says: the slots of a full group have no weight, and neither has </s> before
              all are full
    wanted    as `must`, but softly: a thousandth of the weight is left to the slots, a hundredth to </s>
    others    at most as often as the quota says, softly

Over pieces, a piece that spells a form of a term, whose token is another (evidence/piece_table.py), keeps a thousandth
of its weight, too.

What a hypothesis has said is one number: the counts of its sentence's groups side by side, as few bits each as the
quota needs, below the number of the sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.sparse_mass import NEGATIVE_INFINITY
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.slots import Slots
from fairseq_llrnn.output.context_sources import ContextClassSource

BITS = 40  # of the counts of a sentence
LOG_KEEPS = -6.907755  # log of a thousandth: what a slot keeps when it was said
# log of a hundredth: what </s> keeps while a slot is wanting; with less, a translation that never says it has no end
LOG_END_KEEPS = -4.605170


@dataclass(frozen=True)
class Quotas:
    """The groups of a batch."""

    member: Tensor  # (B, J, G) bool
    most: Tensor  # (B, G) how often; 0 where there is no group
    must: Tensor  # (B, G) bool
    wanted: Tensor  # (B, G) bool


def quotas_of(slots: Slots, once: bool) -> Quotas | None:
    """The terms of a batch, and, if each string of the evidence is to be said `once`, a group for each; None: nothing.

    A string of the evidence is said as often as it stands in the source; wanted where no dictionary has the word.
    """
    batch, many = slots.words.shape
    found = []
    if slots.terms is not None:
        none = torch.zeros_like(slots.terms.must)
        found.append(Quotas(slots.terms.member, slots.terms.most, slots.terms.must, none))
    if once:
        counted = (slots.times > 0).any(0)  # shape: (J,); translations, which are many, are not
        alone = torch.eye(many, dtype=torch.bool, device=slots.times.device)[:, counted].expand(batch, -1, -1)
        wanted = slots.names_unknown[:, counted]
        found.append(Quotas(alone, slots.times[:, counted], torch.zeros_like(wanted), wanted))
    if not any(bool((quotas.most > 0).any()) for quotas in found):
        return None
    each = zip(*((q.member.flatten(0, 1), q.most, q.must, q.wanted) for q in found), strict=True)
    member, most, must, wanted = (torch.cat(parts, dim=1) for parts in each)
    return Quotas(member.unflatten(0, (batch, many)), most, must, wanted)


class SaidSlots(ContextClassSource):
    """What hypotheses have said, as contexts; no words of its own leave their classes."""

    changes, width = True, 0

    def __init__(self, slots: Slots, quotas: Quotas) -> None:
        """A group that finds no room in BITS counts nothing: it comes behind those that do.

        Raises:
            DataError: one that must be said.
        """
        self.slot_words, self.rows = slots.words, len(slots.words)
        bits = torch.ceil(torch.log2(quotas.most.double() + 1)).long()  # shape: (B, G)
        ends = bits.cumsum(1)
        kept = (ends <= BITS) & (quotas.most > 0)
        crowded = (quotas.must & (quotas.most > 0) & ~kept).any(1)
        if bool(crowded.any()):
            asked = int((quotas.must & (quotas.most > 0)).sum(1).max())
            raise DataError(
                f"terms: expected at most {BITS} in a sentence, fewer where one is asked for several times, found "
                f"{asked}; split the sentence, or leave terms out"
            )
        self.most = quotas.most.masked_fill(~kept, 0)
        self.must, self.wanted = quotas.must & kept, quotas.wanted & kept
        self.member = quotas.member & kept.unsqueeze(1)
        self._shift = (ends - bits).masked_fill(~kept, 0)
        self._mask = ((1 << bits) - 1).masked_fill(~kept, 0)
        self.longest = int((self.most * self.must).sum(1).max()) if self.rows else 0  # tokens that a sentence must have
        # what the weight of a slot is multiplied by when all its groups are full, as a logarithm: (B, J)
        strict = (self.member & self.must.unsqueeze(1)).any(2)
        some = torch.where(strict, NEGATIVE_INFINITY, LOG_KEEPS)
        self._log_full = torch.where(self.member.any(2), some, 0.0)
        # … and in any case: a form that is another token is not to be written as a piece
        beside = torch.zeros_like(strict) if slots.terms is None else slots.terms.beside
        self._log_always = torch.where(beside, LOG_KEEPS, 0.0)

    def start(self, n: int) -> Tensor:
        return torch.arange(n, device=self.slot_words.device) << BITS

    def words(self, contexts: Tensor) -> Tensor:
        return contexts.unsqueeze(-1).expand(*contexts.shape, 0)

    def advance(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        sentence = contexts >> BITS
        said = self.slot_words[sentence] == tokens.unsqueeze(1)  # shape: (N, J)
        of = (self.member[sentence] & said.unsqueeze(2)).any(1) & self.room(contexts)
        first = of & (of.cumsum(1) == 1)
        return contexts + (first.long() << self._shift[sentence]).sum(1)

    def counts(self, contexts: Tensor) -> Tensor:
        """How often each group was said: (N,) -> (N, G)."""
        sentence = contexts >> BITS
        return (contexts.unsqueeze(1) >> self._shift[sentence]) & self._mask[sentence]

    def room(self, contexts: Tensor) -> Tensor:
        """Whether each group may be said once more: (N,) -> (N, G) bool."""
        return self.counts(contexts) < self.most[contexts >> BITS]

    def log_factors(self, contexts: Tensor) -> Tensor:
        """What the weight of each slot is multiplied by: (N,) -> (N, J)."""
        sentence = contexts >> BITS
        open_ = (self.member[sentence] & self.room(contexts).unsqueeze(1)).any(2)
        return self._log_full[sentence].masked_fill(open_, 0.0) + self._log_always[sentence]

    def log_end_factor(self, contexts: Tensor) -> Tensor:
        """What the weight of </s> is multiplied by: (N,) -> (N,)."""
        sentence, room = contexts >> BITS, self.room(contexts)
        wanted = torch.where((room & self.wanted[sentence]).any(1), LOG_END_KEEPS, 0.0)
        return wanted.masked_fill((room & self.must[sentence]).any(1), NEGATIVE_INFINITY)

    def missing(self, contexts: Tensor) -> Tensor:
        """How many tokens are still required: (N,) -> (N,)."""
        sentence = contexts >> BITS
        left = (self.most[sentence] - self.counts(contexts)) * self.must[sentence]
        return left.sum(1)

    def required(self, contexts: Tensor) -> Tensor:
        """Whether each slot is one of those tokens: (N,) -> (N, J) bool."""
        sentence = contexts >> BITS
        left = self.room(contexts) & self.must[sentence]
        return (self.member[sentence] & left.unsqueeze(1)).any(2)
