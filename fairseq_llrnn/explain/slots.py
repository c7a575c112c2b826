"""What the slots of one source sentence are, score and offer, for the explanation of a translation.

Sizes: T positions, S signatures, J slots, F features, H hidden width. The score of slot j is a(K)ᵀφ(j) + h·P s_j
(evidence/slots.py): what its features add, and what the encoder's state at its places adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from fairseq_llrnn.evidence.rules import FEATURES
from fairseq_llrnn.evidence.slots import EvidenceMixture, Slots
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output.log_linear import LogLinearOutput

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
    """All evidence, and of the translations, which are many, the `top` most probable."""
    translations = [slot for slot in offered if slot.kind == "translations"]
    best = sorted(translations, key=lambda slot: -slot.log_prob)[:top]
    return (*(slot for slot in offered if slot.kind != "translations"), *best)


class SlotTerms:
    """The slots of one sentence.

    `places` (T, J) is what their places add to their scores, and `table` has the features of the classes S … S + J − 1
    below those of the prior's.

    Args:
        bound: the background of a batch of this sentence alone. symbols: names of target ids. features: of S classes.
        hidden: (T, H). rows: of the slots, (J, H), as SlotRows gives them. Both may be wider, by what experts add.
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
        slots = bound.slots
        if len(slots.words) != 1:
            raise ValueError(f"expected the slots of one sentence, found those of {len(slots.words)}")
        self.table = _with_slots(features, slots)
        self._columns = bound.column_of(slots.words)[0]  # shape: (J,)
        width = output.weight.size(1)
        of_places = rows[:, :width] - slots.compose(output.weight)[0]
        self.places = hidden[:, :width] @ of_places.to(hidden.dtype).T
        at = [slots.place[slots.place_slot == j].tolist() for j in range(int(slots.count[0]))]
        self._known = [
            (symbols[int(slots.words[0, j])], _kind(self.table.row(bound.num_below + j)), tuple(places))
            for j, places in enumerate(at)
        ]

    def offered(self, log_masses: Tensor, log_probs: Tensor) -> tuple[OfferedSlot, ...]:
        """All slots in the table's order. log_masses, log_probs: of the columns at one position, (V + J,)."""
        masses, probs = log_masses[self._columns].tolist(), log_probs[self._columns].tolist()
        values = zip(self._known, masses, probs, strict=False)  # J is 1 where there is none
        return tuple(OfferedSlot(*known, mass, log_prob) for known, mass, log_prob in values)


def _with_slots(features: FeatureTable, slots: Slots) -> FeatureTable:
    starts, indices, values = slots.row_starts.tolist(), slots.features.cpu().numpy(), slots.values.cpu().numpy()
    spans = [slice(starts[r], starts[r + 1]) for r in slots.row[0].tolist()]
    ends = features.offsets[-1] + np.cumsum([span.stop - span.start for span in spans], dtype=np.int64)
    return FeatureTable(
        features.names,
        np.concatenate([features.offsets, ends]),
        np.concatenate([features.indices, *(indices[span] for span in spans)]),
        np.concatenate([features.values, *(values[span] for span in spans)]),
    )


def _kind(row: dict[str, float]) -> str:
    return next(kind for kind, name in FEATURES.items() if name in row)
