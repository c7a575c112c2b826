"""`llrnn classify` without a model: --prepare, and options that do not go together. With one: tests/plugin."""

from pathlib import Path

import pytest
from small_corpus import Llrnn


def test_prepare(llrnn: Llrnn, tmp_path: Path) -> None:
    source = tmp_path / "train.txt"
    source.write_text("__label__a __label__b how  much\nsalt ?\tc\n", encoding="utf-8")
    done = llrnn("classify", "--prepare", source, "--out", tmp_path / "train")
    assert (done.code, done.err) == (0, "") and "2 texts with 3 labels" in done.out
    assert (tmp_path / "train.text").read_text(encoding="utf-8") == "how much\nsalt ?\n"
    assert (tmp_path / "train.labels").read_text(encoding="utf-8") == "a b\nc\n"
    for name in ("text", "labels"):
        read = tmp_path / f"train.{name}"
        before = read.read_bytes()
        lost = llrnn("classify", "--prepare", read, "--out", tmp_path / "train").error
        assert lost == f"--out {read}: expected another file, found one that is read, which would be lost"
        assert read.read_bytes() == before


def test_nothing_is_written_where_a_label_has_blanks(llrnn: Llrnn, tmp_path: Path) -> None:
    source = tmp_path / "train.tsv"
    source.write_text("salt ?\tc\nsalt\tNew York\n", encoding="utf-8")
    error = llrnn("classify", "--prepare", source, "--out", tmp_path / "train").error
    assert "train.tsv, line 2: expected a label without blanks, found 'New York'" in error
    source.write_text("", encoding="utf-8")
    assert "found an empty file" in llrnn("classify", "--prepare", source, "--out", tmp_path / "train").error
    assert [path.name for path in tmp_path.iterdir()] == ["train.tsv"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "found neither"),
        (("--path", "a", "--prepare", "b", "--out", "c"), "found both"),
        (("--prepare", "b"), "--prepare: it needs --out"),
        (("--path", "b", "--out", "c"), "--out: it needs --prepare"),
        (("--path", "b", "--labels", "none.labels"), "none.labels: cannot be read"),  # before the model is
        (("--path", "b", "-k", 0), "-k 0: expected a number of at least 1"),
        (("--path", "b", "--max-tokens", 0), "--max-tokens 0"),
        (("--prepare", "b", "--out", "c", "--labels", "d"), "--labels d: it belongs to --path, found --prepare; leave"),
        (("--prepare", "b", "--out", "c", "--json"), "--json: it belongs to --path, found --prepare; leave it out"),
        (("--prepare", "b", "--out", "c", "--prior", "p"), "--prior p: it belongs to --path, found --prepare"),
        (("--prepare", "b", "--out", "c", "--max-tokens", 9), "--max-tokens 9: it belongs to --path, found --prepare"),
        (("--prepare", "b", "--out", "c", "-k", 2), "-k 2: it belongs to --path, found --prepare; leave it out"),
        (("--prepare", "b", "--out", "none/c"), "no such folder"),
        (("--prepare", "b", "--out", "-"), "--out -: expected a file to write or replace, found stdout, which cannot"),
    ],
)
def test_options(llrnn: Llrnn, options: tuple[object, ...], words: str) -> None:
    assert words in llrnn("classify", *options).error
