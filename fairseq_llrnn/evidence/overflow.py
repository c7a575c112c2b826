"""Evidence that finds no room in the slots of its sentence: one warning, with the count of all sentences.

Where a data set is loaded, they are counted beforehand (plugin/data/evidence_data.py). Where sentences come
one after the other (fairseq-interactive, `llrnn explain`, `llrnn rescore`), only the end of the process knows their
number.
"""

from __future__ import annotations

import atexit
import logging

import numpy as np

from fairseq_llrnn.features.dictionary import PAD, SPECIALS

logger = logging.getLogger(__name__)


class LeftOut:
    """Counts what the sentences leave out. Each counts once, in however many models, batches and epochs it is read."""

    def __init__(self) -> None:
        self._is_covered = False  # whether a data set's own warning said it all
        self._of_sentence: dict[bytes, int] = {}  # by source ids

    def mark_covered(self) -> None:
        """No sentence needs to be counted: the data set's own warning says how many there are."""
        self._is_covered = True

    def note(self, source: np.ndarray, strings: int, max_slots: int) -> None:
        """A sentence (L,), padded on any side, left out so many strings."""
        if self._is_covered:
            return
        if not self._of_sentence:
            atexit.register(self._warn, max_slots)
        self._of_sentence[source[source != SPECIALS.index(PAD)].tobytes()] = strings

    def _warn(self, max_slots: int) -> None:
        sentences = self._of_sentence
        logger.warning(no_room(sum(sentences.values()), f"{len(sentences):,} different sentences", max_slots))


def no_room(strings: int, sentences: str, max_slots: int) -> str:
    """The warning. `sentences` says how many and which."""
    return (
        f"evidence: {strings:,} strings of {sentences} find no room: a sentence keeps at most {max_slots}, by kind, "
        "then by place; more with --max-slots"
    )
