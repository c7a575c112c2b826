"""Scores on disk: whatever moment a run is stopped at, the next one goes on from the last whole chunk."""

import json
import math
import shutil
from collections import Counter
from pathlib import Path

import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.systems.reranking.score_cache import ScoreFile

INPUTS = {"list": "0a1b", "--path": "2c3d"}
CHUNKS = [
    ({"model": [[-1.5, -math.inf], []], "lm": [[-2.0, -3.0], []]}, {"model": {"words": 7}, "lm": {}}),
    ({"model": [[-4.25]], "lm": [[-5.0]]}, {"model": {"words": 2, "unknown words": 1}, "lm": {"words": 2}}),
]
ROWS = [{"model": [-1.5, -math.inf], "lm": [-2.0, -3.0]}, {"model": [], "lm": []}, {"model": [-4.25], "lm": [-5.0]}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A whole file."""
    path = tmp_path / "best.scores"
    file = ScoreFile(path, INPUTS)
    for scores, notes in CHUNKS:
        file.append(scores, notes)
    file.close()
    return path


def failure(path: Path, inputs: dict[str, str] = INPUTS) -> str:
    before = path.read_bytes()
    with pytest.raises(DataError) as error:
        ScoreFile(path, inputs)
    assert path.read_bytes() == before
    return str(error.value)


def test_what_is_written_is_read(path: Path) -> None:
    file = ScoreFile(path, INPUTS)
    assert (file.sentences, file.hypotheses) == (3, 3)
    assert file.notes == {"model": Counter({"words": 9, "unknown words": 1}), "lm": Counter({"words": 2})}
    assert list(file) == list(file) == ROWS


def test_a_run_goes_on_from_any_byte_at_which_it_was_stopped(path: Path) -> None:
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        file = ScoreFile(path, INPUTS)
        chunks = max(0, sum(end <= size for end in ends) - 1)
        assert file.sentences == (0, 2, 3)[chunks]
        for scores, notes in CHUNKS[chunks:]:
            file.append(scores, notes)
        file.close()
        assert path.read_bytes() == whole


def test_a_chunk_is_on_disk_at_once(tmp_path: Path) -> None:
    file = ScoreFile(tmp_path / "scores", INPUTS)
    file.append(*CHUNKS[0])
    shutil.copy(tmp_path / "scores", tmp_path / "copy")
    assert list(ScoreFile(tmp_path / "copy", INPUTS)) == ROWS[:2]
    file.close()


def test_two_writers(path: Path) -> None:
    """The second one writes nothing, and hears why, until the first one has ended."""
    first = ScoreFile(path, INPUTS)
    before = path.read_bytes()
    with pytest.raises(DataError, match="llrnn rescore. writes its scores there; wait until it ends, or give"):
        ScoreFile(path, INPUTS)
    assert path.read_bytes() == before
    first.close()
    second = ScoreFile(path, INPUTS)
    assert second.sentences == 3
    second.remove()
    assert not path.exists()


def test_a_file_that_is_removed_while_it_is_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening and locking, the other run ends and removes its scores."""
    first = ScoreFile(path, INPUTS)

    def late(descriptor: int) -> bool:
        monkeypatch.undo()
        first.remove()
        return True

    monkeypatch.setattr("fairseq_llrnn.systems.reranking.score_cache.lock", late)
    second = ScoreFile(path, INPUTS)
    assert second.sentences == 0
    second.append(*CHUNKS[0])
    assert list(second) == ROWS[:2]
    second.close()


def test_other_inputs(path: Path) -> None:
    assert failure(path, {"list": "ffff", "--path": "2c3d", "--lm-path": "4e5f"}) == (
        f"{path}: holds the scores of an interrupted run with other inputs (--lm-path, list); give the same "
        "inputs to resume, remove the file to start again, or give another --out"
    )


@pytest.mark.parametrize(
    ("line", "content"),
    [
        (1, "{}\n"),
        (1, "some text\n"),
        (1, "[1]\n"),
        (1, json.dumps({"llrnn rescore": 99, "inputs": INPUTS}) + "\n"),
        (2, json.dumps({"llrnn rescore": 1, "inputs": INPUTS}) + '\n{"scores": {}}\n'),
        (2, json.dumps({"llrnn rescore": 1, "inputs": INPUTS}) + "\n\xff\n"),
    ],
)
def test_another_kind_of_file(path: Path, line: int, content: str) -> None:
    path.write_bytes(content.encode("latin-1"))
    assert failure(path) == (
        f"{path}, line {line}: expected the scores of an interrupted run, found something else; remove the file to "
        "start again, or give another --out"
    )


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="scores so far cannot be written .*; check the rights .* there, or give --out"):
        ScoreFile(tmp_path / "absent" / "scores", INPUTS)
