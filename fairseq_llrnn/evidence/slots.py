"""The slots of a batch of source sentences, their rows in the output layer, and targets with slots as tokens.

Sizes: B sentences, L length of a source or target, J largest number of slots of a sentence (at least one, so that a
model's weights for slots are in every step), R different feature rows, P pairs of a slot and a position, E encoder
width, H hidden width, M words of the longest slot.

A slot is a string, with feature rows and source positions. Evidence that occurs twice is one slot with two positions.
Sentences with fewer slots are padded with `NO_WORD`.

A slot has one token and one class, even if the dictionary has several pieces for its string. So a string has its whole
probability in one step, and training must do the same (`merged_target`). A run of whole words that spells a slot's
string becomes the slot's token. If several slots match, the longest wins. The sentence
is read from left to right, in time O(L · M).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import View
from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, row_numbers
from fairseq_llrnn.evidence.evidence_table import EvidenceTable, Offer, WordSpans
from fairseq_llrnn.evidence.group_slots import groups_of, requested_groups, sentence_slots
from fairseq_llrnn.features.dictionary import SHIFT, plain
from fairseq_llrnn.output.class_source import ClassSource, Head, SentenceClasses
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.output.context_source import NO_WORD
from fairseq_llrnn.output.feature_weights import at_least_float32, sparse_product

if TYPE_CHECKING:
    from fairseq_llrnn.output.records import Batch, RowPair


LOG_UNK_KEEPS = -6.907755  # log of a thousandth
WithoutFactors = Callable[[View], View]  # of the background below -> the same without factors (translation_slots.py)


class Slots(NamedTuple):
    """Tensors on the device of the source. G is 0 if no sentence requires groups (group_slots.py)."""

    words: Tensor  # (B, J) target ids, padded with NO_WORD
    unknown: Tensor  # (B, J) bool, words without an input row in a network
    input_ids: Tensor  # (B, J) target ids that a network reads instead
    names_unknown: Tensor  # (B, J) bool, a string that no dictionary has
    log_part: Tensor  # (B, J) log of each slot's part of ε; −inf for padding
    sizes: Tensor  # (B,) number of slots
    times: Tensor  # (B, J) number of source words that offer each; 0 for strings of groups and translations
    row: Tensor  # (B, J) indices of feature rows, from 0 to R − 1
    row_starts: Tensor  # (R + 1,) offsets of the feature rows in …
    features: Tensor  # (entries,)
    values: Tensor  # (entries,) float32
    place_slot: Tensor  # (P,) index of the slot, sentence · J + slot
    place: Tensor  # (P,) its source position, from 0 to L − 1
    place_weight: Tensor  # (P,) float32 above 0, its weight among the positions of its slot
    member: Tensor  # (B, J, G) bool, slots that are strings of a required group
    most: Tensor  # (B, G) quotas of the groups; 0 for padding
    must: Tensor  # (B, G) bool, strict groups
    spelling_mask: Tensor  # (B, J) bool, slots that spell a string of a group with another token

    @property
    def exist(self) -> Tensor:
        """(B, J) bool"""
        return self.words != NO_WORD

    def mean_over_places(self, states: Tensor) -> Tensor:
        """Return the mean source state over the positions of each slot: (B, L, E) -> (B, J, E), zero for padding."""
        batch, length, _ = states.shape
        weights = self.place_weight.new_zeros(self.words.numel() * length)
        weights = weights.index_add(0, self.place_slot * length + self.place, self.place_weight)
        weights = weights.view(batch, -1, length)  # shape: (B, J, L)
        shares = weights / weights.sum(2, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
        return shares.to(states.dtype) @ states

    def compose(self, weight: Tensor) -> Tensor:
        """Return Φ W of the slots: (F, H) -> (B, J, H), with gradients to `weight`."""
        return sparse_product(self.features, weight, self.row_starts, self.values)[self.row]


class EvidenceSlots(SentenceClasses):
    """The slots of a batch as context classes."""

    def __init__(self, slots: Slots, unk: int, weight: float, whole: WithoutFactors | None = None) -> None:
        """unk: alone in its class. weight: ε.

        Args:
            whole: if the background below has factors for words that no slot of the sentence offers.
        """
        added = math.log(weight) + slots.log_part  # shape: (B, J)
        unk_keeps = torch.where(slots.names_unknown.any(1), LOG_UNK_KEEPS, 0.0)  # shape: (B,)
        super().__init__(slots.words, unk, added, unk_keeps, slots.unknown)
        self.slots, self.whole = slots, whole

    def log_weights_below(self, below: View, contexts: Tensor, words: Tensor) -> Tensor | None:
        if self.whole is None:
            return None
        pairs = words.flatten(), row_numbers(words).flatten()
        reduced, weights = (view.weights_at(*pairs).view(words.shape) for view in (below, self.whole(below)))
        is_offered = ~self.slots.log_part[contexts].isneginf()  # translations have no part, and no evidence
        return torch.where(is_offered, weights, reduced)

    def input_id_of(self, contexts: Tensor) -> Tensor:
        return self.slots.input_ids[contexts]


class EvidenceMixture(ContextClasses):
    """b(C; x) of a batch (translation_slots.py). A state has the index of its sentence, then the state of b₁."""

    source: EvidenceSlots

    @property
    def slots(self) -> Slots:
        """The slots of the batch."""
        return self.source.slots


def kept_offers(table: EvidenceTable, sources: np.ndarray) -> list[list[tuple[Offer, list[list[int]]]]]:
    """Return the evidence of each of the sentences (B, L), padded on any side, with the positions of the words that
    offer it.

    A sentence keeps at most `table.max_slots` strings, by kind in the order of KINDS, then by position.
    `table.left_out` counts the others. A string that several words offer has the first of their kinds, and is unknown
    if one of them is.
    """
    merged: list[dict[int, tuple[Offer, list[list[int]]]]] = [{} for _ in range(len(sources))]
    for sentence, positions, offers in table.offered(sources):
        for offer in offers:
            earlier = merged[sentence].get(offer.word)
            if earlier is None:
                merged[sentence][offer.word] = offer, [positions]
            else:
                first = min(earlier[0], offer, key=lambda offer: offer.rank)
                unknown = earlier[0].unknown or offer.unknown
                names_unknown = earlier[0].names_unknown or offer.names_unknown
                first = replace(first, unknown=unknown, names_unknown=names_unknown)
                merged[sentence][offer.word] = first, [*earlier[1], positions]
    kept = [sorted(row.values(), key=lambda slot: (slot[0].rank, slot[1][0]))[: table.max_slots] for row in merged]
    for sentence, (row, rest) in enumerate(zip(merged, kept, strict=True)):
        if len(row) > len(rest):
            table.left_out.note(sources[sentence], len(row) - len(rest), table.max_slots)
    return kept


def slots_of(table: EvidenceTable, source: Tensor) -> Slots:
    """Return the slots of the sentences `source` (B, L), padded on any side: `kept_offers`, and required groups."""
    marked = source.cpu().numpy()
    kept, requested = kept_offers(table, plain(marked)), requested_groups(table.groups, marked)
    slots = [sentence_slots(offers, groups, table.target) for offers, groups in zip(kept, requested, strict=True)]
    width, flat = max(1, *map(len, slots)), [slot for sentence in slots for slot in sentence]
    index = [b * width + j for b, sentence in enumerate(slots) for j in range(len(sentence))]  # in the batch
    numbers: dict[int, int] = {}  # feature row of the table -> of the batch
    row = [numbers.setdefault(slot.row, len(numbers)) for slot in flat]
    rows = [table.rows[number] for number in numbers] or [((), ())]
    pairs = [(number, place) for number, slot in zip(index, flat, strict=True) for place in slot.places]

    def tensor(values: Any, dtype: torch.dtype = torch.long) -> Tensor:
        return torch.tensor(values, dtype=dtype, device=source.device)

    def padded(values: Sequence[Any], none: Any, dtype: torch.dtype = torch.long) -> Tensor:
        filled = torch.full((len(slots) * width,), none, dtype=dtype)
        filled[index] = torch.tensor(values, dtype=dtype)
        return filled.view(len(slots), width).to(source.device)

    return Slots(
        words=padded([slot.word for slot in flat], NO_WORD),
        unknown=padded([slot.unknown for slot in flat], False, torch.bool),
        input_ids=padded([slot.input_id for slot in flat], NO_WORD),
        names_unknown=padded([slot.names_unknown for slot in flat], False, torch.bool),
        log_part=padded([slot.log_part for slot in flat], NEGATIVE_INFINITY, torch.float32),
        sizes=tensor([len(sentence) for sentence in slots]),
        times=padded([slot.times for slot in flat], 0),
        row=padded(row, 0),
        row_starts=tensor([0, *(len(features) for features, _ in rows)]).cumsum(0),
        features=tensor([feature for features, _ in rows for feature in features]),
        values=tensor([value for _, values in rows for value in values], torch.float32),
        place_slot=tensor([slot for slot, _ in pairs]),
        place=tensor([place for _, place in pairs]),
        place_weight=torch.ones(len(pairs), device=source.device),
        **{name: torch.from_numpy(array).to(source.device) for name, array in groups_of(slots, requested).items()},
    )


def packed(slots: Slots) -> list[Tensor]:
    """Return slots for a batch of fairseq, which moves the tensors of lists, and casts float32 ones with --fp16."""
    return [values.double() if values.is_floating_point() else values for values in slots]


def unpacked(values: Iterable[Tensor]) -> Slots:
    """Return the slots that were `packed`."""
    return Slots(*(value.float() if value.is_floating_point() else value for value in values))


class SlotRows(ClassSource):
    """Rows of the output layer for slots: Φ W of their features, plus P s of the encoder's states at their positions.

    P s_j are real-valued features of slot j given C: they distinguish two slots with equal features (two unknown
    names).
    """

    name, kind = "slot_rows", EvidenceSlots
    needs_source_states = True

    def __init__(self, encoder_size: int, hidden_size: int) -> None:
        super().__init__()
        # zeros: at first, only features and the background distinguish slots
        self.pointer = nn.Parameter(torch.zeros(hidden_size, encoder_size))

    def forward(self, source: EvidenceSlots, weight: Tensor, bias: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """Return rows (B, J, H') and biases (B, J), as in LogLinearOutput.composed.

        Args:
            weight: (F, H'). bias: (F,) of LogLinearOutput. states: of the encoder, (B, L, E).
        """
        slots = source.slots
        content = slots.mean_over_places(states.to(weight.dtype) @ self.pointer.T)  # states are fewer than means
        rows = slots.compose(weight)
        if rows.size(2) > content.size(2):
            content = functional.pad(content, (0, rows.size(2) - content.size(2)))
        return rows + content, slots.compose(at_least_float32(bias).unsqueeze(1)).squeeze(2)

    def rows(self, head: Head, weight: Tensor, layer: ContextClasses | None, source_states: Tensor | None) -> RowPair:
        assert layer is not None and isinstance(layer.source, EvidenceSlots) and source_states is not None
        return self(layer.source, weight, head.output.bias, source_states)

    def explained(self, batch: Batch, arguments: dict[str, Any]) -> dict[str, Any]:
        rows = batch.rows.of_source[self.name]
        return {} if rows is None else {"slot_rows": rows[0][0]}  # shape: (J, H')


def merged(sentence: np.ndarray, slots: Iterable[int], words: WordSpans) -> np.ndarray:
    """Replace the words of slots in a sentence (L,) by the slots: (L',), L' ≤ L.

    Args:
        slots: their tokens. words: of the sentence's language.
    """
    slot_of: dict[tuple[str | None, ...], int] = {words.words_of(slot): slot for slot in slots}
    longest = max(map(len, slot_of), default=0)
    if not longest:
        return sentence
    spans = words.spans(sentence)
    spelled = [words.word(sentence[begin:end]) for begin, end in spans]
    tokens: list[int] = []
    at = 0
    while at < len(spans):
        length = min(longest, len(spans) - at)
        while length and tuple(spelled[at : at + length]) not in slot_of:
            length -= 1
        if length:
            tokens.append(slot_of[tuple(spelled[at : at + length])])
        else:
            tokens += sentence[slice(*spans[at])].tolist()
        at += max(length, 1)
    return np.array(tokens, dtype=sentence.dtype)


def merged_target(table: EvidenceTable, source: Tensor, target: Tensor) -> Tensor:
    """Replace words of a target (T,) by the slots of its source (L,), required groups included: (T',), T' ≤ T."""
    marked = source.cpu().numpy()[None]
    if table.target_words.convention is None and not (marked >> SHIFT).any():
        return target  # without pieces, only strings of groups have several tokens
    [offers], [requested] = kept_offers(table, plain(marked)), requested_groups(table.groups, marked)
    slots = [offer.word for offer, _ in offers] + [word for request in requested for word in request.group.words]
    return torch.from_numpy(merged(target.cpu().numpy(), slots, table.target_words)) if slots else target
