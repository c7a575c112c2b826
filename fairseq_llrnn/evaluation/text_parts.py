"""Scores of a part of a text on disk, and the scores of the whole text from all of its parts.

A part is JSON lines: what it is of, then its pieces (the lines of a batch), then how many pieces the whole text has and
its SHA-256; a part without this last line is not whole.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.text_bits import LineScore
from fairseq_llrnn.files.atomic_write import whole_file
from fairseq_llrnn.files.shards import SHARD, Part, Shard, count, described, in_order, log_prob, records, refused_as
from fairseq_llrnn.files.text_lines import place

NAME, VERSION = "llrnn score", 1
DAMAGED = "expected a whole part, found one that ends early or was changed; run its shard again"
OPEN = "--open"  # among the inputs: whether unknown words are spelled


class HashedLines:
    """Lines whose SHA-256 is known when all of them were read."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines, self._digest = lines, hashlib.sha256()

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._digest.update(line.encode())
            yield line

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


def write_part(
    path: Path, shard: Shard, inputs: Mapping[str, str], lines: HashedLines,
    pieces: Iterable[Sequence[LineScore] | None],
) -> int:  # fmt: skip
    """Write the pieces of a shard; returns how many lines they have. The file is whole, or not there.

    Args:
        pieces: of the whole text, made from `lines`; None for those of other shards.

    Raises:
        OSError.
    """
    many = scored = 0
    with whole_file(path) as file:
        file.write(json.dumps({NAME: VERSION, "inputs": {**inputs, SHARD: str(shard)}}) + "\n")
        for piece in pieces:
            many += 1
            if piece is not None:
                scored += len(piece)
                file.write(json.dumps({"lines": [_packed(line) for line in piece]}, ensure_ascii=False) + "\n")
        file.write(json.dumps({"pieces": many, "text": lines.digest}) + "\n")
    return scored


def merged(paths: Sequence[str]) -> Iterator[LineScore]:
    """The scores of all lines in order, from all parts of a text, which are looked at before the first is asked for.

    Raises:
        DataError: parts that are not whole or not of one text and model, one that is missing or comes twice.
    """
    return _lines(in_order([_described(path) for path in paths]))


def _lines(parts: Sequence[Part]) -> Iterator[LineScore]:
    many = int(parts[0].inputs["pieces"])
    pieces = [_pieces(part.path) for part in parts]
    for number in range(many):
        piece = next(pieces[number % len(parts)], None)
        if piece is None:
            raise DataError(f"{parts[number % len(parts)].path}: {DAMAGED}")
        yield from piece
    for part, rest in zip(parts, pieces, strict=True):
        if next(rest, None) is not None:
            raise DataError(f"{part.path}: {DAMAGED}")


def was_open(path: str) -> bool:
    """Whether the scores of a part spell unknown words. Raises DataError."""
    return described(path, NAME, VERSION).inputs.get(OPEN) == str(True)


def _described(path: str) -> Part:
    """What a file is a part of, from its first line and its last one."""
    part = described(path, NAME, VERSION)
    number = 1
    end: Any = None
    for number, end in records(path, DAMAGED):  # noqa: B007
        pass
    with refused_as(f"{place(path, number)}: {DAMAGED}"):
        return replace(part, inputs={**part.inputs, "pieces": str(count(end["pieces"])), "text": str(end["text"])})


def _pieces(path: str) -> Iterator[list[LineScore]]:
    for number, record in itertools.islice(records(path, DAMAGED), 1, None):
        with refused_as(f"{place(path, number)}: {DAMAGED}"):
            if "pieces" in record:
                return
            piece = [_unpacked(values) for values in record["lines"]]
        yield piece


def _packed(line: LineScore) -> list[Any]:
    logs = [[x if math.isfinite(x) else None for x in values] for values in (line.log_probs, line.spelt)]
    return [line.number, list(line.words), list(line.unknown), *logs, line.too_long_for]


def _unpacked(values: list[Any]) -> LineScore:
    """Raises ValueError or TypeError for what is no scored line."""
    number, words, unknown, *logs, too_long_for = values
    log_probs, spelt = ([log_prob(x) for x in row] for row in logs)
    for word in words:
        word.encode()  # half of a character, too, is a ValueError
    if isinstance(words, str) or not all(isinstance(u, bool) for u in unknown):
        raise ValueError
    if too_long_for is None and not len(words) == len(unknown) == len(log_probs) - 1 == len(spelt):
        raise ValueError
    return LineScore(
        count(number), words, unknown, log_probs, spelt, None if too_long_for is None else count(too_long_for)
    )
