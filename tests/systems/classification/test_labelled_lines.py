"""Texts with labels in one file, as fastText has them and in columns."""

import gzip
from pathlib import Path

import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.systems.classification.commands.classify import read_labelled


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_both_kinds_of_lines(tmp_path: Path) -> None:
    lines = "__label__a __label__b how  much salt\nhow much __label__b\nsalt ?\tx\ty\n\tx\n__label__a\n"
    path = write(tmp_path / "a", lines + "__label__x\tsalt\tand  more\n")
    found = list(read_labelled(path))
    assert [tuple(line) for line in found] == [
        ("how much salt", ("a", "b")), ("how much", ("b",)), ("salt ?", ("x", "y")), ("", ("x",)), ("", ("a",)),
        ("salt and more", ("x",)),
    ]  # fmt: skip
    with gzip.open(tmp_path / "b.gz", "wt", encoding="utf-8") as file:
        file.write(path.read_text(encoding="utf-8"))
    assert list(read_labelled(tmp_path / "b.gz")) == found


def test_cells_are_clean_and_a_header_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    path = write(tmp_path / "a", "\ufeffText\tIntent label\r\nsalt ?\t x\u00a0\ty \t\t\r\ntext\tlabel\r\n")
    assert [tuple(line) for line in read_labelled(path)] == [("salt ?", ("x", "y")), ("text", ("label",))]
    assert caplog.messages == [f"{path}: 2 of 3 lines read; left out: 1 as header"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("how much salt", "found no label in 'how much salt'"),
        ("", "found no label"),
        ("salt\t", "found no label"),
        ("salt\tNew York", "expected a label without blanks, found 'New York'; write _"),
        ("salt\tfood\tNew York ", "a label without blanks"),
        ("salt\t ", "found no label"),
        ("__label__ salt", "a label without blanks, found ''"),
    ],
)
def test_what_is_refused(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(DataError) as error:
        list(read_labelled(write(tmp_path / "a", f"salt\tfood\n{line}\n")))
    assert words in str(error.value) and "line 2" in str(error.value)


@pytest.mark.parametrize("end", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"], ids=ascii)
def test_a_line_ends_nowhere_else(end: str, tmp_path: Path) -> None:
    """As of every reader (tests/files/test_readers_line_ends.py)."""
    path = tmp_path / "a"
    path.write_bytes(f"a b\tlabel\na{end}b\tlabel\nb a\tlabel\r\n".encode())
    assert len(list(read_labelled(path))) == 3
