"""A bitext as arrays of word ids, and links between its tokens.

Sizes: I sentence pairs, L links.

`TextBitext` has all words of two text files, for phrases and rare words. `ParallelText` has the words of two
dictionaries, for word alignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairseq_llrnn.features.dictionary import EOS, UNK, read_ids
from fairseq_llrnn.files.text_lines import check_as_long, iter_sentences

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]  # source words, target words, weights


@dataclass(frozen=True)
class BitextSide:
    """One language of a bitext: sentences of word ids, one after the other."""

    tokens: np.ndarray  # (all,) int64
    offsets: np.ndarray  # (I + 1,) int64

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def with_words(self, wanted: np.ndarray) -> BitextSide:
        """Return the sentences with only the `wanted` words, a bool for every word of the vocabulary."""
        kept = wanted[self.tokens]
        return BitextSide(self.tokens[kept], np.concatenate([[0], kept.cumsum()])[self.offsets])

    def with_sentences(self, wanted: np.ndarray) -> BitextSide:
        """Return the `wanted` sentences, (I,) bool."""
        kept = np.repeat(wanted, self.lengths)
        return BitextSide(self.tokens[kept], np.concatenate([[0], self.lengths[wanted].cumsum()]))

    def with_null(self, null: int) -> BitextSide:
        """Return the sentences with the word `null` before each."""
        return BitextSide(np.insert(self.tokens, self.offsets[:-1], null), self.offsets + np.arange(len(self) + 1))


@dataclass(frozen=True)
class Bitext:
    """Sentences and their translations."""

    source: BitextSide
    target: BitextSide


@dataclass(frozen=True)
class Links:
    """Pairs of tokens of a bitext, by their places in `source.tokens` and `target.tokens`: (L,) int64 each."""

    source: np.ndarray
    target: np.ndarray


@dataclass(frozen=True)
class TextBitext:
    """Sentences and their translations as ids of their words, numbered in order of first occurrence."""

    bitext: Bitext
    source_words: tuple[str, ...]  # U
    target_words: tuple[str, ...]  # V


def read_text_bitext(source: Path | str, target: Path | str) -> TextBitext:
    """Read two tokenised texts with a sentence and its translation in each line.

    Raises:
        DataError: a file that cannot be read, or texts of different lengths.
    """
    texts = bitext_of(*((line.split() for _, line in iter_sentences(path)) for path in (source, target)))
    check_as_long(source, target, len(texts.bitext.source), len(texts.bitext.target))
    return texts


def bitext_of(source: Iterable[Sequence[str]], target: Iterable[Sequence[str]]) -> TextBitext:
    """Return the bitext of sentences and their translations, given as words."""
    (sources, source_words), (targets, target_words) = _numbered(source), _numbered(target)
    return TextBitext(Bitext(sources, targets), source_words, target_words)


def _numbered(lines: Iterable[Sequence[str]]) -> tuple[BitextSide, tuple[str, ...]]:
    places: dict[str, int] = {}
    rows = [np.zeros(0, dtype=np.int64)]
    for line in lines:
        rows.append(np.array([places.setdefault(word, len(places)) for word in line], dtype=np.int64))
    return BitextSide(np.concatenate(rows), np.cumsum([len(row) for row in rows])), tuple(places)


@dataclass(frozen=True)
class ParallelText:
    """Sentences and their translations, and their files."""

    bitext: Bitext
    source_symbols: tuple[str, ...]
    files: tuple[Path, ...]  # source, target

    @classmethod
    def read(
        cls, source: Path | str, target: Path | str, source_symbols: Sequence[str], target_symbols: Sequence[str]
    ) -> ParallelText:
        """Read two tokenised texts with a sentence and its translation in each line.

        Raises:
            DataError: a file that cannot be read, or texts of different lengths.
        """
        sides = [_sentences(path, symbols) for path, symbols in ((source, source_symbols), (target, target_symbols))]
        check_as_long(source, target, *map(len, sides))
        return cls(Bitext(*sides), tuple(source_symbols), (Path(source), Path(target)))


def _sentences(path: Path | str, symbols: Sequence[str]) -> BitextSide:
    """Return the lines of a text, each followed by </s>, with <unk> for words outside of the symbols."""
    words, lengths = read_ids([path], symbols, symbols.index(UNK))
    ends = lengths.cumsum()
    tokens = np.insert(words.astype(np.int64), ends, symbols.index(EOS))
    return BitextSide(tokens, np.concatenate([[0], ends + np.arange(1, len(ends) + 1)]))
