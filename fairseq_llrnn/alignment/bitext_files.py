"""A bitext from two text files, with all its words: what phrases and rare words are found in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairseq_llrnn.alignment.bitext import Bitext, BitextSide
from fairseq_llrnn.files.read_count import iter_sentences
from fairseq_llrnn.files.text_lines import check_as_long


@dataclass(frozen=True)
class TextBitext:
    """Sentences and their translations as ids of the words that occur in them, numbered as they come."""

    bitext: Bitext
    source_words: tuple[str, ...]  # U
    target_words: tuple[str, ...]  # V


def read_text_bitext(source: Path | str, target: Path | str) -> TextBitext:
    """Read two tokenised texts, a sentence and its translation in each line.

    Raises:
        DataError: a file that cannot be read, or texts of different lengths.
    """
    found = bitext_of(*((line.split() for _, line in iter_sentences(path)) for path in (source, target)))
    check_as_long(source, target, len(found.bitext.source), len(found.bitext.target))
    return found


def bitext_of(source: Iterable[Sequence[str]], target: Iterable[Sequence[str]]) -> TextBitext:
    """The same of sentences and their translations, in words."""
    (sources, source_words), (targets, target_words) = _numbered(source), _numbered(target)
    return TextBitext(Bitext(sources, targets), source_words, target_words)


def _numbered(lines: Iterable[Sequence[str]]) -> tuple[BitextSide, tuple[str, ...]]:
    places: dict[str, int] = {}
    rows = [np.zeros(0, dtype=np.int64)]
    for line in lines:
        rows.append(np.array([places.setdefault(word, len(places)) for word in line], dtype=np.int64))
    return BitextSide(np.concatenate(rows), np.cumsum([len(row) for row in rows])), tuple(places)
