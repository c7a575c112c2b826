"""Moses' n-best lists, also written by many other systems: fields separated by `|||`.

    12 ||| a hypothesis ||| LM0= -22.1 TM0= -3.4 -5.0 ||| -12.7 ||| 0=0 1=2
    id     hypothesis       features: names, then values    total    others (kept), such as alignments

    12 ||| a hypothesis ||| 0-0 1-2 ||| WordScores= -0.2 -1.1 -0.3 ||| F0= -1.6 ||| -0.53
    id     hypothesis       others (kept), of Marian                   features     total

The features may be missing. Every line has as many fields as the first one, and its features have the same names and
numbers of values. Only the number of WordScores, one per word, varies.
"""

import re
from collections.abc import Iterator, Sequence

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import ReadCount, place, shown
from fairseq_llrnn.systems.reranking.nbest.lists import (
    PREFIX,
    Hypothesis,
    Lines,
    NBest,
    Ranked,
    as_text,
    check_not_rescored,
    number_of,
)

NAME = "moses"
EXPECTED = "lines such as `12 ||| a hypothesis ||| LM= -3.2 ||| -0.5` of Moses"
BAR = "|||"
NUMBER = re.compile(r"[0-9]{1,18}")
NUMERIC = re.compile(r"[-+]?([0-9.]+(e[-+]?[0-9]+)?|nan|inf)", re.IGNORECASE)  # a total, right or wrong
WITHOUT_FEATURES = 3  # id, hypothesis, total
WORD_SCORES = "WordScores"

Features = list[tuple[str, list[float]]]  # names and values
Shape = tuple[int, list[tuple[str, int]]]  # number of fields; names and numbers of values of the features


def belongs(line: str) -> bool:
    return BAR in line


def read(path: str, lines: Lines, count: ReadCount) -> Iterator[NBest]:
    """Read the format, as specified in NBestFormat.read."""
    current: NBest | None = None
    first: Shape | None = None
    for number, line in lines:
        where = place(path, number)
        fields = [field.strip() for field in line.split(BAR)]
        features = _features(fields, where, line)
        shape = len(fields), [(name, len(values)) for name, values in features]
        if first is None:
            first = shape
        _check_alike(shape, first, where)
        sentence = int(fields[0])
        if current is None or current.number != sentence:
            if current is not None:
                yield current
            current = NBest(sentence, None, line=number)
        score = number_of(fields[_place_of_total(fields)], where, "total")
        current.hypotheses.append(Hypothesis(fields[1], fields[1], score, tuple(fields), _named(features)))
        count.read += 1
    if current is not None:
        yield current


def _features(fields: Sequence[str], where: str, line: str) -> Features:
    """Return the features of a line but WordScores, in its order. Raises DataError for a malformed line."""
    if len(fields) < WITHOUT_FEATURES:
        raise DataError(
            f"{where}: expected `id {BAR} hypothesis {BAR} … {BAR} total`, found {shown(line)}; fix the line"
        )
    if NUMBER.fullmatch(fields[0]) is None:
        raise DataError(
            f"{where}: expected a sentence's number (0, 1, …) as id, found {shown(fields[0])}; fix the line"
        )
    features: Features = []
    for token in fields[_place_of_total(fields) - 1].split() if len(fields) > WITHOUT_FEATURES else []:
        name, sign, value = token.partition("=")
        if not sign and token.endswith(":"):
            name, sign = token[:-1], ":"
        if sign or not features:
            features.append((name if sign else "", []))
        if value or not sign:
            features[-1][1].append(number_of(value or token, where, "value of a feature"))
    check_not_rescored((name for name, _ in features), where)
    return [(name, values) for name, values in features if name != WORD_SCORES]


def _named(features: Features) -> dict[str, float]:
    """Return the values by name. Several values of a name are numbered from 1, `TM0.1`. No name is `feature`."""
    together: dict[str, list[float]] = {}
    for name, values in features:
        together.setdefault(name or "feature", []).extend(values)
    found: dict[str, float] = {}
    for name, values in together.items():
        numbered = {f"{name}.{place}": value for place, value in enumerate(values, 1)}
        found |= {name: values[0]} if len(values) == 1 else numbered
    return found


def _place_of_total(fields: Sequence[str]) -> int:
    """Return the index of the first number after the features."""
    numbers = (place for place in range(WITHOUT_FEATURES, len(fields)) if NUMERIC.fullmatch(fields[place]))
    return next(numbers, min(len(fields) - 1, WITHOUT_FEATURES))


def _check_alike(shape: Shape, first: Shape, where: str) -> None:
    (size, features), (first_size, first_features) = shape, first
    if size != first_size:
        raise DataError(f"{where}: expected {first_size} fields, as in the first line, found {size}; fix the line")
    if features != first_features:
        expected, actual = (" ".join(f"{name}×{values}" for name, values in f) for f in (first_features, features))
        raise DataError(
            f"{where}: expected the features of the first line ({shown(expected)}), found {shown(actual)}; give every "
            "line the same ones"
        )


def write(nbest: NBest, ranked: Sequence[Ranked]) -> Iterator[str]:
    """Write the format, as specified in NBestFormat.write."""
    for hypothesis, added, total in ranked:
        fields = list(hypothesis.raw)
        if len(fields) == WITHOUT_FEATURES:
            fields.insert(2, "")
        place = _place_of_total(fields)
        ours = " ".join(f"{PREFIX}{name}= {as_text(value)}" for name, value in added.items())
        fields[place - 1] = f"{fields[place - 1]} {ours}".strip()
        fields[place] = as_text(total)
        yield f" {BAR} ".join([str(nbest.number), hypothesis.text, *fields[2:]])
