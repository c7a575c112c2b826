"""Damaged files of the data folder are read or refused, never more (tests/torture, for this system's files)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from discourse_texts import Llrnn, Texts
from fuzzing import fuzz, reader_target
from hostile_readers import Reader

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.systems.discourse.data import DESCRIPTION, STRINGS, Split, load_split, load_strings, read_description

INPUTS = 40


@pytest.mark.parametrize("file", ["test.npz", DESCRIPTION, STRINGS])
def test_a_damaged_file(file: str, texts: Texts, tmp_path: Path) -> None:
    def read(path: Path) -> None:
        place = path.parent / "data"
        shutil.copytree(texts.data, place, ignore=shutil.ignore_patterns("train.npz", "valid.npz"))
        shutil.copy(path, place / file)
        read_description(place)
        load_strings(place)
        split = load_split(place, "test")
        assert all(len(split.sentence(number)) for row in split.examples["order"] for number in row[:-1])

    reader = Reader(f"discourse {file}", file, ((texts.data / file).read_bytes(),), read, names_file=False)
    for part in ("sound", "inputs"):
        (tmp_path / part).mkdir()
    (tmp_path / "sound" / file).write_bytes(reader.samples[0])
    read(tmp_path / "sound" / file)
    found = fuzz(reader_target(reader), reader.name, INPUTS, 1, tmp_path / "inputs")
    assert not found.faults, found.faults[:3]
    assert found.counts["refused"]


def test_a_split_that_is_no_archive(texts: Texts, tmp_path: Path) -> None:
    shutil.copytree(texts.data, tmp_path / "data")
    (tmp_path / "data" / "test.npz").write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"test.npz: expected the arrays of a split, found a damaged file \("):
        load_split(tmp_path / "data", "test")


def test_a_full_disk(texts: Texts, llrnn: Llrnn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(split: Split, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Split, "save", full)
    given = [f"--{split}={texts.file(split)}" for split in ("train", "valid")]
    code, _, said = llrnn("discourse", *given, "--language", "en", "--out", tmp_path / "data")
    assert code == 2 and "data: the result cannot be written (No space left on device); check the rights" in said
    assert not (tmp_path / "data").exists()


def test_a_criterion_beside_another_model() -> None:
    criterion = pytest.importorskip("fairseq_llrnn.systems.discourse.plugin.criterion").DiscourseCriterion(None)
    with pytest.raises(OptionError, match="--criterion discourse: expected --arch discourse_encoder, found another"):
        criterion(torch.nn.Linear(1, 1), {})
