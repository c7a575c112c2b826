"""The records of n-best lists, and the interface of their formats."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_SCORE
from fairseq_llrnn.files.text_lines import ReadCount, shown

PREFIX = "llrnn_"  # of the names of the scores that we add
Lines = Iterable[tuple[int, str]]  # line numbers (from 1) and lines without their ends


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis.

    Attributes:
        text: the input of models.
        output: the text for readers and metrics, equal to `text` unless the format has two.
        score: its total in the list, higher is better, or None if the list has none.
        raw: the data from which its format writes it again.
        features: further scores of the list, by name, the same names for all hypotheses.
    """

    text: str
    output: str
    score: float | None
    raw: Sequence[str] = ()
    features: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class NBest:
    """The hypotheses (perhaps none) of sentence `number`, from 0, in the order of the list.

    Attributes:
        raw: the data from which its format writes the rest of the sentence.
        line: its first line, or 0 for a sentence that the list lacks.
    """

    number: int
    source: str | None
    hypotheses: list[Hypothesis] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    line: int = 0


class Ranked(NamedTuple):
    """A hypothesis with its added scores (by name) and its new total."""

    hypothesis: Hypothesis
    added: Mapping[str, float]
    total: float


class NBestFormat(Protocol):
    """A format of n-best lists."""

    NAME: str
    EXPECTED: str  # description of its lines, for errors

    def belongs(self, line: str) -> bool:
        """Return whether the line looks like one of this format."""

    def read(self, path: str, lines: Lines, count: ReadCount) -> Iterator[NBest]:
        """Yield the sentences in file order, from lines that are not blank, and count those that are read.

        Raises:
            DataError: a line does not follow the format, with file and line.
        """

    def write(self, nbest: NBest, ranked: Sequence[Ranked]) -> Iterator[str]:
        """Yield the lines of a sentence whose hypotheses have new totals, in this order."""


def number_of(text: str, where: str, what: str) -> float:
    """Return a finite number. Raises DataError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST_SCORE:  # NaN is not
        finite = f"number of at most {LARGEST_SCORE:g}" if math.isfinite(value) else "finite number"
        raise DataError(f"{where}: expected a {finite} as {what}, found {shown(text)}; fix the line")
    return value


def check_not_rescored(names: Iterable[str], where: str) -> None:
    """Raise DataError for a list that `llrnn rescore` wrote, because its totals are no longer those of its system."""
    for name in names:
        if name.startswith(PREFIX):
            raise DataError(
                f"{where}: found the score {name!r} of an earlier `llrnn rescore`; give the original list, and all "
                "models in one run"
            )


def as_text(value: float) -> str:
    """Return a score in six decimals, without an exponent."""
    return f"{value:.6f}"
