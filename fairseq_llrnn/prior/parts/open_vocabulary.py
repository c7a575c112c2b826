"""The open vocabulary: classes of words outside the dictionary, each a distribution over strings.

It makes no background: <unk> has one, which its classes share (open_vocabulary/open_strings.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairseq_llrnn.features.dictionary import UNK
from fairseq_llrnn.open_vocabulary.table import OpenTable
from fairseq_llrnn.open_vocabulary.vocabulary import OpenVocabulary, read_open_vocabulary
from fairseq_llrnn.prior.part import Facts, Part, SavedPart, register_part

if TYPE_CHECKING:
    from fairseq_llrnn.features.feature_table import Signatures
    from fairseq_llrnn.output.class_source import ClassSource, ClassSourceOf, Head
    from fairseq_llrnn.prior.prior import Prior


@register_part("open_vocabulary")
@dataclass(frozen=True)
class OpenVocabularyPart(Part):
    """The classes; their features are among those of φ."""

    vocabulary: OpenVocabulary

    class_name = "open_words"

    def arrays(self) -> dict[str, np.ndarray]:
        return self.vocabulary.arrays()

    def description(self) -> dict[str, Any]:
        return self.vocabulary.description()

    @classmethod
    def read(cls, saved: SavedPart) -> OpenVocabularyPart:
        output, names = saved.prior.output, saved.prior.output.features.names
        vocabulary = read_open_vocabulary(saved.arrays, saved.description, names, len(saved.prior.symbols))
        if np.bincount(output.class_of)[output.class_of[saved.prior.index(UNK)]] > 1:
            raise ValueError("the open vocabulary needs <unk> alone in its signature")
        return cls(vocabulary)

    def open_words(self, prior: Prior) -> OpenTable:
        return prior.session.once("open_vocabulary", lambda: OpenTable(self.vocabulary, prior.session.target))

    def class_source(self, head: Head) -> ClassSource:
        return open_words()(head)

    def readable(self, signatures: Signatures) -> Signatures:
        return self.vocabulary.readable(signatures)

    def lines(self, prior: Prior) -> list[str]:
        return [f"classes {', '.join(self.vocabulary.names)}"]

    def word(self, prior: Prior, index: int) -> Facts:
        share = float(self.vocabulary.word_shares[index])
        return {"unknown": [f"read as <unk> in training: {share:.1%}"]} if share else {}

    def counts(self) -> dict[str, int]:
        return {"open classes": len(self.vocabulary.names)}


def open_words(told: Any = None, beside: int | None = None) -> ClassSourceOf:
    """Makes the open classes of a head: `LogLinearHead(prior, H, classes=[open_words(SpellerSizes(…))])`.

    Args:
        told: to what spells words beside n-grams (open_vocabulary/open_strings.py), where the prior has that; None:
            nothing.
        beside: the width of what it spells from, where that is not the hidden states (`batch`'s `spelling`).

    Raises:
        OptionError: (when the head is made) one of them, and a prior that n-grams spell alone.
    """

    def make(head: Head) -> ClassSource:
        from fairseq_llrnn.open_vocabulary.open_strings import OpenWords

        return OpenWords.of(head, head.prior.open_words, told, beside)

    return make
