"""Work that is divided into N shards, each done by a process or machine of its own, and put together again.

What is divided is a row of pieces (batches of sentences), numbered from 0; shard i of N, counted from 1, has the pieces
i − 1, i − 1 + N, i − 1 + 2N, … So shards take about equally long, and no piece is cut: what a shard computes of a piece
is, bit for bit, what a run without shards would have computed.

What a shard writes is JSON lines. The first one says what it is a part of: {"COMMAND": 1, "inputs": {"shard": …}}.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_LOG_PROB
from fairseq_llrnn.files.reading import reading
from fairseq_llrnn.files.special_files import refuse_special
from fairseq_llrnn.files.text_lines import place

MOST = 10_000
EXAMPLE = "3/16"
SHARD = "shard"  # among the inputs of a part
MAX_LINE_BYTES = 1 << 26  # of a part: some thousand sentences; what is longer is another kind of file


@dataclass(frozen=True)
class Shard:
    """Shard `number`, from 1, of `of`."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def has(self, piece: int) -> bool:
        """Whether a piece is one of its own."""
        return piece % self.of == self.number - 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """From `3/16`. Raises ValueError, which says what was expected."""
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        number, of = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= of <= MOST:
            raise ValueError(f"expected I/N, shard I of N, I from 1 to N (such as {EXAMPLE}), found {text!r}")
        return cls(number, of)


@dataclass(frozen=True)
class Part:
    """The file that a shard has written."""

    path: str
    shard: Shard
    inputs: Mapping[str, str]  # what its content depends on, by names that a person understands: digests or settings


def file_digest(path: Path) -> str:
    """SHA-256 of a file that a part's content depends on. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def described(path: str, command: str, version: int) -> Part:
    """What a file is a part of, from its first line.

    Raises:
        DataError: it cannot be read, or is not what this version of `command --shard` writes.
    """
    expected = f"expected what `{command} --shard` wrote, found something else"
    record: Any
    _, record = next(records(path, expected), (1, None))
    with refused_as(f"{path}: {expected}"):
        if record[command] != version:
            raise ValueError
        inputs = {str(name): str(value) for name, value in record["inputs"].items()}
        return Part(path, Shard.parse(inputs.pop(SHARD)), inputs)


def records(path: str, expected: str) -> Iterator[tuple[int, Any]]:
    """Line numbers, from 1, and the JSON of each line of a part; a last one that a stop has cut short is none.

    Raises:
        DataError: it cannot be read; what is no JSON, with the message `expected` and the line.
    """
    refuse_special(path, may_be_pipe=False)
    with reading(path), open(path, "rb") as file:
        number = 0
        while (line := file.readline(MAX_LINE_BYTES + 1)).endswith(b"\n") or len(line) > MAX_LINE_BYTES:
            number += 1
            with refused_as(f"{place(path, number)}: {expected}"):
                if len(line) > MAX_LINE_BYTES:
                    raise ValueError
                record = json.loads(line)
            yield number, record


@contextmanager
def refused_as(message: str) -> Iterator[None]:
    """What goes wrong as untrusted JSON is looked at is a DataError with this message."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise DataError(message) from None


def log_prob(value: object) -> float:
    """A log-probability from JSON, null being −inf. Raises ValueError for what is none."""
    if value is None:
        return -math.inf
    if type(value) not in (int, float) or not abs(value) <= LARGEST_LOG_PROB:  # type: ignore[arg-type]
        raise ValueError
    return float(value)  # type: ignore[arg-type]


def count(value: object) -> int:
    """A count from JSON. Raises ValueError for what is none."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError
    return value


def in_order(parts: Sequence[Part]) -> list[Part]:
    """The parts by their numbers: all of one work, each once.

    Raises:
        DataError: a part of another number of shards or of other inputs, one that comes twice, some that are missing.
    """
    first, of = parts[0], parts[0].shard.of
    found: dict[int, Part] = {}
    for part in parts:
        if part.shard.of != of:
            raise DataError(
                f"{part.path}: expected a shard of {of}, as {first.path} is, found {part.shard}; merge the shards of "
                "one run"
            )
        others = sorted(k for k in {*first.inputs, *part.inputs} if first.inputs.get(k) != part.inputs.get(k))
        if others:
            raise DataError(
                f"{part.path}: expected the same inputs as of {first.path}, found others ({', '.join(others)}); merge "
                "the shards of one run"
            )
        if (twice := found.get(part.shard.number)) is not None:
            raise DataError(
                f"{part.path}: found shard {part.shard} a second time, after {twice.path}; give each shard once"
            )
        found[part.shard.number] = part
    missing = [str(Shard(number, of)) for number in range(1, of + 1) if number not in found]
    if missing:
        shown = ", ".join(missing[:10]) + (f" and {len(missing) - 10:,} more" if len(missing) > 10 else "")
        raise DataError(
            f"expected all {of} shards, found {len(found)}; missing: {shown}; run those, too, and give all files"
        )
    return [found[number] for number in range(1, of + 1)]
