"""A parallel text in the words of two dictionaries, to align its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairseq_llrnn.alignment.bitext import Bitext, BitextSide
from fairseq_llrnn.features.dictionary import EOS, UNK
from fairseq_llrnn.features.text_words import read_ids
from fairseq_llrnn.files.text_lines import check_as_long


@dataclass(frozen=True)
class ParallelText:
    """Sentences and their translations, and what they were read from."""

    bitext: Bitext
    source_symbols: tuple[str, ...]
    files: tuple[Path, ...]  # source, target

    @classmethod
    def read(
        cls, source: Path | str, target: Path | str, source_symbols: Sequence[str], target_symbols: Sequence[str]
    ) -> ParallelText:
        """Read two tokenised texts, a sentence and its translation in each line.

        Raises:
            DataError: a file that cannot be read, or texts of different lengths.
        """
        sides = [_sentences(path, symbols) for path, symbols in ((source, source_symbols), (target, target_symbols))]
        check_as_long(source, target, *map(len, sides))
        return cls(Bitext(*sides), tuple(source_symbols), (Path(source), Path(target)))


def _sentences(path: Path | str, symbols: Sequence[str]) -> BitextSide:
    """The lines of a text, each with </s> behind it, words that the symbols lack as <unk>."""
    words, lengths = read_ids([path], symbols, symbols.index(UNK))
    ends = lengths.cumsum()
    tokens = np.insert(words.astype(np.int64), ends, symbols.index(EOS))
    return BitextSide(tokens, np.concatenate([[0], ends + np.arange(1, len(ends) + 1)]))
