"""Scores of a text in parts: bit for bit those of the whole, and nothing but a whole text."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.text_bits import LineScore, sum_of
from fairseq_llrnn.evaluation.text_parts import HashedLines, merged, was_open, write_part
from fairseq_llrnn.files import shards
from fairseq_llrnn.files.shards import Shard

LINES = [
    LineScore(1, ["le", "chat"], [False, True], [-0.1, -1 / 3, -2e-17], [0.0, -7.25]),
    LineScore(2, [], [], [-1.0], []),
    LineScore(3, ["non"], [False], [-math.inf, -1.0], [0.0]),
    LineScore(4, ["trop"] * 9, [], [], [], too_long_for=8),
    LineScore(5, ["é\u2028"], [True], [-0.7, -0.2], [-math.inf]),
    LineScore(6, ["12"], [False], [-math.pi, -math.e], [0.0]),
]
PIECES = [LINES[:2], LINES[2:3], LINES[3:5], LINES[5:]]
DAMAGED = "expected a whole part, found one that ends early or was changed; run its shard again"
INPUTS = {"--path": "1a", "--open": "True"}


def write(path: Path, shard: str, text: str = "a\nb\n", inputs: dict[str, str] = INPUTS) -> str:
    lines, own = HashedLines(text.splitlines(keepends=True)), Shard.parse(shard)

    def pieces() -> Iterator[list[LineScore] | None]:
        list(lines)
        yield from (piece if own.has(number) else None for number, piece in enumerate(PIECES))

    assert write_part(path, own, inputs, lines, pieces()) == sum(len(p) for i, p in enumerate(PIECES) if own.has(i))
    return str(path)


@pytest.mark.parametrize("of", [1, 2, 3, 6])
def test_all_parts_are_the_whole(tmp_path: Path, of: int) -> None:
    parts = [write(tmp_path / f"{i}", f"{i}/{of}") for i in range(1, of + 1)]
    assert list(merged(parts[::-1])) == LINES
    assert was_open(parts[0])
    good = [line for line in LINES if line.too_long_for is None and line.impossible is None]
    found = (line for line in merged(parts) if line.too_long_for is None and line.impossible is None)
    assert sum_of(found) == sum_of(good)


def says(*paths: str) -> str:
    with pytest.raises(DataError) as error:
        list(merged(paths))
    return str(error.value)


def test_a_missing_part_is_said_before_any_line_is_asked_for(tmp_path: Path) -> None:
    """`llrnn score --per-sentence` would have printed the head of its table."""
    with pytest.raises(DataError, match="missing: 2/2"):
        merged([write(tmp_path / "1", "1/2")])


def test_parts_of_another_text_or_model(tmp_path: Path) -> None:
    one = write(tmp_path / "1", "1/2")
    assert "2: expected the same inputs as of" in says(one, write(tmp_path / "2", "2/2", "other\n"))
    assert "found others (text); merge" in says(one, write(tmp_path / "2", "2/2", "other\n"))
    assert "found others (--path); merge" in says(one, write(tmp_path / "2", "2/2", inputs=INPUTS | {"--path": "2b"}))
    assert says(one) == "expected all 2 shards, found 1; missing: 2/2; run those, too, and give all files"


def test_files_that_are_no_parts(tmp_path: Path) -> None:
    one, two = write(tmp_path / "1", "1/2"), write(tmp_path / "2", "2/2")
    whole = Path(two).read_bytes()
    for cut in range(whole.index(b"\n") + 1, len(whole) - 1):
        Path(two).write_bytes(whole[:cut])
        assert says(one, two).endswith(f": {DAMAGED}") and str(two) in says(one, two)
    kept = whole.splitlines(keepends=True)
    for lines in ([kept[0], *kept[2:]], [*kept[:2], *kept[1:]]):
        Path(two).write_bytes(b"".join(lines))
        assert says(one, two) == f"{two}: {DAMAGED}"
    for text in ("", "{}\n", "[" * 9999, '{"llrnn score": 2}\n', '{"llrnn score": 1, "shard": "x", "inputs": {}}\n'):
        Path(two).write_text(text)
        assert says(one, two) == f"{two}: expected what `llrnn score --shard` wrote, found something else"
    assert "no: cannot be read: No such file or directory; check the path" in says(one, str(tmp_path / "no"))


@pytest.mark.parametrize(
    "record",
    [
        b'{"lines": [[3, ["\xff"], [false], [-1, -1], [0], null]]}',
        b'{"lines": [[3, ["\\ud800"], [false], [-1, -1], [0], null]]}',
        b'{"lines": [[3, [7], [false], [-1, -1], [0], null]]}',
        b'{"lines": [[3, "w", [false], [-1, -1], [0], null]]}',
        b'{"lines": [[3, ["w"], [2], [-1, -1], [0], null]]}',
        b'{"lines": [[3, ["w"], [false], [-1, -Infinity], [0], null]]}',
        b'{"lines": [[3, ["w"], [false], [-1, 1e999], [0], null]]}',
        b'{"lines": [[3, ["w"], [false], [-1, NaN], [0], null]]}',
        b'{"lines": [[3, ["w"], [false], [-1, -1e308], [0], null]]}',
        b'{"lines": [[3, ["w"], [false], ["-1", -1], [0], null]]}',
        b'{"lines": [["3", ["w"], [false], [-1, -1], [0], null]]}',
        b'{"lines": [[3, ["w"], [], [], [], Infinity]]}',
        b'{"lines": {"a": 1}}',
        b"3",
        b"[" * 99999,
    ],
)
def test_what_no_model_has_said(tmp_path: Path, record: bytes) -> None:
    one, two = write(tmp_path / "1", "1/2"), write(tmp_path / "2", "2/2")
    lines = Path(two).read_bytes().splitlines(keepends=True)

    def change(record: bytes) -> None:
        Path(two).write_bytes(lines[0] + record + b"\n" + b"".join(lines[2:]))

    change(b'{"lines": [[3, ["w"], [false], [-1, null], [0], null]]}')
    assert len(list(merged([one, two]))) == len(LINES)
    change(record)
    assert says(one, two) == f"{two}, line 2: {DAMAGED}"


@pytest.mark.parametrize("pieces", ["Infinity", "-1", "1e9", "true", "null", '"4"'])
def test_how_many_pieces_there_are(tmp_path: Path, pieces: str) -> None:
    one, two = write(tmp_path / "1", "1/2"), write(tmp_path / "2", "2/2")
    Path(two).write_text(Path(two).read_text(encoding="utf-8").replace('"pieces": 4', f'"pieces": {pieces}'))
    assert says(one, two) == f"{two}, line 4: {DAMAGED}"


def test_what_would_never_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, what in ((str(tmp_path / "pipe"), "a pipe"), ("/dev/zero", "a device")):
        assert says(path) == f"{path}: expected a file, found {what}; copy what you want to be read to a file"
    one = write(tmp_path / "1", "1/1", inputs={})
    Path(one).write_bytes(Path(one).read_bytes() + b"{" + b" " * 600)
    monkeypatch.setattr(shards, "MAX_LINE_BYTES", 500)
    assert says(one) == f"{one}, line 7: {DAMAGED}"
