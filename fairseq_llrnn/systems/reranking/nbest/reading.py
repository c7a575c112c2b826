"""Open n-best lists: detect the format, check the list once, and yield its sentences in order, any number of times.

fairseq-generate writes sentences in the order of its batches. A list in another order is sorted on disk. Memory holds
only the place of each sentence.
"""

import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.reading import check_regular_file
from fairseq_llrnn.files.text_lines import ReadCount, iter_lines, place, shown
from fairseq_llrnn.systems.reranking.nbest import fairseq_output, json_lines, moses
from fairseq_llrnn.systems.reranking.nbest.lists import Lines, NBest, NBestFormat
from fairseq_llrnn.systems.reranking.nbest.marks import BARS, FACTORED, MARKED, TAGS, Factors, has_tags, without_marks

FORMATS: dict[str, NBestFormat] = {
    module.NAME: cast(NBestFormat, module) for module in (fairseq_output, moses, json_lines)
}
STDIN = "-"
UNSORTED = "sentences out of order, sorted by their numbers"
WITHOUT_HYPOTHESES = "sentences without hypotheses"


@dataclass(frozen=True)
class NBestFile:
    """A checked list, whose sentence numbers increase. Iterating reads it again.

    Attributes:
        sentences, hypotheses: their numbers.
        last: the largest sentence number.
        scored: whether every hypothesis has a total.
        has_sources: whether every sentence has a source.
        factors: of its words.
        notes: counts of irregularities.
        first: the line of the first one of each kind that the reader may have to change.
    """

    name: str
    file: Path
    format: NBestFormat
    is_sorted_copy: bool
    sentences: int
    hypotheses: int
    last: int
    scored: bool
    has_sources: bool
    factors: Factors
    notes: Counter[str]
    first: dict[str, int]

    def __iter__(self) -> Iterator[NBest]:
        lines = _numbered_lines(self.file) if self.is_sorted_copy else iter_lines(self.file)
        for nbest in _sentences(self.format, self.name, lines, ReadCount(self.name)):
            for i, h in enumerate(nbest.hypotheses):
                nbest.hypotheses[i] = replace(h, text=self._words(h.text), output=self._words(h.output))
            yield nbest

    def _words(self, text: str) -> str:
        text = without_marks(text)
        return self.factors.first(text) if self.factors.are_used else text


def settle(path: Path | str, scratch: Path, what: str) -> Path:
    """Return a file that can be read repeatedly: itself, or a copy of stdin (`-`) in the folder `scratch`."""
    if str(path) != STDIN:
        check_regular_file(path)
        return Path(path)
    copy = scratch / f"{what} from stdin"  # errors show the name
    with copy.open("wb") as target:
        shutil.copyfileobj(sys.stdin.buffer, target)
    return copy


