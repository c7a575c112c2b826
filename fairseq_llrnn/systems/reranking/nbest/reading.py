"""Open n-best lists: detect the format, check the list once, and yield its sentences in order, any number of times.

fairseq-generate writes sentences in the order of its batches. So the sentences are stored in an unnamed temporary file,
which exists as long as the list. Memory holds only the place of each sentence.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, cast

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.atomic_write import writing
from fairseq_llrnn.files.text_lines import ReadCount, iter_lines, place, shown
from fairseq_llrnn.systems.reranking.nbest import fairseq_output, json_lines, moses
from fairseq_llrnn.systems.reranking.nbest.lists import Hypothesis, NBest, NBestFormat
from fairseq_llrnn.systems.reranking.nbest.marks import BARS, FACTORED, MARKED, TAGS, Factors, has_tags, without_marks

FORMATS: dict[str, NBestFormat] = {
    module.NAME: cast(NBestFormat, module) for module in (fairseq_output, json_lines, moses)
}
UNSORTED = "sentences out of order, sorted by their numbers"
WITHOUT_HYPOTHESES = "sentences without hypotheses"


@dataclass
class NBestFile:
    """A checked list, whose sentence numbers increase. Iterating reads its stored sentences again.

    Attributes:
        hypotheses: their number.
        last: the largest sentence number.
        scored: whether every hypothesis has a total.
        has_sources: whether every sentence has a source.
        features: names of the hypotheses' features.
        factors: of its words.
        notes: counts of irregularities.
        first: the line of the first one of each kind that the reader may have to change.
    """

    path: Path | str
    format: NBestFormat
    hypotheses: int = 0
    last: int = -1
    scored: bool = True
    has_sources: bool = True
    features: tuple[str, ...] = ()
    factors: Factors = field(default_factory=Factors)
    notes: Counter[str] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)
    _lines: dict[int, int] = field(default_factory=dict)  # by sentence: the first line
    _places: dict[int, int] = field(default_factory=dict)  # by sentence: the place in the copy
    _copy: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    @property
    def sentences(self) -> int:
        """Return the number of sentences."""
        return len(self._places)

    def __iter__(self) -> Iterator[NBest]:
        for number in sorted(self._places):
            self._copy.seek(self._places[number])
            stored = json.loads(self._copy.readline())
            hypotheses = [Hypothesis(**hypothesis) for hypothesis in stored["hypotheses"]]
            cleaned = [replace(h, text=self._words(h.text), output=self._words(h.output)) for h in hypotheses]
            yield NBest(**stored | {"hypotheses": cleaned})

    def _words(self, text: str) -> str:
        text = without_marks(text)
        return self.factors.first(text) if self.factors.are_used else text

    def add(self, nbest: NBest) -> None:
        """Store a sentence, and count its irregularities. Raises DataError for a repeated one."""
        if nbest.number in self._places:
            raise DataError(
                f"{place(self.path, nbest.line)}: sentence {nbest.number} is repeated (it was there from line "
                f"{self._lines[nbest.number]} on); expected each number once, with all its hypotheses (does the file "
                "have the outputs of several runs?)"
            )
        self.notes[UNSORTED] += nbest.number < self.last
        self.last = max(self.last, nbest.number)
        self._lines[nbest.number], self._places[nbest.number] = nbest.line, self._copy.tell()
        self._copy.write(json.dumps(vars(nbest), default=vars).encode() + b"\n")
        self.hypotheses += len(nbest.hypotheses)
        self.notes[WITHOUT_HYPOTHESES] += not nbest.hypotheses
        for h in nbest.hypotheses:
            self.features = self.features or tuple(h.features)
            found = {
                MARKED: (without_marks(h.text), without_marks(h.output)) != (h.text, h.output),
                BARS: self.factors.count(h.text),
                TAGS.format("hypotheses"): has_tags(h.text),
            }
            for remark in (remark for remark, is_found in found.items() if is_found):
                self.notes[remark] += 1
                self.first.setdefault(remark, nbest.line)
        self.scored &= all(h.score is not None for h in nbest.hypotheses)
        self.has_sources &= nbest.source is not None


def open_nbest(path: Path | str, format_name: str | None = None) -> NBestFile:
    """Check a list and return it.

    Args:
        path: plain or packed.
        format_name: of FORMATS (None: detect it).

    Raises:
        DataError: the file is missing or empty, a line does not follow the format, a sentence is repeated, or the
            numbers skip most sentences. Or there is no room for the copy.
    """
    format_, count = FORMATS[format_name] if format_name else _detect(path), ReadCount(path, "lines", later=True)
    with writing(path, "copy of the list in the folder for temporary files", ", or set TMPDIR to another folder"):
        lists = NBestFile(path, format_)
        for nbest in format_.read(str(path), count.lines(), count):
            lists.add(nbest)
        lists._copy.flush()
    sentences, last = lists.sentences, lists.last
    if not lists.hypotheses:
        content = f"{sentences:,} sentences without any hypothesis" if sentences else "no sentence"
        raise DataError(
            f"{path}: expected an n-best list with {format_.EXPECTED}, found {content}; is it the right file?"
        )
    count.done()
    if last + 1 > 2 * sentences + 1000:
        raise DataError(
            f"{path}: expected sentence numbers from 0 without large gaps, found {sentences:,} sentences and {last:,} "
            "as the largest number; number them like the lines of the source"
        )
    if format_ is fairseq_output:
        del lists.notes[UNSORTED]  # as fairseq-generate always does
    if lists.factors.are_used:
        lists.notes[FACTORED], lists.first[FACTORED] = lists.notes.pop(BARS), lists.first[BARS]
    lists.notes = +lists.notes
    return lists


def _detect(path: Path | str) -> NBestFormat:
    first = ""
    for _, line in iter_lines(path):
        for format_ in FORMATS.values():
            if format_.belongs(line):
                return format_
        first = first or line.strip()
    expected = "; or ".join(format_.EXPECTED for format_ in FORMATS.values())
    content = f"lines like {shown(first)}" if first else "an empty file"
    raise DataError(f"{path}: expected an n-best list, with {expected}; found {content}; is it the right file?")
