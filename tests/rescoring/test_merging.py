"""Scores of a list's shards, put together: those of a run without shards; each mistake is one message."""

import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files import shards
from fairseq_llrnn.files.shards import SHARD, Shard
from fairseq_llrnn.rescoring import rescoring, score_cache
from fairseq_llrnn.rescoring.merging import merge_scores
from fairseq_llrnn.rescoring.rescoring import Job, Model, open_job, score_list
from fairseq_llrnn.rescoring.score_cache import ScoreFile

INPUTS = {"list": "1a", "--path": "2b", "dict.txt of --path": "3c"}
GIVEN = {"list": "1a", "--path": "2b"}
DAMAGED = "expected the scores of this list, found others or damage; remove it and run its shard again"
LIST = """\
0 ||| a b ||| -1
0 ||| c ||| -2
2 ||| dd ||| -3
3 ||| e f g ||| -4
3 ||| bad ||| -5
4 ||| f ||| -1
6 ||| g ||| -1
6 ||| hh ||| -1
"""


class Letters:
    """Scores a hypothesis by minus its length, divided by what is scored together; what is bad, not at all."""

    dictionaries: tuple[Path, ...] = ()

    def __init__(self) -> None:
        self.notes: Counter[str] = Counter()

    def score(self, sources: Sequence[str] | None, hypotheses: Sequence[str]) -> list[float]:
        self.notes["words"] += len(hypotheses)
        return [-float("inf") if "bad" in h else -len(h) / len(hypotheses) for h in hypotheses]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setattr(rescoring, "CHUNK", 2)
    (tmp_path / "list").write_text(LIST, encoding="utf-8")
    (tmp_path / "source").write_text("A\nBB\nCCC\nDDDD\nEEEEE\nF\nGG\nH\n", encoding="utf-8")
    return open_job(str(tmp_path / "list"), str(tmp_path / "source"), None, None, tmp_path)


def write(job: Job, path: Path, shard: str, inputs: dict[str, str] = INPUTS) -> str:
    scores = ScoreFile(path, inputs | {SHARD: shard})
    score_list(job, {"model": Model(Letters())}, scores, Shard.parse(shard))
    scores.close()
    return str(path)


def says(job: Job, *paths: str, given: dict[str, str] = GIVEN) -> str:
    with pytest.raises(DataError) as error:
        merge_scores(job, paths, given, ["model"], Path(tempfile.mkdtemp(dir=job.lists.file.parent), "merged"))
    return str(error.value)


@pytest.mark.parametrize("of", [1, 2, 3, 9])
def test_all_shards_are_the_whole(job: Job, tmp_path: Path, of: int) -> None:
    parts = [write(job, tmp_path / f"part{i}", f"{i}/{of}") for i in range(1, of + 1)]
    whole = ScoreFile(tmp_path / "whole", INPUTS)
    score_list(job, {"model": Model(Letters())}, whole)
    merged = merge_scores(job, parts[::-1], GIVEN, ["model"], tmp_path / "merged")
    assert list(merged) == list(whole)
    assert (merged.sentences, merged.hypotheses, merged.notes) == (whole.sentences, whole.hypotheses, whole.notes)
    assert (tmp_path / "merged").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_shard_that_was_stopped_goes_on(job: Job, tmp_path: Path) -> None:
    parts = [write(job, tmp_path / f"part{i}", f"{i}/2") for i in (1, 2)]
    whole = Path(parts[0]).read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for end in (*ends[:-1], ends[-1] - 5):
        Path(parts[0]).write_bytes(whole[:end])
        assert says(job, *parts) == (
            f"{parts[0]}: shard 1/2 is not finished; start its command again, which goes on where it stopped"
        )
        write(job, Path(parts[0]), "1/2")
        assert Path(parts[0]).read_bytes() == whole


def test_shards_of_something_else(job: Job, tmp_path: Path) -> None:
    one, two = (write(job, tmp_path / f"part{i}", f"{i}/2") for i in (1, 2))
    assert says(job, one) == "expected all 2 shards, found 1; missing: 2/2; run those, too, and give all files"
    assert "found others (dict.txt of --path)" in says(
        job, one, write(job, tmp_path / "other", "2/2", INPUTS | {"dict.txt of --path": "4d"})
    )
    for given, what in (
        ({"list": "9", "--path": "2b"}, "list"),
        ({**GIVEN, "source": "5"}, "source"),
        ({"list": "1a"}, "--path"),
    ):
        assert says(job, one, two, given=given) == (
            f"{one}: expected the scores of what is given here, found those of something else ({what}); give the list, "
            "the source and the models that the shards were given"
        )


