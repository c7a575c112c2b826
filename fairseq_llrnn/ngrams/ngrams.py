"""Sentences as ids of a dictionary, in which n-grams are counted, and a back-off n-gram model as one flat trie.

Sizes: n sentences, T words, W words of the model, E n-grams of all orders, N the order of the model, L look-ups.
Probabilities are natural logarithms.

A text has one sentence per line (`read_sentences`). In the model, `NGrams`,

    log p(w | h)  =  log_probs[e]                      if the n-gram e = h w is in the model
                     back_offs[h] + log p(w | h')      otherwise; h' is h without its first word

An n-gram is identified by its number. Unigram e is the word e. The others follow by order, each order sorted by history
(the number of the n-gram without its last word) and last word. So one binary search finds an n-gram. A history outside
of the model has a back-off weight of 1, so its longest suffix in the model can replace it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from fairseq_llrnn.features.dictionary import UNK, WordList, read_ids


@dataclass(frozen=True)
class Sentences:
    """Ids of words, one sentence after the other, without <s> and </s>."""

    tokens: np.ndarray  # (T,) int32 or int64
    lengths: np.ndarray  # (n,) int64, with sum T; sentences may be empty

    def __len__(self) -> int:
        return len(self.lengths)

    def chosen(self, wanted: np.ndarray) -> Sentences:
        """Return the sentences that are `wanted` (n,) bool."""
        return Sentences(self.tokens[np.repeat(wanted, self.lengths)], self.lengths[wanted])

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> Sentences:
        tokens = np.array([token for sentence in sentences for token in sentence], dtype=np.int64)
        return cls(tokens, np.array([len(sentence) for sentence in sentences], dtype=np.int64))


def read_sentences(paths: Sequence[Path | str], words: WordList, workers: int | None = None) -> Sentences:
    """Read tokenised texts, one sentence a line. A word outside the dictionary is <unk>.

    Args:
        workers: processes (None: one for each core).

    Raises:
        DataError: a file that cannot be read or is not UTF-8.
    """
    return Sentences(*read_ids(paths, words.symbols, words.symbols.index(UNK), workers))


EMPTY = -1  # the empty history


@dataclass(frozen=True)
class NGrams:
    """Every n-gram's history is one of the n-grams. Its suffix need not be."""

    words: tuple[str, ...]  # W
    starts: np.ndarray  # (N + 1,) int64: the n-grams of order n are starts[n − 1] … starts[n] − 1
    histories: np.ndarray  # (E,) int64, EMPTY for unigrams
    last: np.ndarray  # (E,) int64, the last word
    log_probs: np.ndarray  # (E,) float64; −inf only for unigrams that are never predicted: <s>, <pad>
    back_offs: np.ndarray  # (E,) float64; 0 for the highest order

    @property
    def order(self) -> int:
        return len(self.starts) - 1

    def __len__(self) -> int:
        return len(self.last)

    def only(self, kept: np.ndarray) -> NGrams:
        """Return the n-grams of `kept` (E,) bool, which must contain all unigrams, and the histories of its n-grams."""
        new_index = np.cumsum(kept) - 1
        return NGrams(
            self.words,
            np.concatenate([[0], np.cumsum(kept)])[self.starts],
            np.where(self.histories == EMPTY, EMPTY, new_index[self.histories])[kept],
            self.last[kept],
            self.log_probs[kept],
            self.back_offs[kept],
        )

    @cached_property
    def keys(self) -> np.ndarray:
        """The keys of all n-grams: (E,) int64, rising."""
        return trie_keys(self.histories, self.last, len(self.words))

    def find(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return the n-gram of each history (or EMPTY) and word: (L,), (L,) -> (L,), or −1 if there is none."""
        keys = trie_keys(histories, words, len(self.words))
        places = np.minimum(np.searchsorted(self.keys, keys), len(self) - 1)
        return np.where(self.keys[places] == keys, places, -1)

    @cached_property
    def suffixes(self) -> np.ndarray:
        """The longest proper suffix of every n-gram that is an n-gram, EMPTY for unigrams: (E,)."""
        suffixes = np.full(len(self), EMPTY, dtype=np.int64)
        for n in range(1, self.order):
            span = slice(self.starts[n], self.starts[n + 1])
            history = suffixes[self.histories[span]]
            suffixes[span] = numbers = self.find(history, self.last[span])
            while (missing := numbers < 0).any():  # every word is a unigram: EMPTY ends it
                history = np.where(missing, suffixes[history], history)
                numbers = np.where(missing, self.find(history, self.last[span]), numbers)
                suffixes[span] = numbers
        return suffixes

    def log_prob(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return log p(w | h): (L,), (L,) -> (L,). Histories are n-grams or EMPTY."""
        history, total = histories.copy(), np.zeros(len(histories))
        entries = self.find(history, words)
        while (missing := entries < 0).any():
            total[missing] += self.back_offs[history[missing]]
            history[missing] = self.suffixes[history[missing]]
            entries[missing] = self.find(history[missing], words[missing])
        return total + self.log_probs[entries]

    def spelled(self, entries: np.ndarray, order: int) -> np.ndarray:
        """Return the words of n-grams of one order: (L,) -> (L, order)."""
        columns = []
        for _ in range(order):
            columns.append(self.last[entries])
            entries = self.histories[entries]
        return np.stack(columns[::-1], axis=1)


def trie_keys(histories: np.ndarray, words: np.ndarray, num_words: int) -> np.ndarray:
    """Return one number for each n-gram, which rises with its order, history and word."""
    return (histories + 1) * np.int64(num_words) + words
