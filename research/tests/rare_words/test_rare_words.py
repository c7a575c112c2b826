"""Annotated unknown words: the three schemes by hand and by their definitions, and the way back."""

import io
import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shell import Shell
from small_corpus import Llrnn
from translation_world import TranslationWorld

from fairseq_llrnn.evidence.rules import read_evidence_map
from llrnn_research.rare_words.annotations import (
    ANNOTATION,
    MOST_AWAY,
    SCHEMES,
    annotated_source,
    annotated_target,
    frequent_words,
    numbered,
    restored,
)

# fluffy, poodle and skagen are rare
SOURCE = "the fluffy poodle in skagen , near the poodle".split()
TARGET = "le caniche duveteux de skagen , près du caniche".split()
FROM = {0: 0, 1: 2, 2: 1, 4: 4, 5: 5, 6: 6, 7: 7, 8: 8}  # de has no source word
KNOWN = frozenset("the in , near".split())
KNOWN_TARGETS = frozenset("le de , près du".split())
TRANSLATIONS = {"poodle": ("caniche",), "fluffy": ("duveteux",), "in": ("de",)}
ANNOTATED = {
    "copyable": "le <unk2> <unk1> de <unk3> , près du <unk2>",
    "positional": "le <unkpos-1> <unkpos+1> de <unkpos+0> , près du <unkpos+0>",
    "positional-all": (
        "le <pos+0> <unk> <pos-1> <unk> <pos+1> de <pos-null> <unk> <pos+0> , <pos+0> près <pos+0> du <pos+0> "
        "<unk> <pos+0>"
    ),
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_sentence_and_back(scheme: str) -> None:
    source = annotated_source(SOURCE, KNOWN, scheme)
    numbers = "<unk1> <unk2> <unk3> <unk2>" if scheme == "copyable" else "<unk> <unk> <unk> <unk>"
    assert [word for word in source if word not in KNOWN] == numbers.split()
    target = annotated_target(TARGET, KNOWN_TARGETS, SOURCE, KNOWN, FROM, scheme)
    assert target == ANNOTATED[scheme].split()
    assert restored(target, SOURCE, KNOWN, TRANSLATIONS) == TARGET, "skagen is copied"


def test_unknown_words_without_a_source() -> None:
    for scheme, expected in {
        "copyable": "<unk-null> <unk-null> a",
        "positional": "<unkpos-null> <unkpos+1> a",
        "positional-all": "<unk> <pos-null> <unk> <pos+1> a <pos+2>",
    }.items():
        # x comes from no word, y from a known one
        found = annotated_target(["x", "y", "a"], {"a"}, ["in"], {"in"}, {1: 0, 2: 0}, scheme)
        assert found == expected.split()
        back = restored(found, ["in"], {"in"}, TRANSLATIONS)
        assert back == (["<unk>", "<unk>", "a"] if scheme == "copyable" else ["<unk>", "de", "a"])


def test_words_far_away_are_not_linked() -> None:
    source = list(map(str, range(MOST_AWAY + 2)))
    for away, shown in ((MOST_AWAY, f"<unkpos-{MOST_AWAY}>"), (MOST_AWAY + 1, "<unkpos-null>")):
        assert annotated_target(["x"], (), source, (), {0: away}, "positional") == [shown]
        pos = shown.replace("unkpos", "pos")
        assert annotated_target(["x"], (), source, (), {0: away}, "positional-all") == ["<unk>", pos]


def test_what_a_model_may_write() -> None:
    def back(text: str) -> str:
        return " ".join(restored(text.split(), ["a", "b"], {"a"}, {"b": ("B", "b'")}))

    assert back("<unk1> <unk2> <unk0> <unk>") == "B b' <unk> <unk> <unk>", "b is the only unknown word"
    assert back("<unkpos+0> <unkpos+0> <unkpos-9> <unkpos+9>") == "a B b' <unk> <unk>"
    assert back("<pos+0> c <pos+0> <unk> <pos+0> <pos+1> d <pos-1>") == "c B b' d", "places count words alone"
    assert back("<unk> <pos-null> <pos+0> <unk>") == "a <unk>", "the first that points to a word"
    assert back("") == ""
    assert back("<unk-x> <pos> <unkpos1000000000>") == "<unk-x> <pos> <unkpos1000000000>", "words of the text"


def test_frequent_words() -> None:
    lines = [["b", "a", "<unk>", "<unk1>", "c"], ["a", "<pos+1>", "<pos+1>", "<pos+1>", "b", "d", "d", "d"]]
    assert frequent_words(lines, 2) == {"d", "a"}
    assert frequent_words(lines, 9) == {"a", "b", "c", "d"}


WORDS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=10)


