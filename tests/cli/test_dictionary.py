"""`llrnn dictionary`: the words of a text first, then forms that it lacks; what it refuses."""

import io
from collections.abc import Mapping
from pathlib import Path

import pytest
from small_corpus import Llrnn

from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.lexicon.languages.frequencies import Wordfreq
from fairseq_llrnn.lexicon.languages.simplemma_lemmas import Simplemma

LEXICON = "".join(
    f"{form}\t{lemma}\tNOUN\t_\n"
    for form, lemma in (
        *(("chat", "chat"), ("chats", "chat"), ("Chattes", "chat"), ("table", "table"), ("tables", "table")),
        *(("mer", "mer"), ("mers", "mer"), ("porte", "porte"), ("portes", "porte"), ("tout à fait", "chat")),
    )
)


@pytest.fixture
def given(tmp_path: Path) -> list[object]:
    """Command line of a small text."""
    (tmp_path / "train.fr").write_text("le chat le portes <unk>\nle table\n", encoding="utf-8")
    (tmp_path / "lexicon.tsv").write_text(LEXICON, encoding="utf-8")
    return [
        "dictionary", "--text", tmp_path / "train.fr", "--lexicon", tmp_path / "lexicon.tsv", "--out",
        tmp_path / "dict.fr.txt",
    ]  # fmt: skip


def words(tmp_path: Path) -> dict[str, int]:
    found = load_dictionary(tmp_path / "dict.fr.txt")
    return dict(zip(found.symbols[4:], found.counts[4:].tolist(), strict=True))


def read(tmp_path: Path) -> str:
    return f"note: {tmp_path / 'lexicon.tsv'}: 10 of 10 rows read"


def test_words_and_forms(llrnn: Llrnn, given: list[object], tmp_path: Path) -> None:
    done = llrnn(*given)
    assert (done.code, done.err) == (0, f"{read(tmp_path)}\n")
    shown = {"le": 3, "chat": 1, "portes": 1, "table": 1}
    assert list(words(tmp_path).items()) == [*shown.items(), ("chats", 0), ("chattes", 0), ("porte", 0), ("tables", 0)]
    assert [line.split()[-1] for line in done.out.splitlines()] == ["4", "4", "4", "0", str(tmp_path / "dict.fr.txt")]


