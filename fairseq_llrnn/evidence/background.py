"""The background of a sentence that offers evidence: slots for its numbers, names and unknown words.

Sizes: B sentences of a batch, V words, S signatures, J slots (evidence/slots.py). With b₁ the background without
evidence and ε the weight of all slots of a sentence together (where all words weigh one),

    b(C; x)  =  b₁(C; x)  +  ε/J · [x is the string of a slot]            (b₁ = 0 outside the vocabulary)

Slots are context classes (output/context_classes.py): slot j is class S + j of its sentence and has one member, its
string, so that every string has one class and one score (paper, §4: condition-based priming). Where a slot stands for
an unknown word of the source, <unk> keeps only a thousandth of its weight: the slot's string is the better name of what
is in no dictionary.

Tokens are ids of the open target vocabulary: below V the dictionary's, above it strings. A string that no slot of the
sentence offers is <unk>. Answers about all words have V + J *columns*: V words, then the slots' strings outside the
vocabulary (a slot's string inside it has its word's column).
"""

from __future__ import annotations

import copy

from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.by_source import BySource
from fairseq_llrnn.backgrounds.lexical import LexicalBackground
from fairseq_llrnn.evidence.counted_slots import CountedSlots, QuotaSlots, quotas_of
from fairseq_llrnn.evidence.slots import EvidenceMixture, EvidenceSlots, slots_of
from fairseq_llrnn.evidence.table import EvidenceTable
from fairseq_llrnn.evidence.translation_slots import TranslationSlots
from fairseq_llrnn.features.dictionary import plain


class EvidenceBackground(BySource):
    """b(C; x). By itself it is b₁; `given(source)` is the background of a batch of source sentences."""

    def __init__(
        self, base: Background, table: EvidenceTable, unk: int, source_unk: int,
        translations: TranslationSlots | None = None,
    ) -> None:  # fmt: skip
        """base: b₁. unk: of the target, alone in its class. source_unk: of the source.

        translations: slots that a lexical background, `base` or a part of it, offers.
        """
        super().__init__(base)
        if int((base.class_of == base.class_of[unk]).sum()) > 1:
            raise ValueError("<unk> must be alone in its class")
        self.table = table
        self.unk, self.source_unk = unk, source_unk
        self.translations = translations

    def given(self, source: Tensor, leave_out: Tensor | None = None) -> Background:
        tokens = plain(source)
        readable = tokens.masked_fill(tokens >= self.table.source.num_words, self.source_unk)
        base, slots = self.base.given(tokens, leave_out), slots_of(self.table, source)
        if self.translations is not None:
            slots = self.translations.added(slots, self._lexicon, readable, leave_out)
        quotas, weight = quotas_of(slots, self.table.once), self.table.rules.weight
        if quotas is None:
            return EvidenceMixture(base, EvidenceSlots(slots, self.unk, weight))
        return CountedSlots(base, QuotaSlots(slots, self.unk, weight, quotas))

    @property
    def _lexicon(self) -> LexicalBackground:
        return next(part for part in self.base.modules() if isinstance(part, LexicalBackground))

    def within(self, remaining: int) -> Background:
        """Another one where strings must be said: without a source it says only that there may be a limit."""
        limited = super().within(remaining)
        return copy.copy(self) if limited is self and self.table.groups.required else limited
