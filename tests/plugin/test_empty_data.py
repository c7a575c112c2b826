"""A part of a data folder without sentences, from a wrong split of a text."""

import shutil
from pathlib import Path

import pytest
from llrnn_command import checkpoint as checkpoint
from shell import Result, Shell
from tiny_world import World
from translation_world import TranslationWorld

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.plugin.compat.data_files import check_sentences

ADVICE = "expected sentences, found an empty file; write a text with one sentence per line, and run fairseq-preprocess"
QUICK = ["--max-update", 1, "--max-tokens", 128, "--cpu", "--no-save"]


def emptied(data: Path, place: Path, *parts: str) -> Path:
    """A copy of a data folder in which these parts are those that fairseq-preprocess makes from an empty text."""
    folder = Path(shutil.copytree(data, place / "empty"))
    for part in parts:
        assert (folder / f"{part}.bin").stat().st_size
        (folder / f"{part}.bin").write_bytes(b"")
        (folder / f"{part}.idx").write_bytes((folder / f"{part}.idx").read_bytes()[:10] + bytes(16))
    return folder


def says_it_is_empty(result: Result, file: Path) -> None:
    assert result.code != 0
    assert f"error: {file}: {ADVICE}" in result.err
    assert "Traceback" not in result.err and "Exception ignored" not in result.err


@pytest.mark.parametrize("part", ["train", "valid"])
def test_training(shell: Shell, world: World, tmp_path: Path, part: str) -> None:
    data = emptied(world.data, tmp_path, part)
    arguments = [data, "--prior", world.prior("prior"), *QUICK]
    says_it_is_empty(shell.run("llrnn", "train", *arguments, code=None), data / f"{part}.bin")


def test_fairseqs_command(shell: Shell, world: World, tmp_path: Path) -> None:
    data = emptied(world.data, tmp_path, "valid")
    arguments = [str(data), *world.train_args()[1:], *QUICK]
    says_it_is_empty(shell.run("fairseq-train", *arguments, code=None), data / "valid.bin")


@pytest.mark.parametrize("command", ["eval-lm", "validate", "generate"])
def test_models(shell: Shell, world: World, checkpoint: Path, tmp_path: Path, command: str) -> None:
    data = emptied(world.data, tmp_path, "test")
    subset = "--valid-subset" if command == "validate" else "--gen-subset"
    arguments = [data, "--path", checkpoint, "--prior", world.prior("prior"), subset, "test", "--cpu"]
    says_it_is_empty(shell.run("llrnn", command, *arguments, code=None), data / "test.bin")


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_a_side_of_a_bitext(shell: Shell, translation: TranslationWorld, tmp_path: Path, side: str) -> None:
    data = emptied(translation.data, tmp_path, f"valid.src-tgt.{side}")
    result = shell.run("llrnn", "train", data, *QUICK, code=None)
    says_it_is_empty(result, data / f"valid.src-tgt.{side}.bin")


def test_raw_text(shell: Shell, world: World, tmp_path: Path) -> None:
    data = tmp_path / "raw"
    data.mkdir()
    shutil.copy(world.data / "dict.txt", data)
    (data / "train").write_text("le chat\n")
    (data / "valid").write_text("")
    arguments = [data, "--prior", world.prior("prior"), "--dataset-impl", "raw", *QUICK]
    says_it_is_empty(shell.run("llrnn", "train", *arguments, code=None), data / "valid")


def test_an_empty_input(shell: Shell, world: World, checkpoint: Path, tmp_path: Path) -> None:
    """A file without lines is an error. A session in which nothing is typed is none."""
    (tmp_path / "empty").touch()
    arguments = ["llrnn", "interactive", world.data, "--path", checkpoint, "--cpu"]
    result = shell.run(*arguments, "--input", tmp_path / "empty", code=None)
    assert result.code == 2
    message = f"{tmp_path / 'empty'}: expected a text, found an empty file; write one sentence per line"
    assert result.err.splitlines()[-1].endswith(message)
    assert shell.run(*arguments, stdin="").out == ""


def test_the_parts_of_a_training_text(tmp_path: Path) -> None:
    for name, content in {"train.bin": b"1", "train.idx": b"1", "train1.bin": b"", "train1.idx": b"1"}.items():
        (tmp_path / name).write_bytes(content)
    check_sentences(str(tmp_path / "train"))
    check_sentences(str(tmp_path / "test"), combine=True)
    with pytest.raises(DataError, match=r"train1.bin: expected sentences, found an empty file"):
        check_sentences(str(tmp_path / "train"), combine=True)