def open_nbest(path: Path | str, scratch: Path, format_name: str | None = None) -> NBestFile:
    """Check a list and return it.

    Args:
        path: plain or gzip, or `-` for stdin.
        scratch: a folder for copies.
        format_name: of FORMATS (None: detect it).

    Raises:
        DataError: the file is missing or empty, a line does not follow the format, a sentence is repeated, or the
            numbers skip most sentences.
    """
    name = "stdin" if str(path) == STDIN else str(path)
    file = settle(path, scratch, "nbest")
    format_ = FORMATS[format_name] if format_name else _detect(name, file)
    notes, first, factors, count = Counter[str](), dict[str, int](), Factors(), ReadCount(name, "lines")
    sentences = hypotheses = 0
    before, last, scored, has_sources = -1, -1, True, True
    for nbest in _sentences(format_, name, iter_lines(file), count):
        if nbest.number == before:
            raise _repeated(name, nbest.number, nbest.lines[0][0], None)
        notes[UNSORTED] += nbest.number < last
        before, last = nbest.number, max(last, nbest.number)
        sentences += 1
        hypotheses += len(nbest.hypotheses)
        notes[WITHOUT_HYPOTHESES] += not nbest.hypotheses
        for h in nbest.hypotheses:
            found = {
                MARKED: (without_marks(h.text), without_marks(h.output)) != (h.text, h.output),
                BARS: factors.count(h.text),
                TAGS.format("hypotheses"): has_tags(h.text),
            }
            for remark in (remark for remark, is_found in found.items() if is_found):
                notes[remark] += 1
                first.setdefault(remark, nbest.lines[0][0])
        scored &= all(h.score is not None for h in nbest.hypotheses)
        has_sources &= nbest.source is not None
    if not hypotheses:
        content = f"{sentences:,} sentences without any hypothesis" if sentences else "no sentence"
        raise DataError(
            f"{name}: expected an n-best list with {format_.EXPECTED}, found {content}; is it the right file?"
        )
    count.done()
    if last + 1 > 2 * sentences + 1000:
        raise DataError(
            f"{name}: expected sentence numbers from 0 without large gaps, found {sentences:,} sentences and {last:,} "
            "as the largest number; number them like the lines of the source"
        )
    is_sorted_copy = bool(notes[UNSORTED])
    if is_sorted_copy:
        file = _sorted_copy(name, _sentences(format_, name, iter_lines(file), ReadCount(name)), scratch)
    if format_ is fairseq_output:
        del notes[UNSORTED]  # as fairseq-generate always does
    if factors.are_used:
        notes[FACTORED], first[FACTORED] = notes.pop(BARS), first[BARS]
    return NBestFile(
        name, file, format_, is_sorted_copy, sentences, hypotheses, last, scored, has_sources, factors, +notes, first
    )


def _sentences(format_: NBestFormat, name: str, lines: Lines, count: ReadCount) -> Iterator[NBest]:
    """Yield the sentences in line order, as the file has them."""

    def filled() -> Lines:
        for number, line in lines:
            if line.strip():
                count.entries += 1
                yield number, line

    return format_.read(name, filled(), count)


def _detect(name: str, file: Path) -> NBestFormat:
    first = ""
    for _, line in iter_lines(file):
        for format_ in (json_lines, moses, fairseq_output):
            if format_.belongs(line):
                return cast(NBestFormat, format_)
        first = first or line.strip()
    expected = "; or ".join(format_.EXPECTED for format_ in FORMATS.values())
    content = f"lines like {shown(first)}" if first else "an empty file"
    raise DataError(f"{name}: expected an n-best list, with {expected}; found {content}; is it the right file?")


def _repeated(name: str, sentence: int, line: int, earlier: int | None) -> DataError:
    before = "just before" if earlier is None else f"from line {earlier} on"
    return DataError(
        f"{place(name, line)}: sentence {sentence} is repeated (it was there {before}); expected each number once, "
        "with all its hypotheses (does the file have the outputs of several runs?)"
    )


# ---- sorting on disk -------------------------------------------------------------------------------------------------


def _sorted_copy(name: str, sentences: Iterator[NBest], scratch: Path) -> Path:
    """Write the lines in sentence order with their line numbers: a JSON list [[number, line], …] per sentence."""
    copy = scratch / "sorted"
    places: dict[int, tuple[int, int]] = {}  # sentence -> its first line, and its offset
    with tempfile.TemporaryFile(dir=scratch) as unsorted, copy.open("wb") as file:
        for nbest in sentences:
            first = nbest.lines[0][0]
            if nbest.number in places:
                raise _repeated(name, nbest.number, first, places[nbest.number][0])
            places[nbest.number] = first, unsorted.tell()
            unsorted.write(json.dumps(nbest.lines).encode() + b"\n")
        for _, (_, begin) in sorted(places.items()):
            unsorted.seek(begin)
            file.write(unsorted.readline())
    return copy


def _numbered_lines(path: Path) -> Lines:
    with path.open("rb") as file:
        for sentence in file:
            yield from json.loads(sentence)
