"""Phrase tables of Moses, and how well they cover a hypothesis.

Sizes: W words of the longest phrase, J words of a hypothesis.

A table is text, plain or gzip:

    source words ||| target words ||| scores ||| source-target links, 0-0 1-1 ||| counts of target, source, both ||| …

Scores are probabilities, equally many on each line. Moses' own four are φ(source | target), its lexical weight,
φ(target | source), its lexical weight. Links and counts may be missing. Further fields are kept.

A `PhraseTable` gives a hypothesis a feature for each of its columns (Cho et al. 2014, §3.1 adds one).

A covering splits a hypothesis y into spans. Each span is the target side of a phrase pair whose source side occurs in
the source x, or a single uncovered word. Source phrases may be in any order and overlap. Without distortion the best
covering is found exactly, from left to right:

    v(u)      = max over pairs (f, u), f in x, of  mean over columns c of log p_c(f, u)          −∞ if there is none
    best(0)   = 0
    best(k)   = max( best(k − 1) + UNCOVERED,  max over j < k of best(j) + v(y_j … y_{k−1}) )
    feature c = Σ log p_c over the pairs of the best covering, and UNCOVERED for each uncovered word

Ties go to the covering with the shortest last span, and so on. A word is left uncovered only if that is better. A score
of 0 counts as e^LEAST, as in Moses. The best covering takes J·W look-ups.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TextIO

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_SCORE
from fairseq_llrnn.files.text_lines import ReadCount, place, sentence_of, shown

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
    rest: tuple[str, ...] = ()  # further fields, unchanged

    def line(self) -> str:
        scores = " ".join(f"{score:.9g}" for score in self.scores)
        links = " ".join(f"{i}-{j}" for i, j in self.links)
        counts = " ".join(f"{count:.15g}" for count in self.counts)
        fields = " ".join(self.source), " ".join(self.target), scores, links, counts, *self.rest
        return f" {BAR} ".join(fields).rstrip()


def iter_phrase_pairs(count: ReadCount) -> Iterator[PhrasePair]:
    """Yield the phrase pairs of a table. The caller counts each as read or left out.

    Raises:
        DataError: the file cannot be read or has no phrase pairs, or a line is invalid. Invalid are too few fields, an
            empty side, negative scores or scores unlike the first line's in number, and links outside the phrases.
    """
    columns: int | None = None
    path = count.file
    for number, line in count.lines():
        pair = _parsed(line, place(path, number))
        if columns is None:
            columns = len(pair.scores)
        elif len(pair.scores) != columns:
            raise DataError(
                f"{place(path, number)}: expected {columns} scores, as in the first line, found {len(pair.scores)}; "
                "fix the line, or make the table again"
            )
        yield pair
    if columns is None:
        raise DataError(
            f"{path}: expected a phrase table, with lines such as `the house {BAR} la maison {BAR} 0.5 0.2`, found an "
            "empty file; is it the right file?"
        )


def read_phrase_table(path: Path | str) -> Iterator[PhrasePair]:
    """Yield all phrase pairs of a table. Raises as `iter_phrase_pairs`."""
    count = ReadCount(path, "phrase pairs")
    for pair in iter_phrase_pairs(count):
        count.read += 1
        yield pair


def _parsed(line: str, where: str) -> PhrasePair:
    fields = [field.strip() for field in line.split(BAR)]
    if len(fields) < LEAST_FIELDS:
        raise DataError(
            f"{where}: expected `source {BAR} target {BAR} scores {BAR} links {BAR} counts`, found {len(fields)} of "
            f"these fields in {shown(line)}; fix the line"
        )
    source, target = tuple(fields[0].split()), tuple(fields[1].split())
    if not source or not target:
        side = "source" if not source else "target"
        raise DataError(f"{where}: expected words on both sides, found an empty {side} in {shown(line)}; fix the line")
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


def write_phrase_table(file: TextIO, pairs: Iterable[PhrasePair]) -> int:
    """Write the lines of a table and return their number. Raises OSError."""
    number = 0
    for pair in pairs:
        file.write(pair.line() + "\n")
        number += 1
    return number


UNCOVERED = -10.0  # nats, in every column
LEAST = -100.0
NOT_IN_SOURCES = "of phrases that no source has"
WORDS, UNKNOWN = "words", "words without a phrase"  # of the hypotheses

Columns = tuple[float, ...]  # log p of a pair, or sums of these, by column
Pairs = dict[str, tuple[float, Columns]]  # by target phrase: the best mean over columns, and the columns


@dataclass
class PhraseTable:
    """The pairs of a table whose source phrases occur in some sources, by source phrase."""

    pairs: dict[str, Pairs]
    num_columns: int
    longest_source: int
    longest_target: int
    notes: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, path: Path | str, sources: Iterable[str]) -> PhraseTable:
        """Read the pairs that occur in these sources. Raises DataError for an invalid table."""
        sentences = [sentence_of(source).split() for source in sources]
        spans: dict[int, set[str]] = {}  # by length
        pairs: dict[str, Pairs] = {}
        longest = num_columns = 0
        count = ReadCount(path, "phrase pairs")
        for pair in iter_phrase_pairs(count):
            size, num_columns = len(pair.source), len(pair.scores)
            if size not in spans:
                spans[size] = {" ".join(s[i : i + size]) for s in sentences for i in range(len(s) - size + 1)}
            source = " ".join(pair.source)
            if source not in spans[size]:
                count.left_out[NOT_IN_SOURCES] += 1
                continue
            count.read += 1
            columns = tuple(max(LEAST, math.log(score)) if score else LEAST for score in pair.scores)
            _keep_best(pairs.setdefault(source, {}), " ".join(pair.target), sum(columns) / len(columns), columns)
            longest = max(longest, len(pair.target))
        return cls(pairs, num_columns, max(spans), longest)

    def scores(self, sources: Iterable[str], hypotheses: Iterable[str]) -> list[Columns]:
        """Return the features of every hypothesis."""
        pairs_of = cache(self._of_source)
        return [self._cover(pairs_of(s), h) for s, h in zip(sources, hypotheses, strict=True)]

    def _of_source(self, source: str) -> Pairs:
        """Return the best pair for each target phrase."""
        words = sentence_of(source).split()
        best: Pairs = {}
        for i in range(len(words)):
            for end in range(i + 1, min(i + self.longest_source, len(words)) + 1):
                for target, (mean, columns) in self.pairs.get(" ".join(words[i:end]), {}).items():
                    _keep_best(best, target, mean, columns)
        return best

    def _cover(self, pairs: Pairs, hypothesis: str) -> Columns:
        words, uncovered = hypothesis.split(), (UNCOVERED,) * self.num_columns
        best: list[tuple[float, Columns]] = [(0.0, (0.0,) * self.num_columns)]
        left: list[int] = [0]  # uncovered words up to here
        for k in range(1, len(words) + 1):
            chosen, row, begin = -math.inf, uncovered, k - 1
            for j in range(k - 1, max(-1, k - 1 - self.longest_target), -1):
                mean, columns = pairs.get(" ".join(words[j:k]), (-math.inf, uncovered))
                if best[j][0] + mean > chosen:
                    chosen, row, begin = best[j][0] + mean, columns, j
            is_left = best[k - 1][0] + UNCOVERED > chosen
            if is_left:
                chosen, row, begin = best[k - 1][0] + UNCOVERED, uncovered, k - 1
            best.append((chosen, tuple(a + b for a, b in zip(best[begin][1], row, strict=True))))
            left.append(left[begin] + is_left)
        self.notes[WORDS] += len(words)
        self.notes[UNKNOWN] += left[-1]
        return best[-1][1]


def _keep_best(pairs: Pairs, target: str, mean: float, columns: Columns) -> None:
    if target not in pairs or mean > pairs[target][0]:
        pairs[target] = mean, columns