def test_files_that_are_no_shards(job: Job, tmp_path: Path) -> None:
    one, two = (write(job, tmp_path / f"part{i}", f"{i}/2") for i in (1, 2))
    lines = Path(two).read_bytes().splitlines(keepends=True)
    for place, damage in (
        (2, [lines[0], b"{}\n", *lines[2:]]),
        (2, [lines[0], lines[1].replace(b"[", b"", 1), *lines[2:]]),
        (len(lines) + 1, [*lines, lines[-1]]),
        (2, [lines[0], *lines[:0:-1]]),
        (2, [lines[0], b"[" * 99999 + b"\n", *lines[2:]]),
        (2, [lines[0], lines[1].replace(b"model", b"other"), *lines[2:]]),
    ):
        Path(two).write_bytes(b"".join(damage))
        assert says(job, one, two) == f"{two}, line {place}: {DAMAGED}"
    for text in ("", "{}\n", '{"llrnn rescore": 1, "inputs": {"list": "1a"}}\n', '{"llrnn rescore": 1, "inputs": 3}\n'):
        Path(two).write_text(text)
        assert says(job, one, two) == f"{two}: expected what `llrnn rescore --shard` wrote, found something else"
    assert "cannot be read: No such file" in says(job, one, str(tmp_path / "none"))


@pytest.mark.parametrize(
    "record",
    [
        '{"scores": {}, "notes": {}}',
        '{"scores": {"model": [[], ["x"]]}, "notes": {}}',
        '{"scores": {"model": [[], [-1e999]]}, "notes": {}}',
        '{"scores": {"model": [[], [NaN]]}, "notes": {}}',
        '{"scores": {"model": [[], [true]]}, "notes": {}}',
        '{"scores": {"model": [[], [-1]]}, "notes": {"model": {"words": Infinity}}}',
        '{"scores": {"model": [[], [-1]]}, "notes": {"other": {"words": 1}}}',
        '{"scores": {"model": [[], [-1]], "lm": [[], [-1]]}, "notes": {}}',
    ],
)
def test_what_a_model_cannot_have_said(job: Job, tmp_path: Path, record: str) -> None:
    """The first chunk of the second shard: a sentence without hypotheses, then one with one."""
    one, two = (write(job, tmp_path / f"part{i}", f"{i}/2") for i in (1, 2))
    lines = Path(two).read_bytes().splitlines(keepends=True)

    def change(record: str) -> None:
        Path(two).write_bytes(lines[0] + record.encode() + b"\n" + b"".join(lines[2:]))

    change('{"scores": {"model": [[], [-1]]}, "notes": {"model": {"words": 1}}}')
    merge_scores(job, [one, two], GIVEN, ["model"], tmp_path / "merged").close()
    change(record)
    assert says(job, one, two) == f"{two}, line 2: {DAMAGED}"


def test_what_would_never_end(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, pipe = write(job, tmp_path / "part1", "1/2"), tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, what in ((str(pipe), "a pipe"), ("/dev/zero", "a device")):
        refused = f"{path}: expected a file, found {what}; copy what you want to be read to a file"
        assert says(job, one, path) == refused
        with pytest.raises(DataError) as error:
            ScoreFile(Path(path), INPUTS)
        assert str(error.value) == refused
    two = write(job, tmp_path / "part2", "2/2")
    with open(two, "a") as file:
        file.write("[" + " " * 500)
    monkeypatch.setattr(shards, "MAX_LINE_BYTES", 400)
    assert says(job, one, two) == f"{two}, line {len(Path(two).read_bytes().splitlines())}: {DAMAGED}"


def test_a_line_of_kept_scores_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ScoreFile(tmp_path / "scores", INPUTS).close()
    with open(tmp_path / "scores", "a") as file:
        file.write("[" + " " * 500)
    monkeypatch.setattr(score_cache, "MAX_LINE_BYTES", 400)
    with pytest.raises(DataError, match="scores, line 2: expected the scores of a run that was stopped"):
        ScoreFile(tmp_path / "scores", INPUTS)
