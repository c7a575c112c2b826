"""`llrnn phrases`: tables of texts, the column of a model, features of lists, and errors."""

import gzip
import json
import math
import re
from pathlib import Path

import pytest
from nbest_lists import but_counts
from shell import Shell
from small_corpus import Llrnn
from translation_world import TranslationWorld

from fairseq_llrnn.plugin.scoring.sentences import load_scorer
from llrnn_research.phrase_tables.phrase_table import PhrasePair, PhraseTable, read_phrase_table

NAMES = [f"phrases{n}" for n in (1, 2, 3, 4)]


@pytest.fixture(scope="session")
def model(shell: Shell, translation: TranslationWorld) -> Path:
    """A translation model that has learned something."""
    place = translation.place / "phrase-model"
    shell.run("fairseq-train", *translation.train_args(save_dir=place), "--max-epoch", 2)
    return place / "checkpoint_last.pt"


def extract(llrnn: Llrnn, translation: TranslationWorld, out: Path, *options: object) -> list[PhrasePair]:
    texts = [translation.place / f"train.{language}" for language in ("src", "tgt")]
    done = llrnn("phrases", "extract", "--bitext", *texts, "--aligner", "ibm1", "--out", out, *options)
    assert (done.code, but_counts(done.err)) == (0, "")
    pairs = list(read_phrase_table(out))
    assert done.out.startswith(f"{len(pairs):,} phrase pairs of ")
    return pairs


@pytest.mark.parametrize("name", ["table", "table.gz"])
def test_every_word_is_translated_by_itself_backwards(
    llrnn: Llrnn, translation: TranslationWorld, tmp_path: Path, name: str
) -> None:
    pairs = extract(llrnn, translation, tmp_path / name, "--max-length", 2)
    words = {pair.source[0]: pair for pair in sorted(pairs, key=lambda p: p.scores[2]) if len(pair.source) == 1}
    right = sum(pair.target == (word[::-1],) for word, pair in words.items())
    assert right > 0.9 * len(words)
    assert max(len(pair.source) for pair in pairs) == max(len(pair.target) for pair in pairs) == 2
    assert (tmp_path / name).read_bytes()[:2] == (b"\x1f\x8b" if name.endswith(".gz") else pairs[0].line().encode()[:2])


def test_what_cannot_be_used_is_said(llrnn: Llrnn, tmp_path: Path) -> None:
    source, target, out = (tmp_path / name for name in ("a", "b", "table"))
    source.write_text("x y\n\nx a|b\nx\n", encoding="utf-8")
    target.write_text("1 2\n3\n1 4\n1\n", encoding="utf-8")
    done = llrnn("phrases", "extract", "--bitext", source, target, "--aligner", "ibm1", "--out", out)
    assert (done.code, done.out) == (0, "3 phrase pairs of 2 sentence pairs, 3 links\n")
    assert but_counts(done.err) == (
        "note: 1 sentence pair not used: a side without words, or with too many\n"
        "note: 1 sentence pair not used: a word with |, Moses' separator of factors\n"
    )
    assert out.read_text(encoding="utf-8") == (
        "x y ||| 1 2 ||| 1 1 1 1 ||| 0-0 1-1 ||| 1 1 1\nx ||| 1 ||| 1 1 1 1 ||| 0-0 ||| 2 2 2\n"
        "y ||| 2 ||| 1 1 1 1 ||| 0-0 ||| 1 1 1\n"
    )


