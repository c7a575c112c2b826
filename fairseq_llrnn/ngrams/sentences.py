"""Text as ids of a dictionary, a sentence a line: what n-grams are counted in.

Sizes: n sentences, T words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from fairseq_llrnn.features.dictionary import UNK, WordList
from fairseq_llrnn.files.text_lines import iter_lines


@dataclass(frozen=True)
class Sentences:
    """Ids of words, one sentence behind the other, without <s> and </s>."""

    tokens: np.ndarray  # (T,) int64
    lengths: np.ndarray  # (n,) int64, the sum of which is T; empty sentences count

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def sentence_of(self) -> np.ndarray:
        """(T,) which sentence a word is of."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def chosen(self, wanted: np.ndarray) -> Sentences:
        """The sentences that are `wanted` (n,) bool."""
        return Sentences(self.tokens[np.repeat(wanted, self.lengths)], self.lengths[wanted])

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> Sentences:
        tokens = np.array([token for sentence in sentences for token in sentence], dtype=np.int64)
        return cls(tokens, np.array([len(sentence) for sentence in sentences], dtype=np.int64))


def read_sentences(paths: Iterable[Path | str], words: WordList) -> Sentences:
    """Tokenised texts, one sentence a line; a word outside the dictionary is <unk>.

    Raises:
        DataError: a file that cannot be read or is not UTF-8.
    """
    index = {symbol: i for i, symbol in enumerate(words.symbols)}
    unk = index[UNK]
    tokens: list[np.ndarray] = []
    for path in paths:
        lines = tqdm(iter_lines(path), f"reading {Path(path).name}", unit=" lines", leave=False, disable=None)
        tokens += [np.array([index.get(word, unk) for word in line.split()], dtype=np.int64) for _, line in lines]
    flat = np.concatenate(tokens) if tokens else np.zeros(0, dtype=np.int64)
    return Sentences(flat, np.array([len(ids) for ids in tokens], dtype=np.int64))