@given(WORDS, WORDS, st.data(), st.sampled_from(SCHEMES))
@settings(max_examples=50, deadline=None)
def test_the_way_back_by_definition(source: list[str], target: list[str], data: st.DataObject, scheme: str) -> None:
    known, known_targets = (data.draw(st.sets(st.sampled_from("abcdef"))) for _ in range(2))
    places = st.one_of(st.none(), st.integers(0, len(source) - 1))
    drawn = [data.draw(places) for _ in target]
    comes_from = {j: i for j, i in enumerate(drawn) if i is not None}
    translations = {"a": ("A",), "b": ("B", "B")}
    annotated = annotated_target(target, known_targets, source, known, comes_from, scheme)
    expected: list[str] = []
    for j, (word, i) in enumerate(zip(target, drawn, strict=True)):
        points = i is not None and (source[i] not in known if scheme == "copyable" else abs(j - i) <= MOST_AWAY)
        if word in known_targets:
            expected.append(word)
        elif i is None or not points:
            expected.append("<unk>")
        else:
            expected += translations.get(source[i], (source[i],))
    assert restored(annotated, source, known, translations) == expected
    plain = [word for word in annotated if ANNOTATION.fullmatch(word) is None]
    assert set(plain) <= known_targets | {"<unk>"}
    assert len(annotated) == len(target) * (2 if scheme == "positional-all" else 1)
    assert len(annotated_source(source, known, scheme)) == len(source)


@given(WORDS, st.sets(st.sampled_from("abcdef")))
def test_numbers_are_those_of_different_unknown_words(source: list[str], known: set[str]) -> None:
    unknown = [word for word in source if word not in known]
    order = [word for i, word in enumerate(unknown) if word not in unknown[:i]]
    assert list(numbered(source, known).items()) == list(zip(order, itertools.count(1), strict=False))


