"""What commands read from stdin."""

import io

import pytest

from fairseq_llrnn.cli.stdin import stdin_lines
from fairseq_llrnn.errors import DataError


def test_lines_are_utf8_in_any_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    given = io.BytesIO("le chat\n\nété\n".encode() + b"\xe9t\xe9\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(given, encoding="ascii"))
    lines = stdin_lines()
    assert [next(lines) for _ in range(3)] == ["le chat\n", "\n", "été\n"]
    with pytest.raises(DataError, match="stdin, line 4, byte 1: expected UTF-8, found the byte 0xe9; convert the text"):
        next(lines)
