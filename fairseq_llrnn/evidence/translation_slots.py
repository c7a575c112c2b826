"""Slots for translations of source words, and the background of sentences with slots of any kind.

Sizes: B sentences, L source length, J slots, V words, S signatures, E pairs of a slot and a position.

`TranslationSlots` are words of the dictionary, each with the positions that it translates. Words without an indicator
feature (`TOPFORM`) share their features, so that only the background distinguishes the translations of two source
words. As a slot, such a word is alone in its class, has its features and one more, and P s of the positions that it
translates (evidence/slots.py). The network finds the word by attention to the source, and chooses its form by features.
Some words with an indicator feature are slots, too. They are far more frequent, so that P is learned from them. And
rare words do not compete with words that lack P s.

Such a slot separates a word and adds no mass, since its mass is in the lexical translations. Each sentence offers its
most probable translations, by their part e of the background (backgrounds/lexical_background.py). Its s is the mean
of its positions, weighted by their parts. In training e is leave-one-out, and translations from the current sentence
alone are not offered. Otherwise a word that occurs once would always be a slot in training, and never later. A warm-up
of the lexical background does not hide slots.

`EvidenceBackground` adds slots for numbers, names and unknown words of the source. With b₁ the background without
evidence and ε the total weight of a sentence's slots (relative to weight one of all words),

    b(C; x)  =  b₁(C; x)  +  ε/J · [x is the string of a slot]            (b₁ = 0 outside the vocabulary)

Words of a kind may have f times their weight if no slot offers them (`EvidenceRules.unsupported`). Then b₁ is the
product of the background without evidence with the factors f, in every context, and nothing is scaled to make up for
it. b₁ of a slot's string has the factor 1. So every f > 0 has the limit f = 0, which forbids the words without a slot.

Slots are context classes (output/context_classes.py). Slot j is class S + j of its sentence and has one member, its
string. So every string has one class and one score (paper, §4: condition-based priming). If neither dictionary
has a slot's string, <unk> keeps only a thousandth of its weight, because the string names the unknown word better.

Tokens are ids of the open target vocabulary: the dictionary's below V, strings above. A string that no slot of the
sentence offers is <unk>. Results about all words have V + J *columns*: V words, then the slots' strings outside the
vocabulary (a slot's string inside it has its word's column).
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.backgrounds.algebra import BoundCombined, BoundProduct, Product
from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground
from fairseq_llrnn.backgrounds.background import Background, BoundBackground, StaticBackground, View
from fairseq_llrnn.backgrounds.by_source import BySource, ReadySlots
from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, expanded
from fairseq_llrnn.backgrounds.lexical_background import LexicalBackground
from fairseq_llrnn.backgrounds.mixture import BoundMixture, Mixture, product
from fairseq_llrnn.backgrounds.states import JointStates, States
from fairseq_llrnn.evidence.counted_slots import CountedSlots, QuotaSlots, quotas_of
from fairseq_llrnn.evidence.evidence_table import EvidenceTable
from fairseq_llrnn.evidence.rules import FEATURES
from fairseq_llrnn.evidence.slots import EvidenceMixture, EvidenceSlots, Slots, WithoutFactors, slots_of, unpacked
from fairseq_llrnn.features.dictionary import plain
from fairseq_llrnn.features.feature_table import TOP_FORM, Signatures
from fairseq_llrnn.output.context_source import NO_WORD

# translation slots of a sentence
MOST_RARE = 96  # words without an indicator feature
MOST_COMMON = 32  # others


def without_identity(output: Signatures) -> np.ndarray:
    """Return whether each signature has no indicator feature of a word: (S,) bool."""
    features = output.features
    identities = [i for i, name in enumerate(features.names) if name.startswith(f"{TOP_FORM}:")]
    rows = np.repeat(np.arange(output.num_classes), np.diff(features.offsets))
    mask = np.ones(output.num_classes, dtype=bool)
    mask[rows[np.isin(features.indices, identities)]] = False
    return mask


class TranslationSlots(nn.Module):
    """The slots of a batch's lexical translations. Its buffers are in no checkpoint."""

    is_common: Tensor  # (V,) bool, has an indicator feature
    most: Tensor  # (2,) slots of a sentence: words without an indicator feature, with one
    class_of: Tensor  # (V,)
    row_starts: Tensor  # (S + 1,)
    features: Tensor  # (entries,)
    values: Tensor  # (entries,)

    def __init__(self, output: Signatures, most: tuple[int, int] = (MOST_RARE, MOST_COMMON)) -> None:
        """output: φ, with the feature of these slots. most: slots of a sentence, without an indicator feature
        and with one.
        """
        super().__init__()
        self.slot_feature = output.features.index[FEATURES["translations"]]
        for name, array in (
            ("is_common", ~without_identity(output)[output.class_of]),
            ("most", np.array(most)),
            ("class_of", output.class_of),
            ("row_starts", output.features.offsets),
            ("features", output.features.indices.astype(np.int64)),
            ("values", output.features.values.astype(np.float32)),
        ):
            self.register_buffer(name, torch.from_numpy(array.copy()), persistent=False)

    def added(self, slots: Slots, lexicon: LexicalBackground, source: Tensor, leave_out: Tensor | None) -> Slots:
        """Append slots of translations: words without an indicator feature first, then by probability.

        Args:
            source: (B, L), ids of the dictionary. leave_out: (B, T) the text, as in `LexicalBackground.bind`.
        """
        words = len(self.class_of)
        keys, places, weights = lexicon.by_source_place(source, leave_out)
        taken = slots.words + words * torch.arange(len(source), device=source.device).unsqueeze(1)
        kept = (weights > 0) & ~torch.isin(keys, taken[slots.exist & (slots.words < words)])
        keys, places, weights = keys[kept], places[kept], weights[kept]
        distinct, index = keys.unique(return_inverse=True)
        total = weights.new_zeros(len(distinct)).index_add(0, index, weights)
        group = distinct // words * 2 + self.is_common[distinct % words]  # by sentence
        order = total.argsort(descending=True, stable=True)
        order = order[group[order].argsort(stable=True)]
        order = order[_numbers(group[order]) < self.most[group[order] % 2]]
        sentence = distinct[order] // words
        slot_of = torch.full_like(distinct, -1)
        slot_of[order] = torch.arange(len(order), device=source.device)
        slot = slot_of[index]
        pairs = slot * source.size(1) + places
        pairs, at = pairs[slot >= 0].unique(return_inverse=True)  # lemmas of a position may share a form
        weights = weights.new_zeros(len(pairs)).index_add(0, at, weights[slot >= 0])
        slot, places = pairs // source.size(1), pairs % source.size(1)
        return self._joined(slots, sentence, distinct[order] % words, slot, places, weights)

    def _joined(
        self, slots: Slots, sentence: Tensor, word: Tensor, slot: Tensor, place: Tensor, weight: Tensor
    ) -> Slots:
        """Append slots with these sentences, ascending, and words (M,).

        Args:
            slot, place, weight: pairs of one of the M and a position in its sentence, (E,).
        """
        batch, before = slots.words.shape
        column = slots.sizes[sentence] + _numbers(sentence)
        width = max(before, int(column.max()) + 1) if len(column) else before
        at = sentence * width + column  # shape: (M,), ascending
        classes, row = self.class_of[word].unique(return_inverse=True)
        sizes = self.row_starts[classes + 1] - self.row_starts[classes]
        of_row, entry = expanded(self.row_starts[classes], sizes)
        features, values = self._with_slot_feature(sizes, of_row, entry)

        def placed(old: Tensor, none: int | float, new: Tensor | int | float | bool) -> Tensor:
            columns = old.new_full((batch, width), none)
            columns[:, :before] = old
            columns.view(-1)[at] = new.to(columns.dtype) if isinstance(new, Tensor) else columns.new_tensor(new)
            return columns

        return Slots(
            words=placed(slots.words, NO_WORD, word),
            unknown=placed(slots.unknown, False, False),
            input_ids=placed(slots.input_ids, NO_WORD, word),
            names_unknown=placed(slots.names_unknown, False, False),
            log_part=placed(slots.log_part, NEGATIVE_INFINITY, NEGATIVE_INFINITY),
            sizes=slots.sizes + torch.bincount(sentence, minlength=batch),
            times=placed(slots.times, 0, 0),
            row=placed(slots.row, 0, row + len(slots.row_starts) - 1),
            row_starts=torch.cat([slots.row_starts, slots.row_starts[-1] + (sizes + 1).cumsum(0)]),
            features=torch.cat([slots.features, features]),
            values=torch.cat([slots.values, values]),
            place_slot=torch.cat([slots.place_slot // before * width + slots.place_slot % before, at[slot]]),
            place=torch.cat([slots.place, place]),
            place_weight=torch.cat([slots.place_weight, weight.to(slots.place_weight.dtype)]),
            member=functional.pad(slots.member, (0, 0, 0, width - before)),
            most=slots.most,
            must=slots.must,
            spelling_mask=placed(slots.spelling_mask, False, False),
        )

    def _with_slot_feature(self, sizes: Tensor, of_row: Tensor, entry: Tensor) -> tuple[Tensor, Tensor]:
        """Return the entries of rows (`of_row` ascending), each row followed by the slots' own feature."""
        at = torch.arange(len(entry), device=entry.device) + of_row
        features = self.features.new_full((len(entry) + len(sizes),), self.slot_feature)
        values = self.values.new_ones(len(features))
        features[at], values[at] = self.features[entry], self.values[entry]
        return features, values


def _numbers(groups: Tensor) -> Tensor:
    """Return the number of earlier equal elements of each element of `groups`, ascending."""
    return torch.arange(len(groups), device=groups.device) - torch.searchsorted(groups, groups)


def with_factors(base: Background, factors: Tensor) -> Background:
    """Return the product of a new background with static factors of its words, (V,) from 0 to 1."""
    static = StaticBackground(base.class_of, base.num_classes, factors.log())
    if _is_reweighed(base):
        return product([base, static])
    for part in base.modules():
        if isinstance(part, AutomatonBackground):
            part.avoid(factors == 0)
    return Product([base, static])


def _is_reweighed(base: Background) -> bool:
    """Return whether a product with static weights is a copy of the background, with the same states and other weights.

    This is much faster than a product that lists words. A copy with parameters would have its own ones.
    """
    mixtures = [part for part in base.modules() if isinstance(part, Mixture)]
    has_parameters = any(True for _ in base.parameters()) or any(part.weighting != "fixed" for part in mixtures)
    return isinstance(base, (AutomatonBackground, Mixture)) and not has_parameters


def _first_part(view: View) -> View:
    assert isinstance(view.bound, BoundCombined)
    part, states = view.bound.of_parts(view.states)[0]
    return part.view(states, view.hidden)


def _with_states(whole: BoundBackground, view: View) -> View:
    return whole.view(_states_of(whole, view.bound, view.states), view.hidden)


def _states_of(whole: BoundBackground, base: BoundBackground, state: States) -> States:
    """Return the states of `whole`, given those of `base`, its `product` with static factors."""
    if isinstance(whole, BoundMixture):
        assert isinstance(base, BoundMixture)
        return JointStates([_states_of(*of_part) for of_part in zip(whole.parts, base.parts, state.parts, strict=True)])
    if not isinstance(whole, BoundProduct):
        return state.parts[0] if isinstance(base, BoundProduct) else state
    # factors multiply one of the other parts, or come last
    others = iter(base.of_parts(state) if isinstance(base, BoundProduct) else [(base, state)])
    static = whole.class_of.new_zeros(len(state), 0)
    return JointStates([static if type(p) is StaticBackground else _states_of(p, *next(others)) for p in whole.parts])


class EvidenceBackground(BySource):
    """b(C; x). Without a source it is b₁; `bind(source)` returns the background of a batch of source sentences."""

    def __init__(
        self, base: Background, table: EvidenceTable, unk: int, source_unk: int,
        translations: TranslationSlots | None = None, factors: Tensor | None = None,
    ) -> None:  # fmt: skip
        """base: b₁. unk: of the target, alone in its class. source_unk: of the source.

        Args:
            translations: slots of a lexical background that is `base` or a part of it.
            factors: f of each word that no slot offers, (V,) from 0 to 1. None: 1.
        """
        super().__init__(base if factors is None else with_factors(base, factors))
        self.whole = base if factors is not None and _is_reweighed(base) else None
        if int((base.class_of == base.class_of[unk]).sum()) > 1:
            raise ValueError("<unk> must be alone in its class")
        self.table = table
        self.unk, self.source_unk = unk, source_unk
        self.translations, self.has_factors = translations, factors is not None

    def bind(
        self, source: Tensor | None = None, text: Tensor | None = None, slots: ReadySlots = None
    ) -> BoundBackground:
        if source is None:
            return self.base.bind(text=text)
        tokens = plain(source)
        base, found = self.base.bind(tokens, text), slots_of(self.table, source) if slots is None else unpacked(slots)
        if self.translations is not None:
            readable = tokens.masked_fill(tokens >= self.table.source.num_words, self.source_unk)
            found = self.translations.added(found, self._lexicon, readable, text)
        quotas, weight = quotas_of(found, self.table.once), self.table.rules.weight
        whole: WithoutFactors | None = _first_part if self.has_factors else None
        if self.whole is not None:
            whole = partial(_with_states, self.whole.bind(tokens, text))
        if quotas is None:
            return EvidenceMixture(base, EvidenceSlots(found, self.unk, weight, whole))
        return CountedSlots(base, QuotaSlots(found, self.unk, weight, quotas, whole))

    @property
    def needs_length_limit(self) -> bool:
        """As in the base class, also true if terms are required, or a grammar may forbid some."""
        return super().needs_length_limit or self.table.groups.required or self.base.bind().has_dead_ends

    @property
    def _lexicon(self) -> LexicalBackground:
        return next(part for part in self.base.modules() if isinstance(part, LexicalBackground))
