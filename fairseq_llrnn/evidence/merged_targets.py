"""A target sentence in which every word, or every few words, that a slot stands for is the slot's one token.

A slot has one token and one class (evidence/slots.py), however many pieces the dictionary has for its string. So a
string has its whole probability in one step, and training must see it so: a run of tokens that spells a slot's string
from the beginning of a word to the end of one is that token. Where several slots fit, the longest wins; the sentence is
read from left to right.

Sizes: L tokens of a sentence, M words of the longest slot. Time O(L · M).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.evidence.group_slots import asked_groups
from fairseq_llrnn.evidence.slots import kept_offers
from fairseq_llrnn.evidence.table import EvidenceTable
from fairseq_llrnn.evidence.word_spans import WordSpans
from fairseq_llrnn.features.dictionary import SHIFT, plain


def merged(sentence: np.ndarray, slots: Iterable[int], words: WordSpans) -> np.ndarray:
    """The sentence (L,) with slots in the place of what they spell: (L',), L' ≤ L.

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
        many = min(longest, len(spans) - at)
        while many and tuple(spelled[at : at + many]) not in slot_of:
            many -= 1
        if many:
            tokens.append(slot_of[tuple(spelled[at : at + many])])
        else:
            tokens += sentence[slice(*spans[at])].tolist()
        at += max(many, 1)
    return np.array(tokens, dtype=sentence.dtype)


def merged_target(table: EvidenceTable, source: Tensor, target: Tensor) -> Tensor:
    """The target (T,) with the slots of its source (L,), those of groups that it asks for included: (T',), T' ≤ T."""
    marked = source.cpu().numpy()[None]
    if table.target_words.convention is None and not (marked >> SHIFT).any():
        return target  # over words, only strings of groups are several tokens
    [offers], [asked] = kept_offers(table, plain(marked)), asked_groups(table.groups, marked)
    slots = [offer.word for offer, _ in offers] + [word for one in asked for word in one.group.words]
    return torch.from_numpy(merged(target.cpu().numpy(), slots, table.target_words)) if slots else target
