"""Texts that commands read, from stdin or a file."""

import gzip
import io
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fairseq_llrnn.cli.places import STDIN, check_text, text_lines
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.training_words import words_of_text
from fairseq_llrnn.features.dictionary import SPECIALS, WordList, count_words
from fairseq_llrnn.ngrams.ngrams import read_sentences


def as_stdin(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="ascii"))


@pytest.mark.parametrize("content", [
    "le chat\n\nété\n".encode(), "\ufeffle chat\n".encode(), b"le chat\r\nnoir\r\n", b"no newline", b"",
])  # fmt: skip
def test_stdin_and_a_file_are_read_alike(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").write_bytes(content)
    as_stdin(content, monkeypatch)
    wanted = [f"{line}\n" for line in content.decode("utf-8-sig").splitlines()]
    assert list(text_lines(STDIN)) == list(text_lines(str(tmp_path / "text"))) == wanted


ROW = "1\tle\tle\tDET\t_\t_\t0\troot\t_\t_"


@pytest.mark.parametrize("text", [f"{ROW}\n", f"# sent_id = 1\n# text = le\n{ROW}\n", f"#\n1-2\tdu{8 * chr(9)}\n2.1\n"])
def test_a_treebank_is_no_text(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In all readers of texts."""
    (tmp_path / "t.conllu").write_text(text)
    as_stdin(text.encode(), monkeypatch)
    message = "expected a tokenised text, found a treebank in CoNLL-U; write its sentences with `llrnn text --conllu"
    words = WordList((*SPECIALS, "le"), np.array([0, 0, 1, 0, 1]))
    for read in (
        lambda: [*text_lines(STDIN)],
        lambda: [*text_lines(str(tmp_path / "t.conllu"))],
        lambda: words_of_text(tmp_path / "t.conllu", None),
        lambda: read_sentences([tmp_path / "t.conllu"], words),
        lambda: count_words([tmp_path / "t.conllu"]),
    ):
        with pytest.raises(DataError, match=message):
            read()
    (tmp_path / "text").write_text("# 1\n1 le\n" + ROW.replace("1\t", "a\t", 1) + "\n")
    assert len([*text_lines(str(tmp_path / "text"))]) == 3


def test_stdin_that_is_no_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    as_stdin(b"le chat\n\xe9t\xe9\n", monkeypatch)
    lines = text_lines(STDIN)
    assert next(lines) == "le chat\n"
    message = "stdin, line 2, byte 1: expected UTF-8, found the byte 0xe9 .*; convert the text to UTF-8"
    with pytest.raises(DataError, match=message):
        next(lines)


def test_stdin_that_is_gzipped(monkeypatch: pytest.MonkeyPatch) -> None:
    as_stdin(gzip.compress(b"le chat\n"), monkeypatch)
    message = "^stdin: expected a text, found one packed by gzip; unpack it first .`zcat`.$"
    with pytest.raises(DataError, match=message):
        next(text_lines(STDIN))


def test_what_cannot_be_read_is_said_before_it_is_needed(tmp_path: Path) -> None:
    wrong = ((tmp_path / "none", "none: cannot be read: No such file"), (tmp_path, "Is a directory"))
    for path, message in (*wrong, ("a" * 5000, "cannot be read: File name too long")):
        with pytest.raises(DataError, match=message):
            check_text(str(path))
    os.mkfifo(tmp_path / "pipe")
    for path in (STDIN, str(tmp_path / "pipe")):  # neither is opened: no pipe can be read twice
        check_text(path)


def test_a_stdin_that_is_closed_or_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "text").open("w") as written:  # reading it fails
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=open(written.fileno(), "rb", closefd=False)))  # noqa: SIM115
        with pytest.raises(DataError, match="stdin: cannot be read: Bad file descriptor"):
            next(text_lines(STDIN))
    monkeypatch.setattr("sys.stdin", None)
    for read in (check_text, lambda path: next(text_lines(path))):
        with pytest.raises(DataError, match="stdin is closed: pass a file"):
            read(STDIN)
