"""What a data set loses of its evidence: one warning when it is loaded."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from torch import Tensor

from fairseq_llrnn.evidence.overflow import no_room
from fairseq_llrnn.evidence.table import EvidenceTable
from fairseq_llrnn.evidence.term_marks import plain

AT_ONCE = 4096  # sentences: one operation for many, so that a look at a million of them takes seconds

logger = logging.getLogger(__name__)


def warn_of_lost_evidence(
    table: EvidenceTable, split: str, sources: Sequence[Tensor], unk: int, binary: bool
) -> None:
    """Warn of strings that find no room in the slots, and of unknown words that a binary data set has as <unk>.

    No slot can bring back the latter. Words that training reads as unknown (plugin/data/evidence_data.py) are not
    counted: they are others in every epoch.
    """
    table.left_out.all_said()
    widest = max(map(len, table.rules.mapping.values()), default=1)  # strings that one word offers, at most
    unknown = strings = sentences = 0
    for first in range(0, len(sources), AT_ONCE):
        rows = [plain(sources[i].numpy()) for i in range(first, min(first + AT_ONCE, len(sources)))]
        tokens = np.concatenate(rows)
        unknown += int((tokens == unk).sum())
        offering = np.concatenate([[0], table.some(tokens).cumsum()])
        many = np.diff(offering[np.cumsum([0, *map(len, rows)])])  # words that offer something, of each sentence
        for i in np.flatnonzero(many * widest > table.max_slots).tolist():
            left_out = max(0, table.strings(rows[i]) - table.max_slots)
            strings += left_out
            sentences += left_out > 0
    if strings:
        logger.warning(no_room(strings, f"{sentences:,} of the {len(sources):,} {split} sources", table.max_slots))
    if unknown and binary:
        logger.warning(
            f"evidence: {unknown} unknown words of the {split} sources are no more than <unk> in the binary data set; "
            "to translate them, give the text to fairseq-interactive, or preprocess and load it with "
            "--dataset-impl raw"
        )
