"""Numbers of words in tab-separated rows: values of features, and weights.

`values_rows` reads real-valued features: word, feature, value (`paris<TAB>Population:Log<TAB>6.3`). `read_weights`
reads the weights of a background: word, weight (`euro<TAB>3.5`).
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_WEIGHT, LEAST_WEIGHT, is_weight
from fairseq_llrnn.files.text_lines import ReadCount, check_not_blank, form_hint, place
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.lexicon_table import ReadRequest, Row, as_features

# names of the columns in a header
WORD = ("word", "words", "form", "token", "symbol")
FEATURE = ("feature", "features", "name")
VALUE = ("value", "values", "weight", "weights", "count", "counts", "frequency", "freq", "probability", "prob", "score")


def values_rows(path: str, request: ReadRequest) -> Iterator[tuple[Row, int]]:
    """Yield a row for each value. Blank lines are skipped.

    Raises:
        DataError: with file and line, a malformed row, a value that is no finite number, a word and feature given
            twice, or a file without rows.
    """
    count, checked = ReadCount(path, "rows", request.spelling.form), Lexicon()
    seen: dict[tuple[str, str], int] = {}
    expected = "word, feature and value with tabs between"
    for number, (word, feature, text) in count.rows({3}, expected, header=(WORD, FEATURE, VALUE)):
        location = place(path, number)
        check_not_blank(word, location, "the word")
        word = request.spelling.cased(word)
        if (word, feature) in seen:
            raise DataError(
                f"{location}: {feature!r} of word {word!r} was already given in line {seen[word, feature]}; "
                "remove one of them"
            )
        seen[word, feature] = number
        try:
            value = {feature: float(text)}
            checked.add(word, value)
        except ValueError:
            raise DataError(
                f"{location}: expected a number as value of {feature!r}, found {text!r}; fix the row"
            ) from None
        except DataError as error:
            raise DataError(f"{location}: {error}") from None
        count.read += 1
        yield Row(word, source="values", values=as_features(value)), 0
    if not seen:
        raise DataError(f"{path}: expected rows of word, feature and value, found none; is it the right file?")


def read_weights(path: Path, index: Mapping[str, int], size: int) -> np.ndarray:
    """Return weights (size,), the largest of them one. Words outside of the file get zero. Blank lines are skipped.

    Args:
        index: the position of each word that may have a weight.

    Raises:
        DataError: a row that is not a known word and a non-negative finite number, a word given twice, or no positive
            weight.
    """
    weights, count = np.zeros(size), ReadCount(path)
    seen: dict[str, int] = {}
    for number, (word, text) in count.rows({2}, "`word<TAB>weight`", header=(WORD, VALUE)):
        location = place(path, number)
        if word not in index:
            hint = form_hint(word, index)
            raise DataError(f"{location}: word {word!r} is not in the dictionary{hint}; remove the row or add the word")
        if word in seen:
            raise DataError(f"{location}: word {word!r} was already given in line {seen[word]}; remove one of them")
        seen[word] = number
        try:
            weight = float(text)
        except ValueError:
            raise DataError(f"{location}: expected a number as weight of {word!r}, found {text!r}; fix it") from None
        if not math.isfinite(weight) or weight < 0:
            raise DataError(f"{location}: expected a finite weight ≥ 0 for {word!r}, found {text}; fix the row")
        if weight and not is_weight(weight):
            raise DataError(
                f"{location}: expected 0, or a weight between {LEAST_WEIGHT:g} and {LARGEST_WEIGHT:g}, for {word!r}, "
                f"found {text}; fix the row"
            )
        weights[index[word]] = weight
        count.read += 1
    if weights.max(initial=0.0) == 0:
        raise DataError(f"{path}: expected at least one positive weight, found none; give weights of dictionary words")
    return weights / weights.max()  # keeps sums finite
