"""`llrnn dictionary` writes what `fairseq-preprocess --dict-only` writes, to the byte."""

from pathlib import Path

import pytest
from shell import Shell

TEXT = "b a a\n\u00a0c c\tc  a\u2003<unk> b é Z </s>\n\n<Lua> madeupword0000\nb 日本\x85x #fairseq:overwrite \n"


@pytest.mark.parametrize(
    ("own", "theirs"),
    [
        ([], []),
        (["--min-count", "2"], ["--thresholdsrc", "2"]),
        (["--num-words", "3"], ["--nwordssrc", "7"]),  # with the four special symbols
        (["--num-words", "5", "--min-count", "2"], ["--nwordssrc", "9", "--thresholdsrc", "2"]),
    ],
)
def test_a_dictionary_is_fairseqs(shell: Shell, tmp_path: Path, own: list[str], theirs: list[str]) -> None:
    (tmp_path / "text").write_text(TEXT, encoding="utf-8")
    shell.run("llrnn", "dictionary", "--text", tmp_path / "text", "--out", tmp_path / "dict.txt", *own)
    shell.run(
        "fairseq-preprocess", "--only-source", "--dict-only", "--trainpref", tmp_path / "text", "--destdir",
        tmp_path / "fairseq", *theirs,
    )  # fmt: skip
    assert (tmp_path / "dict.txt").read_bytes() == (tmp_path / "fairseq" / "dict.txt").read_bytes()
