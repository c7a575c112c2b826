"""`llrnn phrases extract` and `score`: tables from texts, the model's column, one clear line for what is wrong."""

import gzip
import math
from pathlib import Path

import pytest
from shell import Shell
from small_corpus import Llrnn
from translation_world import TranslationWorld

from fairseq_llrnn.alignment.phrase_table import PhrasePair, read_phrase_table
from fairseq_llrnn.plugin.scoring.sentences import load_scorer


@pytest.fixture(scope="session")
def model(shell: Shell, translation: TranslationWorld) -> Path:
    """A translation model that has learned something."""
    place = translation.place / "phrase-model"
    shell.run("fairseq-train", *translation.train_args(save_dir=place), "--max-epoch", 4)
    return place / "checkpoint_last.pt"


def extract(llrnn: Llrnn, translation: TranslationWorld, out: Path, *options: object) -> list[PhrasePair]:
    texts = [translation.place / f"train.{language}" for language in ("src", "tgt")]
    done = llrnn("phrases", "extract", "--bitext", *texts, "--aligner", "ibm1", "--out", out, *options)
    assert (done.code, done.err) == (0, "")
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


def test_fewer_links_make_more_phrases(llrnn: Llrnn, translation: TranslationWorld, tmp_path: Path) -> None:
    sizes = {
        method: len(extract(llrnn, translation, tmp_path / method, "--symmetrisation", method))
        for method in ("intersect", "grow-diag-final-and", "union")
    }
    assert sizes["intersect"] >= sizes["grow-diag-final-and"] >= sizes["union"] > 0


def test_what_cannot_be_used_is_said(llrnn: Llrnn, tmp_path: Path) -> None:
    source, target, out = (tmp_path / name for name in ("a", "b", "table"))
    source.write_text("x y\n\nx |||\nx\n", encoding="utf-8")
    target.write_text("1 2\n3\n1 4\n1\n", encoding="utf-8")
    done = llrnn("phrases", "extract", "--bitext", source, target, "--aligner", "ibm1", "--out", out)
    assert (done.code, done.out) == (0, "3 phrase pairs of 2 sentence pairs, 3 links\n")
    assert done.err == (
        "note: 1 sentence pair not used: a side without words, or with too many\n"
        "note: 1 sentence pair not used: a word with |||\n"
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
    assert (done.code, done.out) == (0, f"{len(pairs):,} phrase pairs scored\n"), done.err
    scored = list(read_phrase_table(out))
    texts = [[" ".join(side) for side in sides] for sides in zip(*((p.source, p.target) for p in pairs), strict=True)]
    expected = load_scorer(str(model), 2048).score(texts[0], texts[1])
    assert [s.scores[-1] for s in scored] == pytest.approx([math.exp(e) for e in expected], rel=1e-4)
    for before, after in zip(pairs, scored, strict=True):
        assert after.scores[:-1] == before.scores
        assert (after.source, after.target, after.links, after.counts) == (
            before.source, before.target, before.links, before.counts
        )  # fmt: skip


def test_bad_options(llrnn: Llrnn, translation: TranslationWorld, checkpoint: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "table", tmp_path / "out"
    table.write_text("a ||| b ||| 0.5\n", encoding="utf-8")
    texts = [table, table]
    assert llrnn("phrases", "extract", "--bitext", *texts, "--out", out, "--max-length", 8).error == (
        "--max-length 8: expected a number from 1 to 7"
    )
    said = llrnn("phrases", "extract", "--bitext", *texts, "--out", tmp_path / "no" / "out").error
    assert said.endswith("expected a place in a folder, but there is no such folder; make it first")
    empty = tmp_path / "empty"
    empty.write_text("\n", encoding="utf-8")
    done = llrnn("phrases", "extract", "--bitext", empty, empty, "--aligner", "ibm1", "--out", out)
    assert (done.code, done.out) == (2, "")
    assert "expected sentence pairs with words on both sides, found none among 1; give two texts" in done.err
    said = llrnn("phrases", "score", "--path", checkpoint, "--table", table, "--out", out, "--max-tokens", 0).error
    assert said == "--max-tokens 0: expected a number of at least 1"
    said = llrnn("phrases", "score", "--path", checkpoint, "--table", table, "--out", table).error
    assert said.endswith("expected another file than the table, which would be lost")
    said = llrnn("phrases", "score", "--path", checkpoint, "--table", table, "--out", out).error
    assert "expected a translation model, found a language model; give another one" in said
    table.write_text("a ||| b ||| 0.5\na ||| b\n", encoding="utf-8")
    said = llrnn("phrases", "score", "--path", checkpoint, "--table", table, "--out", out).error
    assert "table, line 2: expected `source ||| target ||| scores ||| links ||| counts`, found 2 of these" in said
    assert not out.exists()