def test_a_dictionary_on_stdout(
    llrnn: Llrnn, given: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = llrnn(*given).out
    done = llrnn(*given[:-1], "-")
    assert (done.code, done.out) == (0, (tmp_path / "dict.fr.txt").read_text(encoding="utf-8"))
    assert done.err.splitlines() == [*said.splitlines()[:-1], read(tmp_path)]
    assert not (tmp_path / "-").exists()


def test_a_text_alone(llrnn: Llrnn, given: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "more.fr").write_text("chat madeupword0001\n", encoding="utf-8")
    alone = [*given[:3], "--out", tmp_path / "dict.fr.txt"]
    padding = {f"madeupword000{i}": 0 for i in (0, 2, 3, 4, 5, 6, 7)}  # of 4 special symbols and 5 words: 7 up to 16
    done = llrnn("dictionary", "--text", tmp_path / "train.fr", tmp_path / "more.fr", *alone[3:])
    assert done.code == 0 and done.out.splitlines()[0].split() == ["words", "of", "the", "text", "5"]
    every = {"le": 3, "chat": 2, "madeupword0001": 1, "portes": 1, "table": 1}
    assert list(words(tmp_path).items()) == [*every.items(), *padding.items()]
    stdin = io.TextIOWrapper(io.BytesIO((tmp_path / "train.fr").read_bytes()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert llrnn("dictionary", "--text", "-", tmp_path / "more.fr", *alone[3:]).out == done.out
    assert list(words(tmp_path).items()) == [*every.items(), *padding.items()]


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (["--min-count", 2], ["le"]),
        (["--num-words", 3], ["le", "chat", "portes"]),
        (["--num-words", 3, "--min-count", 3], ["le"]),
        (["--num-words", 99, "--min-count", 1], ["le", "chat", "portes", "table"]),
    ],
)
def test_some_words_of_a_text(
    llrnn: Llrnn, given: list[object], tmp_path: Path, options: list[object], kept: list[str]
) -> None:
    done = llrnn(*given[:3], "--out", tmp_path / "dict.fr.txt", *options)
    assert (done.code, [word for word in words(tmp_path) if not word.startswith("madeup")]) == (0, kept)
    assert ("… kept" in done.out) == (len(kept) < 4)
    llrnn(*given, *options)  # the forms are those of all words
    assert list(words(tmp_path)) == [*kept, "chats", "chattes", "porte", "tables"]


def test_frequencies(llrnn: Llrnn, given: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def known(self: Wordfreq, code: str) -> Mapping[str, float]:
        return {"tables": 0.1, "Chats": 0.2, "cartables": 0.3}

    pytest.importorskip("wordfreq")
    monkeypatch.setattr(Wordfreq, "all_frequencies", known)
    for source in (Wordfreq, Simplemma):
        monkeypatch.setattr(source, "missing", lambda self, code: [])
    monkeypatch.setattr(Simplemma, "listed", lambda self, code: iter([("tableau", "table")]))
    done = llrnn(*given, "--language", "fr")
    assert list(words(tmp_path))[4:] == ["chats", "tables"]
    assert done.err.splitlines() == [
        "note: 3 listed forms are left out: the list of frequencies lacks them", read(tmp_path),
    ]  # fmt: skip
    assert llrnn(*given, "--language", "French", "--keep-case").code == 0
    assert list(words(tmp_path))[4:] == ["tables"]
    monkeypatch.setattr(Wordfreq, "missing", lambda self, code: ["wordfreq"])
    assert llrnn(*given, "--language", "fr").code == 0
    assert list(words(tmp_path))[4:] == ["chats", "chattes", "porte", "tableau", "tables"]


@pytest.mark.parametrize(
    ("code", "rows", "options", "expected"),
    [
        ("de", "Haus Haus|Häuser Haus|häuslich häuslich|Hauses Haus", ["--keep-case"], ["Häuser"]),  # no häuser
        ("de", "Haus Haus|Häuser Haus", ["--keep-case", "--normalize", "nfd"], ["Ha\u0308user"]),
        ("de", "Haus Haus|Häuser Haus", [], ["häuser"]),
        ("de", "Haus Haus|Großhaus Haus", ["--keep-case"], ["Großhaus"]),  # grosshaus
        ("tr", "Haus Haus|Işık Haus", ["--keep-case"], ["Işık"]),
        ("tr", "Haus Haus|Işık Haus", ["--lower", "tr"], ["ışık"]),
    ],
)
def test_frequencies_in_lower_case(
    llrnn: Llrnn, given: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, rows: str,
    options: list[str], expected: list[str],
) -> None:  # fmt: skip
    """Forms are looked up as the package spells its words."""
    if Wordfreq().missing(code):
        pytest.skip("wordfreq is not installed")
    frequencies = {"haus": 0.3, "häuser": 0.2, "grosshaus": 0.1, "ışık": 0.1, "işık": 0.1}
    monkeypatch.setattr(Wordfreq, "all_frequencies", lambda self, code: frequencies)
    monkeypatch.setattr(Simplemma, "missing", lambda self, code: ["simplemma"])
    (tmp_path / "train.fr").write_text("Haus\n" if "--keep-case" in options else "haus\n", encoding="utf-8")
    lines = ("{}\t{}\tX\t_\n".format(*row.split()) for row in rows.split("|"))
    (tmp_path / "lexicon.tsv").write_text("".join(lines), encoding="utf-8")
    done = llrnn(*given, "--language", code, *options)
    assert done.code == 0 and list(words(tmp_path))[1:] == expected
    assert ("1 listed forms are left out: the list of frequencies" in done.err) == ("Hauses" in rows)


def test_listed_forms_that_are_no_words(
    llrnn: Llrnn, given: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Wordfreq, "missing", lambda self, code: ["wordfreq"])
    monkeypatch.setattr(Simplemma, "missing", lambda self, code: [])
    listed = [("4x4", "table"), ("tableau", "table")]
    monkeypatch.setattr(Simplemma, "listed", lambda self, code: iter(listed))
    done = llrnn(*given, "--language", "fr")
    assert "note: 1 listed forms are left out: they are not single words of letters ('4x4')" in done.err
    assert "tableau" in words(tmp_path) and "4x4" not in words(tmp_path)


def test_what_it_refuses(llrnn: Llrnn, given: list[object], tmp_path: Path) -> None:
    assert llrnn(*given, "--most", -1).error == "--most -1: expected a number of forms of at least 0"
    assert llrnn(*given, "--lower", "tr", "--keep-case").error == (
        "--lower tr excludes --keep-case; leave one of them out"
    )
    for option, what in (("--min-count", "times"), ("--num-words", "words")):
        assert llrnn(*given, option, 0).error == f"{option} 0: expected a number of {what} of at least 1"
    assert llrnn(*given, "--min-count", 4).error == (
        "--min-count 4: no word occurs so often; the most frequent one, 'le', occurs 3 times; lower --min-count"
    )
    for place in ("text", "lexicon"):
        path = given[given.index(f"--{place}") + 1]
        said = llrnn(*given, "--out", path).error
        assert said == f"--out {path}: expected another file, found one that is read, which would be lost"
    (tmp_path / "empty").write_text("\n")
    at = given.index("--text")
    assert llrnn(*given[:at], *given[at + 2 :], "--text", tmp_path / "empty").error == (
        f"{tmp_path}/empty: expected words, found none; give a tokenised text"
    )
    assert "no such folder" in llrnn(*given, "--out", tmp_path / "none" / "dict.txt").error
    assert not (tmp_path / "dict.fr.txt").exists()


def test_a_treebank_is_no_text(llrnn: Llrnn, given: list[object], tmp_path: Path) -> None:
    """Its columns would be words."""
    treebank, plus = tmp_path / "train.conllu", tmp_path / "train.conllup"
    treebank.write_text("# text = le\n1\tle\tle\tDET\t_\t_\t_\t_\t_\t_\n\n", encoding="utf-8")
    plus.write_text("# global.columns = ID FORM\n1\tle\n\n", encoding="utf-8")
    llrnn("dictionary", "--text", given[2], "--out", tmp_path / "dict.txt")
    done = llrnn(*given[:2], plus, *given[3:])
    assert done.code == 2 and f"{plus}: expected a tokenised text, found a treebank in CoNLL-U; write its" in done.err
    counting = ["prior", "--dict", tmp_path / "dict.txt", "--count-text", treebank, "--out", tmp_path / "prior"]
    for line in ([*given[:2], treebank, *given[3:]], counting):
        done = llrnn(*line)
        assert done.code == 2 and "Traceback" not in done.err
        assert f"{treebank}: expected a tokenised text, found a treebank in CoNLL-U; write its sentences" in done.err


def test_a_byte_order_mark_is_no_letter(
    llrnn: Llrnn, given: list[object], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """fairseq-preprocess reads it as one, so that the dictionary lacks the first word of the data."""
    (tmp_path / "marked.txt").write_text("le chat\n", encoding="utf-8-sig")
    done = llrnn(*given[:2], tmp_path / "marked.txt", "--out", tmp_path / "dict.txt")
    assert done.code == 0 and {"chat 1", "le 1"} < {*(tmp_path / "dict.txt").read_text().splitlines()}
    assert f"{tmp_path}/marked.txt: it begins with a byte order mark, which fairseq-preprocess reads" in caplog.text


def test_a_folder_is_no_dictionary(llrnn: Llrnn, given: list[object], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    counting = ["prior", "--dict", tmp_path / "data", "--count-text", given[2], "--out", tmp_path / "prior"]
    message = f"--dict {tmp_path}/data: expected a dictionary, found a folder; "
    assert llrnn(*counting).error == f"{message}give the dict.txt of fairseq-preprocess"
    for name in ("dict.txt", "dict.fr.txt"):
        (tmp_path / "data" / name).write_text("le 1\n")
    names = f"{tmp_path}/data/dict.fr.txt or {tmp_path}/data/dict.txt"
    assert llrnn(*counting).error == f"{message}did you mean {names}?"
