"""Text as ids of a dictionary, a sentence a line: what n-grams are counted in.

Sizes: n sentences, T words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairseq_llrnn.features.dictionary import UNK, WordList
from fairseq_llrnn.features.text_words import read_ids


@dataclass(frozen=True)
class Sentences:
    """Ids of words, one sentence behind the other, without <s> and </s>."""

    tokens: np.ndarray  # (T,) int32 or int64
    lengths: np.ndarray  # (n,) int64, the sum of which is T; empty sentences count

    def __len__(self) -> int:
        return len(self.lengths)

    def chosen(self, wanted: np.ndarray) -> Sentences:
        """The sentences that are `wanted` (n,) bool."""
        return Sentences(self.tokens[np.repeat(wanted, self.lengths)], self.lengths[wanted])

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> Sentences:
        tokens = np.array([token for sentence in sentences for token in sentence], dtype=np.int64)
        return cls(tokens, np.array([len(sentence) for sentence in sentences], dtype=np.int64))


def read_sentences(paths: Sequence[Path | str], words: WordList, workers: int | None = None) -> Sentences:
    """Tokenised texts, one sentence a line; a word outside the dictionary is <unk>.

    Args:
        workers: processes; None: one for each core.

    Raises:
        DataError: a file that cannot be read or is not UTF-8.
    """
    return Sentences(*read_ids(paths, words.symbols, words.symbols.index(UNK), workers))
