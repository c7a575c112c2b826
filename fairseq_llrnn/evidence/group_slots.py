"""The groups that a batch of sentences requires (evidence_table.py): quotas, source positions, weights of their slots.

Sizes: B sentences, L source length, J slots, G largest number of groups of a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.evidence.evidence_table import Group, GroupTable, Offer
from fairseq_llrnn.features.dictionary import SHIFT, UNK, OpenWords


@dataclass(frozen=True)
class RequestedGroup:
    """A group that a sentence requires."""

    group: Group
    most: int  # its quota
    places: tuple[int, ...]  # source positions of its encoder states


@dataclass(frozen=True)
class SentenceSlot:
    """A slot of one sentence: a string that its source offers, a string of a required group, or both."""

    word: int
    row: int
    unknown: bool  # a word without an input row in a network
    input_id: int  # the target id that the network reads instead
    names_unknown: bool  # a string that no dictionary has
    places: tuple[int, ...]
    log_part: float  # log of its part of the weight ε
    times: int = 0  # number of source words that offer it as evidence
    groups: tuple[int, ...] = ()  # indices of the sentence's groups; () for evidence
    is_spelling: bool = False  # a piece or word that spells (part of) a group's string that has another token


def requested_groups(table: GroupTable, sources: np.ndarray) -> list[list[RequestedGroup]]:
    """Return the groups that each of the sentences (B, L) requires: strict ones and those with few strings first."""
    matches: list[dict[int, tuple[int, list[int]]]] = [{} for _ in range(len(sources))]
    for sentence, place in zip(*(sources >> SHIFT).nonzero(), strict=True):
        for use in table.uses(int(sources[sentence, place])):
            most, places = matches[sentence].setdefault(use.group, (0, []))
            matches[sentence][use.group] = most + use.counts, [*places, int(place)] if use.is_place else places
    rows = [
        [RequestedGroup(table.groups[g], most, tuple(p)) for g, (most, p) in row.items() if most] for row in matches
    ]
    return [sorted(row, key=lambda request: (not request.group.must, len(request.group.words))) for row in rows]


def sentence_slots(
    kept: Sequence[tuple[Offer, Sequence[Sequence[int]]]], requested: Sequence[RequestedGroup], target: OpenWords
) -> list[SentenceSlot]:
    """Return the slots of a sentence: its evidence shares ε, and the strings of each group share ε.

    Args:
        kept: its evidence, with the positions of each word that offers it. requested: its groups.
    """
    unk = target.word_index[UNK]
    grouped: dict[int, list[int]] = {}  # target id -> groups
    for number, request in enumerate(requested):
        for word in request.group.words:
            grouped.setdefault(word, []).append(number)
    part = -math.log(max(1, len(kept)))
    at: Mapping[int, tuple[int, ...]] = {offer.word: tuple(p for word in words for p in word) for offer, words in kept}
    slots = [
        SentenceSlot(
            o.word, o.row, o.unknown, unk if o.unknown else o.word, o.names_unknown, at[o.word], part, len(words)
        )
        for o, words in kept
        if o.word not in grouped
    ]
    slot_of = {
        word: (row, input_id)
        for request in requested
        for word, row, input_id in zip(request.group.words, request.group.rows, request.group.input_ids, strict=True)
    }
    for word, groups in grouped.items():
        places = sorted({*at.get(word, ()), *(place for g in groups for place in requested[g].places)})
        log_weight = math.log(math.fsum(1 / len(requested[g].group.words) for g in groups))
        row, input_id = slot_of[word]
        unknown = word >= target.num_words
        slots.append(SentenceSlot(word, row, unknown, input_id, False, tuple(places), log_weight, 0, tuple(groups)))
    pairs = (pair for each in requested for pair in each.group.spellings)
    spellings = {word: row for word, row in pairs if word not in at and word not in grouped}
    for word, row in spellings.items():
        slots.append(SentenceSlot(word, row, False, word, False, (), -math.inf, is_spelling=True))
    return slots


def groups_of(
    slots: Sequence[Sequence[SentenceSlot]], requested: Sequence[Sequence[RequestedGroup]]
) -> dict[str, np.ndarray]:
    """Return the groups of a batch, as in `Slots` (slots.py)."""
    num_groups, width = max(map(len, requested)), max(1, *map(len, slots))
    member = np.zeros((len(slots), width, num_groups), dtype=bool)
    most, must = np.zeros((len(slots), num_groups), dtype=np.int64), np.zeros((len(slots), num_groups), dtype=bool)
    spelling_mask = np.zeros((len(slots), width), dtype=bool)
    for sentence, (of_slots, of_groups) in enumerate(zip(slots, requested, strict=True)):
        for j, slot in enumerate(of_slots):
            member[sentence, j, list(slot.groups)] = True
            spelling_mask[sentence, j] = slot.is_spelling
        for g, request in enumerate(of_groups):
            most[sentence, g], must[sentence, g] = request.most, request.group.must
    return {"member": member, "most": most, "must": must, "spelling_mask": spelling_mask}
