"""Texts in fairseq's format, written and read back."""

from pathlib import Path

from fairseq_llrnn.files.binary_text import read_binary_text, write_binary_text


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    write_binary_text(tmp_path / "train", [[4, 5, 2], [2], [6, 2]])
    tokens, lengths = read_binary_text(tmp_path / "train", 7)
    assert tokens.tolist() == [4, 5, 2, 2, 6, 2] and lengths.tolist() == [3, 1, 2]
