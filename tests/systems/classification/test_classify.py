"""`llrnn classify` without a model: --prepare, and options that do not go together. With one: tests/plugin."""

import gzip
from pathlib import Path

import pytest
from small_corpus import Llrnn

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.systems.classification.commands.classify import read_labelled
from fairseq_llrnn.systems.classification.label_hits import LabelHits


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


def test_by_hand() -> None:
    hits = LabelHits()
    hits.add(["a", "b", "c", "d", "e", "f"], {"a", "e", "f"})  # f is the sixth
    hits.add(["a", "b"], {"c"}, unseen=1)
    hits.add([], {"a"})
    assert (hits.texts, hits.labels, hits.unseen) == (3, 6, 1)
    assert hits.p_at_1 == pytest.approx(100 / 3)
    assert hits.p_at_5 == pytest.approx(100 * 2 / 15)
    assert hits.r_at_5 == pytest.approx(100 * 2 / 6)
    assert LabelHits().facts()["p_at_1"] == 0.0


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
        ("salt\tNew York", "expected a label without blanks, found 'New York'; replace blanks by _"),
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
