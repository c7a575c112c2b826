"""The scores of a whole list from those of its shards.

A shard has every N-th chunk of `rescoring.chunks`, scored in the very batches of a run without shards.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.shards import Part, Shard, in_order
from fairseq_llrnn.rescoring.rescoring import Job, chunks
from fairseq_llrnn.rescoring.score_cache import VERSION, ScoreFile, Scores

SHARD = "shard"  # among the inputs of a shard's scores


def merge_scores(job: Job, paths: Sequence[str], given: Mapping[str, str], out: Path) -> ScoreFile:
    """Scores of all sentences of a job.

    Args:
        paths: what `llrnn rescore --shard` wrote, in any order. given: digests of the list, its source and the models,
            by the names that the shards have for them. out: where the scores are put together.

    Raises:
        DataError: shards that are missing, come twice, are not finished, or belong to something else.
    """
    parts = in_order([_described(path) for path in paths])
    then = {name: digest for name, digest in parts[0].inputs.items() if _is_file(name)}
    others = sorted(name for name in {*then, *given} if then.get(name) != given.get(name))
    if others:
        raise DataError(
            f"{parts[0].path}: expected the scores of what is given here, found those of something else "
            f"({', '.join(others)}); give the list, the source and the models that the shards were given"
        )
    out.unlink(missing_ok=True)
    scores = ScoreFile(out, parts[0].inputs)
    records = [_records(part.path) for part in parts]
    for number, chunk in enumerate(chunks(job)):
        part = parts[number % len(parts)]
        record = next(records[number % len(parts)], None)
        if record is None:
            raise DataError(
                f"{part.path}: shard {part.shard} is not finished; start its command again, which goes on where it "
                "stopped"
            )
        by_model, notes = _scores(part.path, record)
        sizes = [len(nbest.hypotheses) for nbest in chunk]
        if any([len(row) for row in rows] != sizes for rows in by_model.values()):
            raise _damaged(part.path)
        scores.append(by_model, notes)
    for part, rest in zip(parts, records, strict=True):
        if next(rest, None) is not None:
            raise _damaged(part.path)
    return scores


def _is_file(name: str) -> bool:
    return name in ("list", "source") or (name.startswith("--") and name.endswith("path"))


def _described(path: str) -> Part:
    try:
        with open(path, "rb") as file:
            record = json.loads(file.readline())
        if record["llrnn rescore"] != VERSION:
            raise ValueError
        inputs = {str(name): str(value) for name, value in record["inputs"].items()}
        return Part(path, Shard.parse(inputs.pop(SHARD)), inputs)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}; check the path and its rights") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{path}: expected what `llrnn rescore --shard` wrote, found something else") from None


def _records(path: str) -> Iterator[Any]:
    """All but the first line; one that a stop has cut short is none."""
    with open(path, "rb") as file:
        file.readline()
        for line in file:
            if line.endswith(b"\n"):
                try:
                    yield json.loads(line)
                except (ValueError, RecursionError):
                    raise _damaged(path) from None


def _scores(path: str, record: Any) -> tuple[Scores, Mapping[str, Mapping[str, int]]]:
    try:
        by_model = {
            str(model): [[-math.inf if score is None else float(score) for score in row] for row in rows]
            for model, rows in record["scores"].items()
        }
        notes = {str(m): {str(k): int(n) for k, n in counted.items()} for m, counted in record["notes"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _damaged(path) from None
    return by_model, notes


def _damaged(path: str) -> DataError:
    return DataError(
        f"{path}: expected the scores of this list, found others or damage; remove it and run its shard again"
    )
