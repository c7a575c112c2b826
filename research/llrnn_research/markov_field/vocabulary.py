"""The words of a field, and the kind of token of each: the word itself, or a signature of a prior.

Potentials depend on a word's signature only. Words of one signature σ differ only by the background b, so p(t) =
p(σ(t₁) … σ(t_N)) · Π b(tᵢ)/B(σ(tᵢ)). The chain runs over signatures, and the second factor selects the words.

Sizes: V words, R kinds of tokens, T words of a text, n sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError, check_least
from fairseq_llrnn.features.dictionary import EOS, UNK, count_words, read_ids
from fairseq_llrnn.prior.prior import Prior

from .tagger import sparse


@dataclass(frozen=True)
class FieldWords:
    """The words of a field."""

    symbols: tuple[str, ...]  # V, including </s> (the separator) and <unk>
    row_of: np.ndarray  # (V,) int64, the kind of token; −1: forbidden by the prior, and read as <unk>
    log_share: np.ndarray  # (V,) float64, log p(word | its kind), 0 for the only word of a kind

    @cached_property
    def index(self) -> dict[str, int]:
        return {symbol: i for i, symbol in enumerate(self.symbols)}

    @property
    def separator(self) -> int:
        """Return the kind of </s>."""
        return int(self.row_of[self.index[EOS]])

    def ids(self, words: Sequence[str]) -> np.ndarray:
        """Return the numbers of words, with <unk> for unknown and forbidden words."""
        unknown = self.index[UNK]
        numbers = np.array([self.index.get(word, unknown) for word in words], dtype=np.int64)
        return np.where(self.row_of[numbers] < 0, unknown, numbers)

    def read(self, paths: Sequence[str]) -> FieldText:
        """Read tokenised texts, a sentence a line.

        Raises:
            DataError: a file cannot be read or is not UTF-8, or no file has words.
        """
        unknown = self.index[UNK]
        ids, lengths = read_ids(paths, self.symbols, unknown, 1)
        if len(ids) == 0:
            raise DataError(
                f"{', '.join(paths)}: expected a sentence a line, found no words; give a tokenised text"
            )
        ids_in_field = np.where(self.row_of[ids] < 0, unknown, ids).astype(np.int64)
        return FieldText(self.row_of[ids_in_field], lengths, self.log_share[ids_in_field], ids_in_field == unknown)

    def text_of(self, sentences: Sequence[Sequence[str]]) -> FieldText:
        """Return sentences as a text."""
        ids = self.ids([word for sentence in sentences for word in sentence])
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        return FieldText(self.row_of[ids], lengths, self.log_share[ids], ids == self.index[UNK])


@dataclass(frozen=True)
class FieldText:
    """A text as kinds of tokens, without separators."""

    rows: np.ndarray  # (T,) int64
    lengths: np.ndarray  # (n,) int64, including empty sentences, which the layout skips
    log_shares: np.ndarray  # (T,)
    unknown: np.ndarray  # (T,) bool

    @property
    def empty(self) -> int:
        """Return the number of sentences without words."""
        return int((self.lengths == 0).sum())


def words_of_text(paths: Sequence[str], size: int) -> FieldWords:
    """Return </s>, <unk>, and the `size` most frequent words of some texts, each a kind of token.

    Raises:
        DataError: as in `FieldWords.read`.
        OptionError: a size below 1.
    """
    check_least("--words", size, 1)
    counts, _ = count_words(paths, 1)
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    symbols = (EOS, UNK, *[word for word in ordered if word not in (EOS, UNK)][:size])
    return FieldWords(symbols, np.arange(len(symbols)), np.zeros(len(symbols)))


def words_of_prior(prior: Prior, folder: str) -> tuple[FieldWords, Tensor, Tensor]:
    """Return the words of a prior, log B of their signatures (R,), and their features Φ (R, F), sparse.

    Signatures without mass are dropped.

    Raises:
        OptionError: </s> or <unk> has no weight.
    """
    classes, weights = prior.output.class_of, prior.log_weights
    class_weights = np.full(prior.output.num_classes, -np.inf)
    np.logaddexp.at(class_weights, classes, weights)
    used = np.flatnonzero(np.isfinite(class_weights))
    place = np.full(len(class_weights), -1, dtype=np.int64)
    place[used] = np.arange(len(used))
    row_of = np.where(np.isfinite(weights), place[classes], -1)
    symbols = prior.symbols
    for symbol in (EOS, UNK):
        if row_of[symbols.index(symbol)] < 0:
            raise OptionError(
                f"--prior {folder}: expected a background with a weight for {symbol}, found none; build the prior with "
                "another --background"
            )
    with np.errstate(invalid="ignore"):
        shares = np.where(row_of >= 0, weights - class_weights[classes], 0.0)
    features = sparse(prior.output.features.select(used))
    return FieldWords(symbols, row_of, shares), torch.from_numpy(class_weights[used]), features
