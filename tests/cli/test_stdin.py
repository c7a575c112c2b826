"""Texts that commands read, from stdin or a file."""

import gzip
import io
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairseq_llrnn.cli.places import STDIN, check_text, text_lines
from fairseq_llrnn.errors import DataError


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
