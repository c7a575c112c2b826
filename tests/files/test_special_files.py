"""Special files are rejected before they are read, in every reader. Text may come through a pipe."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from lexicons import read_tsv_lexicon

from fairseq_llrnn.errors import DataError, LLRNNError, PriorError
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.features.spelling_features import UserPatterns
from fairseq_llrnn.files import reading
from fairseq_llrnn.files.reading import check_regular_file, read_whole
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.reranking.nbest import open_nbest
from fairseq_llrnn.systems.reranking.tuning import read_weights_file

READERS: dict[str, Callable[[Path], object]] = {
    "lines": lambda path: list(iter_lines(path)),
    "dictionary": load_dictionary,
    "lexicon": lambda path: read_tsv_lexicon(path, lowercase=False),
    "patterns": UserPatterns.load,
    "weights": lambda path: read_weights_file(path, ["model"]),
    "n-best list": open_nbest,
}


@pytest.mark.parametrize("reader", READERS)
def test_devices_are_refused_by_every_reader(reader: str, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/zero")
    for path in (Path("/dev/zero"), link):
        with pytest.raises(LLRNNError, match=rf"{path}: expected a file or a pipe, found a device; copy its content"):
            READERS[reader](path)


def test_ordinary_files_empty_ones_and_absent_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "absent", "/dev/null", tmp_path, "nul\0"):
        check_regular_file(path)
    assert list(iter_lines("/dev/null")) == []


@pytest.mark.parametrize("reader", ["lines", "weights"])
def test_a_pipe_is_read(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    text = json.dumps({"weights": {"model": 0.5}})
    writer = threading.Thread(target=lambda: path.write_text(text, encoding="utf-8"))
    writer.start()
    found = READERS[reader](path)
    writer.join()
    assert found == [(1, text)] if reader == "lines" else found == [0.5]


def test_a_pipe_that_does_not_end_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_OF_A_PIPE", 1000)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    program = f"open({str(path)!r}, 'w').write('x' * 5000)"
    with (
        subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL),
        pytest.raises(DataError, match="expected at most 1,000 bytes through a pipe, found more"),
    ):
        read_whole(path)


@pytest.mark.parametrize("name", ["prior.json", "dictionary.txt", "arrays.npz"])
@pytest.mark.parametrize("kind", ["a device", "a pipe"])
def test_a_prior_of_devices_and_pipes_is_refused(name: str, kind: str, tmp_path: Path) -> None:
    for other in ("prior.json", "dictionary.txt", "arrays.npz"):
        description = {
            "format": "fairseq_llrnn prior", "version": special_version(), "settings": {}, "dictionary_sha256": "",
            "arrays_sha256": "", "output_features": [], "input_features": None, "parts": [],
        }  # fmt: skip
        (tmp_path / other).write_text(json.dumps(description) if other == "prior.json" else "", encoding="utf-8")
    (tmp_path / name).unlink()
    if kind == "a pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(PriorError, match=rf"{name}: expected a file, found {kind}; copy"):
        Prior.load(tmp_path)


def special_version() -> int:
    from fairseq_llrnn.prior.directory import VERSION

    return VERSION
