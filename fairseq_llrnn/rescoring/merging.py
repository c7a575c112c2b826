"""The scores of a whole list from those of its shards.

A shard has every N-th chunk of `rescoring.chunks`, scored in the very batches of a run without shards.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.shards import described, in_order, records, refused_as
from fairseq_llrnn.files.text_lines import place
from fairseq_llrnn.rescoring.rescoring import Job, chunks
from fairseq_llrnn.rescoring.score_cache import NAME, VERSION, ScoreFile, checked

DAMAGED = "expected the scores of this list, found others or damage; remove it and run its shard again"


def merge_scores(
    job: Job, paths: Sequence[str], given: Mapping[str, str], models: Sequence[str], out: Path
) -> ScoreFile:
    """Scores of all sentences of a job.

    Args:
        paths: what `llrnn rescore --shard` wrote, in any order. given: digests of the list, its source and the models,
            by the names that the shards have for them. models: whose scores are expected. out: where the scores are
            put together, a new file.

    Raises:
        DataError: shards that are missing, come twice, are not finished, or belong to something else.
    """
    parts = in_order([described(path, NAME, VERSION) for path in paths])
    then = {name: digest for name, digest in parts[0].inputs.items() if _is_file(name)}
    others = sorted(name for name in {*then, *given} if then.get(name) != given.get(name))
    if others:
        raise DataError(
            f"{parts[0].path}: expected the scores of what is given here, found those of something else "
            f"({', '.join(others)}); give the list, the source and the models that the shards were given"
        )
    scores = ScoreFile(out, parts[0].inputs)
    found = [itertools.islice(records(part.path, DAMAGED), 1, None) for part in parts]
    for number, chunk in enumerate(chunks(job)):
        part = parts[number % len(parts)]
        line, record = next(found[number % len(parts)], (0, None))
        if not line:
            raise DataError(
                f"{part.path}: shard {part.shard} is not finished; start its command again, which goes on where it "
                "stopped"
            )
        with refused_as(f"{place(part.path, line)}: {DAMAGED}"):
            by_model, notes = checked(record)
            sizes = [len(nbest.hypotheses) for nbest in chunk]
            if {*by_model} != {*models} or any([len(row) for row in rows] != sizes for rows in by_model.values()):
                raise ValueError
        scores.append(by_model, notes)
    for part, rest in zip(parts, found, strict=True):
        for line, _ in rest:
            raise DataError(f"{place(part.path, line)}: {DAMAGED}")
    return scores


def _is_file(name: str) -> bool:
    return name in ("list", "source", "--phrase-table") or (name.startswith("--") and name.endswith("path"))