# `llrnn rare-words annotate` and `restore`: folders from texts, the way back, one clear line for what is wrong
def annotate(llrnn: Llrnn, texts: Path, out: Path, *options: object, words: int = 12) -> str:
    prefixes = [part for split in ("train", "valid", "test") for part in (f"--{split}pref", texts / split)]
    done = llrnn(
        "rare-words", "annotate", "-s", "src", "-t", "tgt", *prefixes, "--aligner", "ibm1", "--words", words,
        "--destdir", out, *options,
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    return done.out


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_word_comes_back(
    llrnn: Llrnn, translation: TranslationWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """The source is the target with every word spelt backwards, word by word."""
    out = tmp_path / "annotated"
    said = annotate(llrnn, translation.place, out, "--scheme", scheme)
    assert said.startswith("src: 12 words kept, ") and "\ntgt: 12 words kept, " in said
    names = {"train.src", "train.tgt", "valid.src", "valid.tgt", "test.src", "source-words.txt", "translations.tsv"}
    assert {path.name for path in out.iterdir()} == names
    words = {word for line in lines_of(out / "train.tgt") for word in line.split()}
    plain = {word for word in words if ANNOTATION.fullmatch(word) is None}
    assert len(plain - {"<unk>"}) == 12 and len(words) > len(plain)
    assert set(lines_of(out / "source-words.txt")) == {word[::-1] for word in plain - {"<unk>"}}
    for split in ("train", "valid"):
        expected = lines_of(translation.place / f"{split}.tgt")
        typed(monkeypatch, "".join(f"{line}\n" for line in lines_of(out / f"{split}.tgt")))
        done = llrnn("rare-words", "restore", "--data", out, "--source", translation.place / f"{split}.src")
        assert done.code == 0
        back = done.out.splitlines()
        right = sum(line == reference for line, reference in zip(back, expected, strict=True))
        assert right > 0.9 * len(expected)
    mapping = read_evidence_map(out / "translations.tsv")
    assert sum(target == (word[::-1],) for word, target in mapping.items()) > 0.9 * len(mapping)


def test_words_that_show_nothing_have_no_translation(
    llrnn: Llrnn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def restored(source: str, target: str, marked: str) -> tuple[list[str], str]:
        """The translations, and what `marked` becomes."""
        for split, text in (("src", source), ("tgt", target)):
            for name in ("train", "valid", "test"):
                (tmp_path / f"{name}.{split}").write_text(text, encoding="utf-8")
        annotate(llrnn, tmp_path, out, "--scheme", "positional", words=2)
        typed(monkeypatch, marked)
        done = llrnn("rare-words", "restore", "--data", out, "--source", tmp_path / "train.src")
        assert done.code == 0
        return lines_of(out / "translations.tsv"), done.out

    out = tmp_path / "annotated"
    marked = "<unkpos+0> <unkpos+0>\n"
    assert restored("a \u200b\n", "x \u200b\n", marked) == (["a\tx"], "x \u200b\n")
    assert restored("a b\n", "\u200b \u200b\n", marked) == ([], "a b\n")
    assert restored("\n", "\n", "\n") == ([], "\n")
    (out / "translations.tsv").unlink()
    typed(monkeypatch, "\n")
    done = llrnn("rare-words", "restore", "--data", out, "--source", tmp_path / "train.src")
    assert done.error.startswith(f"--data {out}/translations.tsv: cannot be read: ")


@pytest.mark.slow
def test_train_translate_and_restore(
    llrnn: Llrnn, translation: TranslationWorld, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, data = tmp_path / "annotated", tmp_path / "data"
    annotate(llrnn, translation.place, out, "--scheme", "positional")
    shell.run(
        "fairseq-preprocess", "-s", "src", "-t", "tgt", "--trainpref", out / "train", "--validpref", out / "valid",
        "--destdir", data,
    )  # fmt: skip
    shell.run("llrnn", "prior", "--softmax", "--dict", data / "dict.tgt.txt", "--out", data / "prior")
    moved = {str(translation.data): data, str(translation.data / "prior"): data / "prior"}
    options = [moved.get(word, word) for word in translation.train_args(save_dir=tmp_path / "model")]
    shell.run("fairseq-train", *options, "--max-epoch", 10)
    task = [moved.get(word, word) for word in translation.task_args()]
    done = shell.run(
        "fairseq-interactive", *task, "--path", tmp_path / "model" / "checkpoint_last.pt", "--input", out / "test.src",
        "--beam", 2,
    )  # fmt: skip
    found = [line.split("\t")[2] for line in done.out.splitlines() if line.startswith("H-")]
    assert any("<unkpos" in line for line in found)
    typed(monkeypatch, "".join(f"{line}\n" for line in found))
    restored = tmp_path / "restored"
    done = llrnn("rare-words", "restore", "--data", out, "--source", translation.place / "test.src", "--out", restored)
    assert (done.code, done.out) == (0, "")
    monkeypatch.chdir(tmp_path)
    typed(monkeypatch, "".join(f"{line}\n" for line in found))
    given = ["--data", out, "--source", translation.place / "test.src", "--out", "-"]
    assert llrnn("rare-words", "restore", *given).out.splitlines() == lines_of(restored)
    assert not (tmp_path / "-").exists()
    kept = {word[::-1] for word in lines_of(out / "source-words.txt")}
    rare = [word for line in lines_of(restored) for word in line.split() if word not in kept | {"<unk>"}]
    assert rare and not any(ANNOTATION.fullmatch(word) for word in rare)


def test_bad_options(
    llrnn: Llrnn, translation: TranslationWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = ["--trainpref", translation.place / "train", "--scheme", "copyable", "-s", "src"]
    out = tmp_path / "out"

    def refused(*options: object) -> str:
        return llrnn("rare-words", "annotate", *train, *options).error

    assert refused("-t", "tgt", "--words", 0, "--destdir", out) == "--words 0: expected a number of at least 1"
    assert "expected another language than --source-lang" in refused("-t", "src", "--words", 9, "--destdir", out)
    said = refused("-t", "tgt", "--words", 9, "--destdir", tmp_path / "no" / "out")
    assert said.endswith("expected a place in a folder, but there is no such folder; make it first")
    assert "expected a new folder, or one of an earlier run, found something else, which would be lost" in refused(
        "-t", "tgt", "--words", 9, "--destdir", tmp_path
    )
    (tmp_path / "short.src").write_text("a b\n", encoding="utf-8")
    (tmp_path / "short.tgt").write_text("a b\nc\n", encoding="utf-8")
    said = refused("-t", "tgt", "--words", 9, "--destdir", out, "--validpref", tmp_path / "short")
    assert "short.tgt: expected as many lines as in " in said and "short.src, 1, found 2; give a text" in said
    said = llrnn(
        "rare-words", "annotate", "--trainpref", f"{tmp_path / 'short'},b", *train[2:], "-t", "tgt", "--words", 9,
        "--destdir", out,
    ).error  # fmt: skip
    assert f"{tmp_path}/short,b.src: cannot be read: No such file" in said  # one training text, as fairseq-preprocess
    assert not out.exists()
    short = tmp_path / "short.src"
    said = llrnn("rare-words", "restore", "--data", out, "--source", short, "--out", short).error
    assert said == f"--out {short}: expected another file, found one that is read, which would be lost"
    said = llrnn("rare-words", "restore", "--data", tmp_path, "--source", tmp_path / "short.src").error
    assert "a folder of `llrnn rare-words annotate`, found no source-words.txt in it; give its --dest" in said
    annotate(llrnn, translation.place, out, "--scheme", "copyable")
    typed(monkeypatch, "a\nb\n")
    said = llrnn("rare-words", "restore", "--data", out, "--source", tmp_path / "short.src").error
    assert said.startswith("stdin: expected 1 lines, as in ") and "short.src, found 2; give the transl" in said
    annotate(llrnn, translation.place, out, "--scheme", "positional")  # it may replace its own folder
    assert "<unkpos" in (out / "train.tgt").read_text(encoding="utf-8")