def test_the_models_column(llrnn: Llrnn, translation: TranslationWorld, model: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "table.gz", tmp_path / "scored.gz"
    pairs = extract(llrnn, translation, table, "--max-length", 2)[:1100]
    table.write_bytes(gzip.compress("".join(pair.line() + "\n" for pair in pairs).encode()))
    done = llrnn("phrases", "score", "--path", model, "--table", table, "--out", out)
    assert done.code == 0 and done.out.startswith(f"{len(pairs):,} phrase pairs scored\nprior  llrnn:"), done.err
    scored = list(read_phrase_table(out))
    texts = [[" ".join(side) for side in sides] for sides in zip(*((p.source, p.target) for p in pairs), strict=True)]
    expected = load_scorer(str(model), 2048).score(texts[0], texts[1])
    assert [s.scores[-1] for s in scored] == pytest.approx([math.exp(e) for e in expected], rel=1e-4)
    for before, after in zip(pairs, scored, strict=True):
        assert after.scores[:-1] == before.scores
        assert (after.source, after.target, after.links, after.counts) == (
            before.source, before.target, before.links, before.counts
        )  # fmt: skip
    piped = llrnn("phrases", "score", "--path", model, "--table", table, "--out", "-")
    assert (piped.code, but_counts(piped.err)) == (0, done.out)
    assert piped.out == gzip.decompress(out.read_bytes()).decode()


# ---- as features of lists --------------------------------------------------------------------------------------------


@pytest.fixture
def lists(llrnn: Llrnn, translation: TranslationWorld, tmp_path: Path) -> tuple[Path, Path, Path]:
    """A phrase table, the source of twenty sentences, and hypotheses: the translation, and it with a word exchanged."""
    table, source, nbest = (tmp_path / name for name in ("table.gz", "source", "nbest"))
    extract(llrnn, translation, table)
    lines = translation.source("test")[:20]
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with nbest.open("w", encoding="utf-8") as file:
        for n, line in enumerate(lines):
            right = [word[::-1] for word in line.split()]
            wrong = [*right[:-1], "xyz"]
            file.write(f"{n} ||| {' '.join(wrong)} ||| -1\n{n} ||| {' '.join(right)} ||| -1\n")
    return table, source, nbest


def test_a_table_ranks_a_list(llrnn: Llrnn, model: Path, lists: tuple[Path, Path, Path], tmp_path: Path) -> None:
    table, source, nbest = lists
    references = tmp_path / "references"
    sources = source.read_text(encoding="utf-8").splitlines()
    right = [" ".join(w[::-1] for w in line.split()) for line in sources]
    references.write_text("".join(f"{line}\n" for line in right), encoding="utf-8")
    out, covered = tmp_path / "best", tmp_path / "covered.jsonl"
    done = llrnn("phrases", "cover", "--table", table, "--source", source, "--nbest", nbest, "--out", covered)
    assert done.code == 0
    assert re.fullmatch(rf"{2 * len(sources)} hypotheses, [\d.]+% of their words without a phrase\n", done.out)
    read = PhraseTable.read(table, sources)
    rows = list(map(json.loads, covered.read_text(encoding="utf-8").splitlines()))
    assert [row["source"] for row in rows] == sources
    for row in rows:
        for item in row["hypotheses"]:
            (expected,) = read.scores([row["source"]], [item["text"]])
            assert item["score"] == -1 and list(item["features"]) == NAMES
            assert [*item["features"].values()] == pytest.approx(expected)
    given = ["rescore", "--path", model, "--nbest", covered, "--features", *NAMES, "--out", out]
    done = llrnn(*given, "--tune", source, covered, references, "--tokenize", "none")
    assert done.code == 0, done.err
    assert out.read_text(encoding="utf-8") == references.read_text(encoding="utf-8")
    weights = json.loads(out.with_name("best.weights.json").read_text())["weights"]
    assert list(weights) == ["list", "model", *(f"list.{name}" for name in NAMES), "words"]


def test_lists_and_tables_that_cannot_be_used(llrnn: Llrnn, lists: tuple[Path, Path, Path], tmp_path: Path) -> None:
    table, source, nbest = lists
    bad, out = tmp_path / "bad", tmp_path / "covered"
    bad.write_text("a ||| b ||| 1 1\na ||| b ||| 1\n", encoding="utf-8")
    given = ["phrases", "cover", "--nbest", nbest, "--out", out]
    said = llrnn(*given, "--table", bad, "--source", source).error
    assert said.startswith(f"{bad}, line 2: expected 2 scores, as in the first line, found 1; fix the line")
    assert llrnn(*given, "--table", table).error == f"--nbest {nbest}: the list has no source; give --source FILE"
    said = llrnn("phrases", "cover", "--nbest", nbest, "--out", table, "--table", table, "--source", source).error
    assert "found one that is read, which would be lost" in said
    nbest.write_text("S-0\ta\nH-0\t-1\tb@@ c\nD-0\t-1\tbc\n", encoding="utf-8")
    said = llrnn(*given, "--table", table).error
    assert said == (
        f"{nbest}: expected hypotheses in one form, found another text in D- lines; generate without --remove-bpe and "
        "without a tokenizer"
    )
    assert not out.exists()


def test_bad_options(llrnn: Llrnn, translation: TranslationWorld, checkpoint: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "table", tmp_path / "out"
    table.write_text("a ||| b ||| 0.5\n", encoding="utf-8")
    texts = [table, table]
    assert llrnn("phrases", "extract", "--bitext", *texts, "--out", out, "--max-length", 8).error == (
        "--max-length 8: expected a number from 1 to 7"
    )
    said = llrnn("phrases", "extract", "--bitext", *texts, "--out", tmp_path / "no" / "out").error
    assert said.endswith("expected a place in a folder, but there is no such folder; make it first")
    said = llrnn("phrases", "extract", "--bitext", *texts, "--out", table).error
    assert said == f"--out {table}: expected another file, found one that is read, which would be lost"
    empty = tmp_path / "empty"
    empty.write_text("\n", encoding="utf-8")
    done = llrnn("phrases", "extract", "--bitext", empty, empty, "--aligner", "ibm1", "--out", out)
    assert (done.code, done.out) == (2, "")
    assert "expected sentence pairs with words on both sides, found none among 1; give two texts" in done.err
    said = llrnn("phrases", "score", "--path", checkpoint, "--table", table, "--out", out, "--max-tokens", 0).error
    assert said == "--max-tokens 0: expected a number of at least 1"
    said = llrnn("phrases", "score", "--path", checkpoint, "--table", table, "--out", table).error
    assert said.endswith("expected another file, found one that is read, which would be lost")
    said = llrnn("phrases", "score", "--path", checkpoint, "--table", table, "--out", out).error
    assert "expected a translation model, found a language model; give another one" in said
    table.write_text("a ||| b ||| 0.5\na ||| b\n", encoding="utf-8")
    said = llrnn("phrases", "score", "--path", checkpoint, "--table", table, "--out", out).error
    assert "table, line 2: expected `source ||| target ||| scores ||| links ||| counts`, found 2 of these" in said
    assert not out.exists()
