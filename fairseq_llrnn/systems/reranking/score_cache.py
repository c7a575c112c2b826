"""Scores of an n-best list on disk, a chunk of sentences a line, so that an interrupted run can resume.

The first line holds digests of the inputs. Each further line holds a chunk: for every model, the scores of each
sentence's hypotheses (null for −inf), and its counts. A line is on disk before the next one is computed. A line
truncated by a crash is dropped. The file is locked while it is open, so only one process uses it.
"""

import io
import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from annotated_types import Ge, Le, Lt
from pydantic import BaseModel

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.atomic_write import lock, writing
from fairseq_llrnn.files.numbers import LARGEST_LOG_PROB
from fairseq_llrnn.files.reading import check_regular_file

NAME, VERSION = "llrnn rescore", 1
MAX_LINE_BYTES = 1 << 26  # some thousand sentences
Scores = dict[str, list[list[float]]]  # by model: the scores of each sentence's hypotheses
StoredScores = Mapping[str, Sequence[Sequence[float | None]]]  # the same; None is −inf
Notes = Mapping[str, Mapping[str, int]]  # counts by model


class ScoreFile:
    """The scores so far. Opening an existing file resumes at its end.

    Attributes:
        sentences, hypotheses: numbers of those stored.
        notes: counts by model (such as of unknown words).

    Args:
        path: the file.
        inputs: digests or settings on which the scores depend, by readable names.

    Raises:
        DataError: the file cannot be written, is damaged, has other inputs, or is locked by another process.
    """

    def __init__(self, path: Path, inputs: Mapping[str, str]) -> None:
        self.path = path
        self.sentences = self.hypotheses = 0
        self.notes: dict[str, Counter[str]] = {}
        self._file: BinaryIO = io.BytesIO()
        try:
            with writing(path, "scores so far", ", or give --out in a folder that can be written to"):
                self._file = _open_locked(path)
                end = self._look_through(inputs)
                self._file.seek(end)
                self._file.truncate()
                if not end:
                    self._write({NAME: VERSION, "inputs": dict(inputs)})
        except DataError:
            self.close()
            raise

    def _look_through(self, inputs: Mapping[str, str]) -> int:
        """Return the end of the last complete line."""
        end = 0
        for number, line in enumerate(iter(lambda: self._file.readline(MAX_LINE_BYTES + 1), b""), 1):
            if not line.endswith(b"\n") and len(line) <= MAX_LINE_BYTES:
                break
            try:
                if len(line) > MAX_LINE_BYTES:
                    raise ValueError
                if number == 1:
                    self._check(json.loads(line), inputs)
                else:
                    self._count(*checked(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise DataError(
                    f"{self.path}, line {number}: expected the scores of an interrupted run, found something else; "
                    "remove the file to start again, or give another --out"
                ) from None
            end += len(line)
        return end

    def _check(self, record: Any, inputs: Mapping[str, str]) -> None:
        if record[NAME] != VERSION:
            raise ValueError
        recorded = record["inputs"]
        differing = sorted(name for name in {*recorded, *inputs} if recorded.get(name) != inputs.get(name))
        if differing:
            raise DataError(
                f"{self.path}: holds the scores of an interrupted run with other inputs ({', '.join(differing)}); give "
                "the same inputs to resume, remove the file to start again, or give another --out"
            )

    def _count(self, scores: StoredScores, notes: Notes) -> None:
        first, *_ = scores.values()
        self.sentences += len(first)
        self.hypotheses += sum(map(len, first))
        for model, counted in notes.items():
            self.notes.setdefault(model, Counter()).update(counted)

    def append(self, scores: Scores, notes: Notes) -> None:
        """Add a chunk. It is on disk when this returns."""
        record = {
            "scores": {
                model: [[score if math.isfinite(score) else None for score in row] for row in rows]
                for model, rows in scores.items()
            },
            "notes": {model: dict(counted) for model, counted in notes.items()},
        }
        self._count(scores, notes)
        self._write(record)

    def _write(self, record: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(record).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def __iter__(self) -> Iterator[dict[str, Sequence[float]]]:
        """Yield every sentence's scores of its hypotheses, by model."""
        with self.path.open("rb") as file:
            next(file)
            for line in file:
                by_model = json.loads(line)["scores"]
                for rows in zip(*by_model.values(), strict=True):
                    yield {
                        model: [-math.inf if score is None else score for score in row]
                        for model, row in zip(by_model, rows, strict=True)
                    }

    def close(self) -> None:
        self._file.close()

    def remove(self) -> None:
        """Delete the file when the scores are no longer needed."""
        self.path.unlink(missing_ok=True)  # before the lock is released
        self.close()


class Chunk(BaseModel):
    """A line of the file."""

    scores: dict[str, list[list[Annotated[float, Ge(-LARGEST_LOG_PROB), Le(LARGEST_LOG_PROB)] | None]]]
    notes: dict[str, dict[str, Annotated[int, Ge(0), Lt(1 << 63)]]]


def checked(line: bytes) -> tuple[StoredScores, Notes]:
    """Return the scores of a chunk, of the same hypotheses for every model, and the counts.

    Raises ValueError for an invalid line.
    """
    chunk = Chunk.model_validate_json(line, strict=True)
    if len({tuple(map(len, rows)) for rows in chunk.scores.values()}) != 1 or not {*chunk.notes} <= {*chunk.scores}:
        raise ValueError
    return chunk.scores, chunk.notes


def _open_locked(path: Path) -> BinaryIO:
    """Return the file, created if needed. Raises DataError if another process has it."""
    check_regular_file(path, may_be_pipe=False)
    while True:
        file = open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b")  # noqa: SIM115
        if lock(file.fileno()) is False:
            file.close()
            raise DataError(
                f"{path}: another `llrnn rescore` writes its scores there; wait until it ends, or give another --out"
            )
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
        file.close()  # another process removed it between our opening and locking
