"""Weights of words as tab-separated rows: word, weight (`euro<TAB>3.5`). The background of a user."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_WEIGHT, LEAST_WEIGHT, is_weight
from fairseq_llrnn.files.read_count import ReadCount
from fairseq_llrnn.files.text_lines import form_hint, place


def read_weights(path: Path, index: Mapping[str, int], size: int) -> np.ndarray:
    """Weights (size,), the largest of them one; words that are not in the file get zero, blank lines are skipped.

    Args:
        index: where the weight of every word goes that may have one.

    Raises:
        DataError: a row that is not a known word and a non-negative finite number, a word given twice, no mass at all.
    """
    weights, count = np.zeros(size), ReadCount(path)
    seen: dict[str, int] = {}
    for number, line in count.lines():
        cells = line.split("\t")
        where = place(path, number)
        if len(cells) != 2:
            raise DataError(f"{where}: expected `word<TAB>weight`, found {len(cells)} columns; fix the row")
        word, text = cells
        if word not in index:
            hint = form_hint(word, index)
            raise DataError(f"{where}: word {word!r} is not in the dictionary{hint}; remove the row or add the word")
        if word in seen:
            raise DataError(f"{where}: word {word!r} was already given in line {seen[word]}; remove one of them")
        seen[word] = number
        try:
            weight = float(text)
        except ValueError:
            raise DataError(f"{where}: expected a number as weight of {word!r}, found {text!r}; fix the row") from None
        if not math.isfinite(weight) or weight < 0:
            raise DataError(f"{where}: expected a finite weight ≥ 0 for {word!r}, found {text}; fix the row")
        if weight and not is_weight(weight):
            raise DataError(
                f"{where}: expected 0, or a weight between {LEAST_WEIGHT:g} and {LARGEST_WEIGHT:g}, for {word!r}, "
                f"found {text}; fix the row"
            )
        weights[index[word]] = weight
        count.read += 1
    if weights.max(initial=0.0) == 0:
        raise DataError(f"{path}: expected at least one positive weight, found none; give weights of dictionary words")
    return weights / weights.max()  # so that the sum of large ones is finite
