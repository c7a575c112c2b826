"""The source of a translation in explanations: slots, attention and lexical translations.

Sizes: T positions of the translation, L positions of the source with its </s>, S signatures, J slots, F features, H
hidden width. Probabilities are natural logarithms. The score of slot j is a(K)ᵀφ(j) + h·P s_j (evidence/slots.py): the
terms of its features, and the term of the encoder's state at its positions. Source tokens are identified by their
position, from 0, so that repeated words are distinct.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, BoundBackground
from fairseq_llrnn.evidence.rules import features
from fairseq_llrnn.evidence.slots import EvidenceMixture
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output.normalisers import LogLinearOutput

PLACE = "Evidence:Place"  # h·P s_j, in the list of a slot's features


@dataclass(frozen=True)
class OfferedSlot:
    """A string of the source that the translation may have to contain, at one position of the translation."""

    string: str
    kind: str  # one of evidence.rules.KINDS
    places: tuple[int, ...]  # in the source, from 0
    log_background: float  # as in Explanation
    log_prob: float


def worth_naming(offered: Sequence[OfferedSlot], top: int) -> tuple[OfferedSlot, ...]:
    """Return all evidence, and the `top` most probable translations, which are many."""
    translations = [slot for slot in offered if slot.kind == "translations"]
    best = sorted(translations, key=lambda slot: -slot.log_prob)[:top]
    return (*(slot for slot in offered if slot.kind != "translations"), *best)


class SlotTerms:
    """The slots of one sentence.

    `places` (T, J) are the terms of their positions in their scores. `table` has the features of their classes, which
    begin at `num_below`, after those of the prior's classes.

    Args:
        bound: the background of a batch of this sentence alone. symbols: names of target ids. features: of S classes.
        hidden: (T, H). rows: of the slots, (J, H), from SlotRows. Both may be wider, with columns of other sources.
    """

    def __init__(
        self,
        bound: EvidenceMixture,
        symbols: list[str],
        features: FeatureTable,
        output: LogLinearOutput,
        hidden: Tensor,
        rows: Tensor,
    ) -> None:
        slots, self.num_below = bound.slots, bound.num_below
        if len(slots.words) != 1:
            raise ValueError(f"expected the slots of one sentence, found those of {len(slots.words)}")
        self.table = _with_slots(features, bound)
        self._columns = bound.view(bound.start(1)).column_of(slots.words)[0]  # shape: (J,)
        width = output.weight.size(1)
        of_places = rows[:, :width] - slots.compose(output.weight)[0]
        self.places = hidden[:, :width] @ of_places.to(hidden.dtype).T
        at = [slots.place[slots.place_slot == j].tolist() for j in range(int(slots.sizes[0]))]
        self._slots = [
            (symbols[int(slots.words[0, j])], _kind(self.table.row(bound.num_below + j)), tuple(places))
            for j, places in enumerate(at)
        ]

    def offered(self, log_masses: Tensor, log_probs: Tensor) -> tuple[OfferedSlot, ...]:
        """Return all slots in the table's order. log_masses, log_probs: of the columns at one position, (V + J,)."""
        masses, probs = log_masses[self._columns].tolist(), log_probs[self._columns].tolist()
        values = zip(self._slots, masses, probs, strict=False)  # J is 1 if there is none
        return tuple(OfferedSlot(*slot, mass, log_prob) for slot, mass, log_prob in values)


def _with_slots(features: FeatureTable, bound: EvidenceMixture) -> FeatureTable:
    """Return rows of the classes below, empty if they are not the prior's, and of the slots."""
    slots, empty = bound.slots, [slice(0, 0)] * (bound.num_below - features.num_rows)
    starts, indices, values = slots.row_starts.tolist(), slots.features.cpu().numpy(), slots.values.cpu().numpy()
    spans = [*empty, *(slice(starts[r], starts[r + 1]) for r in slots.row[0].tolist())]
    ends = features.offsets[-1] + np.cumsum([span.stop - span.start for span in spans], dtype=np.int64)
    return FeatureTable(
        features.names,
        np.concatenate([features.offsets, ends]),
        np.concatenate([features.indices, *(indices[span] for span in spans)]),
        np.concatenate([features.values, *(values[span] for span in spans)]),
    )


def _kind(row: dict[str, float]) -> str:
    return next(kind for kind, name in features().items() if name in row)


Places = tuple[tuple[int, float], ...]  # (source position, value), largest value first


@dataclass(frozen=True)
class SourceEvidence:
    """The source at one position of a translation."""

    log_background: float  # log b₀(K, token) / Σ_x b₀(K, x): the background without the source
    attention: Places | None  # attention weights before the token; None: the model has no attention
    translations: Places | None  # positions s with t(token | s) > 0; None: the prior has no lexical translations


@torch.inference_mode()
def source_evidence(
    table: LexicalTable | None,
    background: BoundBackground,
    source: Tensor,
    tokens: Tensor,
    attention: Tensor | None,
    top: int,
    outside: Tensor | None = None,
) -> list[SourceEvidence]:
    """Return the source's contribution to every token.

    Args:
        table: of lexical translations, or None.
        background: b₀, without a source. source: (L,) ids of the source's tokens. tokens: (T,) ids of the
            translation's. attention: (T, L) of the model. top: number of positions to list (or fewer).
        outside: (T,) bool, tokens that are strings outside the vocabulary: without the source they are impossible.
    """
    rows = None if table is None else [dict(table.row(s)) for s in source.tolist()]
    log_weights = _log_weights(background, tokens)
    if outside is not None:
        log_weights = log_weights.masked_fill(outside, NEGATIVE_INFINITY)
    return [
        SourceEvidence(
            log_background=log_weight,
            attention=None if attention is None else _largest_first(enumerate(attention[t].tolist()), top),
            translations=None
            if rows is None
            else _largest_first(((s, row[token]) for s, row in enumerate(rows) if token in row), top),
        )
        for t, (token, log_weight) in enumerate(zip(tokens.tolist(), log_weights.tolist(), strict=True))
    ]


def _log_weights(background: BoundBackground, tokens: Tensor) -> Tensor:
    """Return the log of the normalised background of each token after the previous ones: (T,) -> (T,)."""
    previous = tokens.roll(1).unsqueeze(0)  # the first one is not read
    view = background.view_of(previous)
    return view.weights_at(tokens) - view.class_mass.dense().logsumexp(1)


def _largest_first(values: Iterable[tuple[int, float]], top: int) -> Places:
    return tuple(sorted(values, key=lambda item: -item[1])[:top])
