"""Source, reference and systems' outputs, read and checked to be of the same sentences."""

import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.words import has_letters, words
from fairseq_llrnn.files.read_count import iter_sentences
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.nbest import FORMATS, open_nbest, settle

FAIRSEQ = FORMATS["fairseq"]


@dataclass(frozen=True)
class Texts:
    """N lines each; systems by name, in the order in which they were given."""

    source: list[str]
    reference: list[str]
    systems: dict[str, list[str]]

    def __len__(self) -> int:
        return len(self.reference)


def read_texts(source: str, reference: str, systems: Mapping[str, str]) -> Texts:
    """Read the files, plain or gzip; a system's may be what fairseq-generate printed.

    Raises:
        DataError: a file that cannot be read, is empty, or has another number of lines than the reference; a reference
            without words; an output of fairseq-generate without a hypothesis for every sentence, or unsound.
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            scratch = Path(folder)
            texts = Texts(
                _read(source, settle(source, scratch, "source")),
                _read(reference, settle(reference, scratch, "reference")),
                {name: _read_system(path, scratch, number) for number, (name, path) in enumerate(systems.items())},
            )
    except OSError as error:
        raise DataError(
            f"{error.filename or 'TMPDIR'}: {error.strerror or error}; make room for temporary files, or let "
            "TMPDIR name another folder"
        ) from error
    if not any(has_letters(line) for line in texts.reference):
        raise DataError(f"{reference}: expected a sentence a line, found no word in {len(texts):,} lines")
    for path, lines in ((source, texts.source), *zip(systems.values(), texts.systems.values(), strict=True)):
        if len(lines) != len(texts):
            raise DataError(
                f"{path}: expected {len(texts):,} lines, as many as {reference} has, found "
                f"{len(lines):,}; give files of the same sentences"
            )
    return texts


def count_words(path: str) -> Counter[str]:
    """How often each word occurs in a text, which may be large. Raises DataError."""
    counts: Counter[str] = Counter()
    for _, line in iter_sentences(path):
        counts.update(words(line))
    if not counts:
        raise DataError(f"{path}: expected the target text of the training, found no word in it")
    return counts


def _read(path: str, file: Path) -> list[str]:
    lines = [line for _, line in iter_sentences(file)]
    if not lines:
        raise DataError(f"{path}: expected a sentence a line, found an empty file")
    return lines


def _read_system(path: str, scratch: Path, number: int) -> list[str]:
    own = scratch / str(number)  # for what this file needs
    own.mkdir()
    file = settle(path, own, "system")
    if not any(line.startswith("H-") and FAIRSEQ.belongs(line) for _, line in iter_lines(file)):
        return _read(path, file)
    listed = open_nbest(file, own, FAIRSEQ.NAME)
    best: list[str] = []
    for sentence in listed:
        if sentence.number != len(best) or not sentence.hypotheses:
            break
        best.append(max(sentence.hypotheses, key=lambda hypothesis: hypothesis.score or 0.0).output)
    if len(best) <= listed.last:
        raise DataError(
            f"{path}: expected a hypothesis of every sentence from 0 to {listed.last}, found none of {len(best)}; "
            "generate again with --required-batch-size-multiple 1, and without leaving out sentences"
        )
    return best
