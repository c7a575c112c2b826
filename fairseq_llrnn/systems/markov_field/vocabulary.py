"""Which words a field knows, and which kind of token each of them is: itself, or a signature of a prior.

Potentials see a word through its signature only. With the background b, words of one signature σ differ by b alone, so
that p(t) = p(σ(t₁) … σ(t_N)) · Π b(tᵢ)/B(σ(tᵢ)): the chain runs over signatures, and says which member came besides.

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


@dataclass(frozen=True)
class FieldWords:
    """The words of a field."""

    symbols: tuple[str, ...]  # V, </s>, the separator, and <unk> among them
    row_of: np.ndarray  # (V,) int64, the kind of token; −1: a word that the prior forbids, which is read as <unk>
    log_share: np.ndarray  # (V,) float64, log p(word | its kind), 0 where it is the only one

    @cached_property
    def index(self) -> dict[str, int]:
        return {symbol: i for i, symbol in enumerate(self.symbols)}

    @property
    def separator(self) -> int:
        """The kind of </s>."""
        return int(self.row_of[self.index[EOS]])

    def ids(self, words: Sequence[str]) -> np.ndarray:
        """The numbers of words, those that are unknown or forbidden being <unk>'s."""
        unknown = self.index[UNK]
        numbers = np.array([self.index.get(word, unknown) for word in words], dtype=np.int64)
        return np.where(self.row_of[numbers] < 0, unknown, numbers)

    def read(self, paths: Sequence[str], workers: int | None = 1) -> FieldText:
        """Tokenised texts, a sentence a line.

        Raises:
            DataError: a file that cannot be read or is not UTF-8; no words in all of them.
        """
        unknown = self.index[UNK]
        ids, lengths = read_ids(paths, self.symbols, unknown, workers)
        if len(ids) == 0:
            raise DataError(
                f"{', '.join(paths)}: expected sentences, a line each, found no word at all; give a tokenised text"
            )
        ids_in_field = np.where(self.row_of[ids] < 0, unknown, ids).astype(np.int64)
        return FieldText(self.row_of[ids_in_field], lengths, self.log_share[ids_in_field], ids_in_field == unknown)

    def text_of(self, sentences: Sequence[Sequence[str]]) -> FieldText:
        """The same of sentences at hand."""
        ids = self.ids([word for sentence in sentences for word in sentence])
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        return FieldText(self.row_of[ids], lengths, self.log_share[ids], ids == self.index[UNK])


@dataclass(frozen=True)
class FieldText:
    """A text as kinds of tokens, without separators."""

    rows: np.ndarray  # (T,) int64
    lengths: np.ndarray  # (n,) int64; sentences without words count, and are left out of the layout
    log_shares: np.ndarray  # (T,)
    unknown: np.ndarray  # (T,) bool

    @property
    def empty(self) -> int:
        """How many sentences have no words."""
        return int((self.lengths == 0).sum())


def words_of_text(paths: Sequence[str], size: int, workers: int | None = 1) -> FieldWords:
    """</s>, <unk>, and the `size` most frequent words of some texts, each a kind of its own.

    Raises:
        DataError: as `FieldWords.read`. OptionError: a size below 1.
    """
    check_least("--words", size, 1)
    counts, _ = count_words(paths, workers)
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    symbols = (EOS, UNK, *[word for word in ordered if word not in (EOS, UNK)][:size])
    return FieldWords(symbols, np.arange(len(symbols)), np.zeros(len(symbols)))


def words_of_prior(prior: Prior, folder: str) -> tuple[FieldWords, Tensor, Tensor]:
    """The words of a prior; log B of their signatures (R,); their features Φ (R, F), sparse.

    Signatures without mass are left out.

    Raises:
        OptionError: </s> or <unk> has no weight.
    """
    classes, weights = prior.output.class_of, prior.log_weights
    class_weights = np.full(prior.output.num_classes, -np.inf)
    np.logaddexp.at(class_weights, classes, weights)
    kept = np.flatnonzero(np.isfinite(class_weights))
    place = np.full(len(class_weights), -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    row_of = np.where(np.isfinite(weights), place[classes], -1)
    symbols = prior.symbols
    for symbol in (EOS, UNK):
        if row_of[symbols.index(symbol)] < 0:
            raise OptionError(
                f"--prior {folder}: expected a background that gives {symbol} some weight, found none; choose another "
                "--background for it"
            )
    with np.errstate(invalid="ignore"):
        shares = np.where(row_of >= 0, weights - class_weights[classes], 0.0)
    table = prior.output.features.select(kept)
    rows = np.repeat(np.arange(len(kept)), np.diff(table.offsets))
    places = torch.from_numpy(np.stack([rows, table.indices]))
    features = torch.sparse_coo_tensor(
        places, torch.from_numpy(table.values.astype(np.float64)), (len(kept), table.num_features), is_coalesced=True,
        check_invariants=False,
    )  # fmt: skip
    return FieldWords(symbols, row_of, shares), torch.from_numpy(class_weights[kept]), features
