"""Texts that fairseq reads for our tasks: a line ends where it ends for `llrnn score`, in commands and in raw data."""

import re
import shutil
from pathlib import Path

import pytest
from evidence_world import EvidenceWorld
from shell import Shell, assert_says
from tiny_world import World, build

from fairseq_llrnn.errors import DataError

INNER = [f"le{end}chat" for end in "\x0b\x0c\x1c\x1e\x85\u2028"]
TEXT = "\n".join(["\ufeffle chat", "le chat\rla mer", *INNER, "le\r\r", "\r", "la mer\r", ""])


@pytest.mark.parametrize("stdin", [True, False])
def test_fairseq_interactive(stdin: bool, shell: Shell, world: World, trained: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(TEXT.encode())
    given = {"stdin": TEXT} if stdin else {}
    options = ["--path", trained / "checkpoint_best.pt", "--max-len-b", 8, *([] if stdin else ["--input", text])]
    typed = shell.run("fairseq-interactive", *world.task_args(), *options, **given)
    sources = dict(re.findall(r"^S-(\d+)\t(.*)$", typed.out, re.MULTILINE))
    assert len(sources) == TEXT.count("\n")
    assert (sources["0"], sources["1"], sources["2"]) == ("le chat", "le chat la mer", "le chat")
    scored = shell.run("llrnn", "score", "--path", trained / "checkpoint_best.pt", text)
    assert scored.out.split()[:2] == ["sentences", str(TEXT.count("\n"))]


@pytest.mark.parametrize("end", ["\r", "\x85", "\u2028", "\x0b", "\x1c"])
def test_raw_data(end: str, evidence: EvidenceWorld, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    shutil.copytree(evidence.raw, raw)
    for language in ("src", "tgt"):
        file = raw / f"test.src-tgt.{language}"
        first, *lines = file.read_text(encoding="utf-8").split("\n")
        file.write_bytes("\n".join([first.replace(" ", end, 1) if language == "src" else first, *lines]).encode())
    arguments = [str(raw) if one == str(evidence.raw) else one for one in evidence.train_args(raw=True)]
    task = build(arguments).task
    task.load_dataset("test")
    before = build(evidence.train_args(raw=True)).task
    before.load_dataset("test")
    assert len(task.datasets["test"]) == len(before.datasets["test"])
    assert all(task.datasets["test"][i]["source"].equal(before.datasets["test"][i]["source"]) for i in range(18))
    (raw / "test.src-tgt.src").write_bytes(b"le\n\xff\n")
    with pytest.raises(DataError, match=r"test.src-tgt.src, line 2, byte 1: expected UTF-8"):
        task.load_dataset("test")


def test_data_that_fairseq_preprocess_has_shifted(shell: Shell, evidence: EvidenceWorld, tmp_path: Path) -> None:
    for language in ("src", "tgt"):
        text = (evidence.place / f"train.{language}").read_text(encoding="utf-8")
        text = text.replace(" ", "\r", 1) if language == "src" else text
        (tmp_path / f"train.{language}").write_bytes(text.encode())
    shell.run(
        "fairseq-preprocess", "-s", "src", "-t", "tgt", "--trainpref", tmp_path / "train", "--validpref",
        evidence.place / "valid", "--destdir", tmp_path / "bin", "--srcdict", evidence.data / "dict.src.txt",
        "--tgtdict", evidence.data / "dict.tgt.txt",
    )  # fmt: skip
    arguments = [str(tmp_path / "bin") if one == str(evidence.data) else one for one in evidence.train_args()]
    assert_says(
        shell.run("fairseq-train", *arguments, code=None),
        "the train data: expected as many sources as targets, found other numbers", "without carriage returns",
    )  # fmt: skip
    options = ["--dict", evidence.data / "dict.src.txt", "--out", tmp_path / "prior"]
    counted = shell.run("llrnn", "prior", *options, "--count-text", tmp_path / "train.src", code=2)
    assert "train.src, line 1: expected a sentence, found a carriage return in" in counted.err
    options[1] = evidence.data / "dict.tgt.txt"
    aligned = shell.run("llrnn", "prior", *options, "--lexical-translation", tmp_path / "bin", code=2)
    assert "expected as many" in aligned.err and "carriage returns" in aligned.err
