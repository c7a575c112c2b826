"""Vectors of words in a text file, as word2vec, GloVe and fastText write it: a word and its D numbers in each line.

A first line of two whole numbers, how many words and D, may come before. Words that nobody asked for are left out; the
others are read in the Unicode form of the dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_VALUE
from fairseq_llrnn.files.read_count import ReadCount
from fairseq_llrnn.files.text_lines import place, shown
from fairseq_llrnn.files.unicode_forms import form_of

HEADER, NOT_ASKED, REPEATED = "as header", "of words that the dictionary lacks", "repeated"


def read_word_vectors(path: Path | str, symbols: Sequence[str]) -> np.ndarray:
    """Vectors of these words, (V, D) float32; NaN for a word that the file has not.

    Raises:
        DataError: a line that is no word and as many numbers as those before have, or none of the words.
    """
    index = {symbol: i for i, symbol in enumerate(symbols)}
    found: dict[int, np.ndarray] = {}
    size: int | None = None
    count = ReadCount(path, "lines", form_of(symbols))
    for number, line in count.lines(lambda _: True):
        word, *cells = line.rstrip().split(" ")
        if number == 1 and len(cells) == 1 and word.isdecimal() and cells[0].isdecimal():
            count.left_out[HEADER] += 1
            continue
        if not word or not cells or size not in (None, len(cells)):
            expected = "a word and its numbers" if size is None else f"a word and {size:,} numbers"
            raise DataError(
                f"{place(path, number)}: expected {expected}, separated by single blanks, found {shown(line)}; "
                "give vectors as word2vec, GloVe or fastText write them, as text"
            )
        size = len(cells)
        if word not in index or index[word] in found:  # of a word that comes twice, the first counts
            count.left_out[REPEATED if word in index else NOT_ASKED] += 1
            continue
        found[index[word]] = _numbers(cells, place(path, number))
        count.read += 1
    if not found or size is None:
        raise DataError(f"{path}: expected vectors of words of the dictionary, found none; give those of its language")
    vectors = np.full((len(symbols), size), np.nan, dtype=np.float32)
    vectors[list(found)] = list(found.values())
    return vectors


def _numbers(cells: list[str], where: str) -> np.ndarray:
    try:
        vector = np.array([float(cell) for cell in cells], dtype=np.float64)
    except ValueError as error:
        raise DataError(f"{where}: expected numbers behind the word, found that {error}; fix the line") from None
    if not (np.abs(vector) <= LARGEST_VALUE).all():
        raise DataError(f"{where}: expected numbers up to {LARGEST_VALUE:,.0f}, found others; fix the line")
    return vector.astype(np.float32)
