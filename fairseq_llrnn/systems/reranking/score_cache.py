"""Scores of an n-best list on disk, a chunk of sentences a line, so that a run which was stopped can go on.

The first line says what the scores were computed from. Each further one holds a chunk: for every model the scores of
each sentence's hypotheses (null for −inf), and what was counted meanwhile. A line is on disk before the next one is
computed; one that was cut short by a crash is dropped. One process at a time has the file: it is locked while it is
open.
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
MAX_LINE_BYTES = 1 << 26  # some thousand sentences; what is longer is another kind of file
Scores = dict[str, list[list[float]]]  # by model: the scores of each sentence's hypotheses
StoredScores = Mapping[str, Sequence[Sequence[float | None]]]  # the same; None is −inf
Notes = Mapping[str, Mapping[str, int]]  # by model: what was counted


class ScoreFile:
    """The scores so far; opening a file that exists goes on where it ends.

    `sentences` and `hypotheses` are how many it holds, `notes` by model what was counted (such as unknown words).

    Args:
        path: the file. inputs: what the scores depend on, by a name that a person understands: digests or settings.

    Raises:
        DataError: it cannot be written, is damaged, was made from something else, or another process writes it.
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
        """Where the last whole line ends."""
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
                    f"{self.path}, line {number}: expected the scores of a run that was stopped, found something else; "
                    "remove the file to start again, or give another --out"
                ) from None
            end += len(line)
        return end

    def _check(self, record: Any, inputs: Mapping[str, str]) -> None:
        if record[NAME] != VERSION:
            raise ValueError
        then = record["inputs"]
        others = sorted(name for name in {*then, *inputs} if then.get(name) != inputs.get(name))
        if others:
            raise DataError(
                f"{self.path}: holds the scores of a run that was stopped and had other inputs ({', '.join(others)}); "
                "give the same ones to go on, remove the file to start again, or give another --out"
            )

    def _count(self, scores: StoredScores, notes: Notes) -> None:
        first, *_ = scores.values()
        self.sentences += len(first)
        self.hypotheses += sum(map(len, first))
        for model, counted in notes.items():
            self.notes.setdefault(model, Counter()).update(counted)

    def append(self, scores: Scores, notes: Notes) -> None:
        """Add a chunk; on disk when this returns."""
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
        """For every sentence, by model, its hypotheses' scores."""
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
        """The scores are needed no more."""
        self.path.unlink(missing_ok=True)  # before another process can have it
        self.close()


class Chunk(BaseModel):
    """A line of the file."""

    scores: dict[str, list[list[Annotated[float, Ge(-LARGEST_LOG_PROB), Le(LARGEST_LOG_PROB)] | None]]]
    notes: dict[str, dict[str, Annotated[int, Ge(0), Lt(1 << 63)]]]


def checked(line: bytes) -> tuple[StoredScores, Notes]:
    """The scores of a chunk, which are of the same hypotheses for every model, and what was counted.

    Raises ValueError for what is none.
    """
    chunk = Chunk.model_validate_json(line, strict=True)
    if len({tuple(map(len, rows)) for rows in chunk.scores.values()}) != 1 or not {*chunk.notes} <= {*chunk.scores}:
        raise ValueError
    return chunk.scores, chunk.notes


def _open_locked(path: Path) -> BinaryIO:
    """The file, empty if it was not there; raises DataError where another process has it."""
    check_regular_file(path, may_be_pipe=False)
    while True:
        file = open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b")  # noqa: SIM115
        if lock(file.fileno()) is False:
            file.close()
            raise DataError(
                f"{path}: another `llrnn rescore` is writing its scores there; wait until it has ended, or give "
                "another --out"
            )
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
        file.close()  # the other process ended, and removed it, between our opening and locking
