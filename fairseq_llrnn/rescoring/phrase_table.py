"""Phrase tables in the text format of Moses, plain or gzip:

    source words ||| target words ||| scores ||| source-target links, 0-0 1-1 ||| counts of target, source, both ||| …

Scores are probabilities, as many on each line. Moses' own four are φ(source | target), its lexical weight, φ(target |
source), its lexical weight. Links and counts may be missing; what stands behind them is kept.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.atomic_write import whole_binary
from fairseq_llrnn.files.numbers import LARGEST_SCORE
from fairseq_llrnn.files.text_lines import ReadCount, place, shown

BAR = "|||"
FACTOR = "|"  # between the factors of a word, to Moses
LEAST_FIELDS = 3  # source, target, scores
LINK = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")


@dataclass(frozen=True)
class PhrasePair:
    """A line of a phrase table."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    scores: tuple[float, ...]
    links: tuple[tuple[int, int], ...] = ()  # (source place, target place)
    counts: tuple[float, ...] = ()
    rest: tuple[str, ...] = ()  # fields behind these, as they were read

    def line(self) -> str:
        scores = " ".join(f"{score:.9g}" for score in self.scores)
        links = " ".join(f"{i}-{j}" for i, j in self.links)
        counts = " ".join(f"{count:.15g}" for count in self.counts)
        fields = " ".join(self.source), " ".join(self.target), scores, links, counts, *self.rest
        return f" {BAR} ".join(fields).rstrip()


def iter_phrase_pairs(count: ReadCount) -> Iterator[PhrasePair]:
    """The phrase pairs of a table, in its order; whoever uses them counts them as read, or leaves them out.

    Raises:
        DataError: a file that cannot be read or has no phrase pairs; a line with too few fields, an empty side, scores
            that are no numbers of 0 or more or not as many as on the first line, or links outside the phrases.
    """
    columns: int | None = None
    path = count.file
    for number, line in count.lines():
        pair = _parsed(line, place(path, number))
        if columns is None:
            columns = len(pair.scores)
        elif len(pair.scores) != columns:
            raise DataError(
                f"{place(path, number)}: expected as many scores as in the first line, {columns}, found "
                f"{len(pair.scores)}; fix the line, or make the table again"
            )
        yield pair
    if columns is None:
        raise DataError(
            f"{path}: expected a phrase table, with lines such as `the house {BAR} la maison {BAR} 0.5 0.2`, found an "
            "empty file; is it the right file?"
        )


def read_phrase_table(path: Path | str) -> Iterator[PhrasePair]:
    """All of them. Raises as above."""
    count = ReadCount(path, "phrase pairs")
    for pair in iter_phrase_pairs(count):
        count.read += 1
        yield pair


def num_scores(path: Path | str) -> int:
    """How many scores each pair of a table has, from its first line. Raises DataError."""
    return len(next(read_phrase_table(path)).scores)


def _parsed(line: str, where: str) -> PhrasePair:
    fields = [field.strip() for field in line.split(BAR)]
    if len(fields) < LEAST_FIELDS:
        raise DataError(
            f"{where}: expected `source {BAR} target {BAR} scores {BAR} links {BAR} counts`, found {len(fields)} of "
            f"these fields in {shown(line)}; fix the line"
        )
    source, target = tuple(fields[0].split()), tuple(fields[1].split())
    if not source or not target:
        which = "source" if not source else "target"
        raise DataError(f"{where}: expected words on both sides, found an empty {which} in {shown(line)}; fix the line")
    scores = _numbers(fields[2], where, "scores, probabilities of 0 or more")
    if not scores:
        raise DataError(f"{where}: expected scores in the third field, found none in {shown(line)}; fix the line")
    links = _links(fields[3], len(source), len(target), where) if len(fields) > 3 else ()
    counts = _numbers(fields[4], where, "counts of 0 or more") if len(fields) > 4 else ()
    return PhrasePair(source, target, scores, links, counts, tuple(fields[5:]))


def _numbers(text: str, where: str, what: str) -> tuple[float, ...]:
    try:
        values = tuple(float(part) for part in text.split())
    except ValueError:
        values = (-1.0,)
    if not all(0.0 <= value <= LARGEST_SCORE for value in values):  # NaN is not
        raise DataError(f"{where}: expected {what}, found {shown(text)}; fix the line")
    return values


def _links(text: str, num_source: int, num_target: int, where: str) -> tuple[tuple[int, int], ...]:
    links = []
    for part in text.split():
        match = LINK.fullmatch(part)
        if match is None or int(match[1]) >= num_source or int(match[2]) >= num_target:
            raise DataError(
                f"{where}: expected links `SOURCE-TARGET` between {num_source} source and {num_target} target words, "
                f"counted from 0, found {shown(part)}; fix the line"
            )
        links.append((int(match[1]), int(match[2])))
    return tuple(links)


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """A text file that takes its name when it is whole, packed if it ends in .gz. Raises OSError."""
    with whole_binary(path) as raw:
        if path.suffix == ".gz":
            with gzip.GzipFile("", "wb", 6, raw, 0) as packed, io.TextIOWrapper(packed, "utf-8", newline="\n") as file:
                yield file
        else:
            with open(raw.fileno(), "w", encoding="utf-8", newline="\n", closefd=False) as file:
                yield file


def write_phrase_table(path: Path, pairs: Iterable[PhrasePair]) -> int:
    """Write a table; returns how many pairs it has. Raises OSError."""
    with writing(path) as file:
        return write_phrase_pairs(file, pairs)


def write_phrase_pairs(file: TextIO, pairs: Iterable[PhrasePair]) -> int:
    """Write the lines of a table; returns how many pairs it has. Raises OSError."""
    many = 0
    for pair in pairs:
        file.write(pair.line() + "\n")
        many += 1
    return many
