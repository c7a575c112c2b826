"""What every format of n-best lists is read into, and written from."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_SCORE
from fairseq_llrnn.files.text_lines import ReadCount, shown

PREFIX = "llrnn_"  # of the names of the scores that we add
# What decoders print that is no word: Moses' segmentation, |0-1| or |0-1,wa=0-0 1-1,total=-2.5|, and sentence ends.
_SEGMENTS = re.compile(r"(?<!\S)\|[0-9]+-[0-9]+(,[^|]*)?\|(?!\S)\s*")
_ENDS = re.compile(r"^(<s>(?!\S)\s*)+|(?<!\S)(</s>\s*)+$")
Lines = Iterable[tuple[int, str]]  # line numbers (from 1) and lines without their ends


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis.

    `text` is what models read; `output` what a person gets and a metric compares, the same text unless the format has
    two. `score` is its total in the list (None: the list has none), higher is better. `raw` is what its format needs
    to write it again.
    """

    text: str
    output: str
    score: float | None
    raw: tuple[str, ...] = ()


@dataclass(frozen=True)
class NBest:
    """The hypotheses of sentence `number`, from 0, in the order of the list; there may be none.

    `lines` are its numbered lines as they were read, `raw` what its format needs to write what is no hypothesis.
    """

    number: int
    source: str | None
    hypotheses: list[Hypothesis] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    lines: list[tuple[int, str]] = field(default_factory=list)


class Ranked(NamedTuple):
    """A hypothesis with the scores that were added to it (by name) and its new total."""

    hypothesis: Hypothesis
    added: Mapping[str, float]
    total: float


class NBestFormat(Protocol):
    """A way to write n-best lists."""

    NAME: str
    EXPECTED: str  # what its lines look like, for errors

    def belongs(self, line: str) -> bool:
        """Whether the line looks like one of this format."""

    def read(self, path: str, lines: Lines, count: ReadCount) -> Iterator[NBest]:
        """The sentences in the order of the file, from its lines that are not blank. count: of those that are read.

        Raises:
            DataError: a line that is not as this format says, with the file and line.
        """

    def write(self, nbest: NBest, ranked: Sequence[Ranked]) -> Iterator[str]:
        """The lines of a sentence whose hypotheses have new totals, in this order."""


def without_marks(text: str) -> str:
    """Return the text without Moses' segmentation marks, without `<s>` at its start and `</s>` at its end."""
    return _ENDS.sub("", _SEGMENTS.sub("", text).strip()).strip()


def number_of(text: str, where: str, what: str) -> float:
    """A finite number. Raises DataError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST_SCORE:  # NaN is not
        finite = f"number of at most {LARGEST_SCORE:g}" if math.isfinite(value) else "finite number"
        raise DataError(f"{where}: expected a {finite} as {what}, found {shown(text)}; fix the line")
    return value


def check_not_rescored(names: Iterable[str], where: str) -> None:
    """A list that we have rescored is not rescored again: its totals are not its system's. Raises DataError."""
    for name in names:
        if name.startswith(PREFIX):
            raise DataError(
                f"{where}: found the score {name!r}, which `llrnn rescore` has added; give the list as its system "
                "wrote it, and all models at once"
            )


def as_text(value: float) -> str:
    """How scores are written: the digits that matter, without an exponent."""
    return f"{value:.6f}"
