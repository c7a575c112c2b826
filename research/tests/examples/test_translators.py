"""The table of the first translators, on files of the form of Multi30k: rows, rescoring, phrases, mistakes."""

import gzip
from pathlib import Path

import pytest
from example_modules import OF_RESEARCH, run_example

from toy_french.bilingual import make_bitext, write_bitext

SPLITS = {"train": "train", "val": "valid", "test2016": "test"}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("translators")
    (place / "data").mkdir()
    write_bitext(make_bitext(200, 1), place / "toy")
    for split, name in SPLITS.items():
        for language in ("en", "fr"):
            lines = (place / "toy" / f"{name}.{language}").read_text(encoding="utf-8").lower().splitlines()[:60]
            packed = gzip.compress("".join(f"{line}\n" for line in lines).encode())
            (place / "data" / f"{split}.tok.{language}.gz").write_bytes(packed)
    (place / "lexicon.tsv.gz").write_bytes(gzip.compress((place / "toy" / "lexicon.tsv").read_bytes()))
    say(place, "prepare", "--data", place / "data", "--lexicon", place / "lexicon.tsv.gz")
    return place


def say(place: Path, stage: str, *options: object, code: int = 0) -> str:
    given = (OF_RESEARCH / "translators/translators.py", stage, *options, "--out", place / "out")
    result = run_example(*given, cwd=place, code=code)
    return result.out + result.err


def check_phrases(place: Path) -> None:
    said = say(place, "phrases", "--of", "rnnsearch-softmax", "--max-update", 3)
    assert "encoder-decoder-softmax on phrase pairs: 3 updates" in said
    assert "phrase pairs that the lists can use, scored by encoder-decoder-ours in" in said
    without, table, *scored = said[said.index("no phrases:") :].split(":\nscore ")[1:]
    assert "\ndev " in without
    assert "phrases1" not in without
    assert "phrases4" in table and "phrases5" not in table
    assert len(scored) == 2 and all("phrases5" in part and "\ntest " in part for part in scored)


@pytest.mark.slow
def test_rows_rescoring_phrases_and_the_table(prepared: Path) -> None:
    for row in ("rnnsearch-softmax", "rctm2-ours"):
        assert " on test\n" in say(prepared, "row", row, "--max-update", 3)
    said = say(prepared, "row", "rctm2-ours", "--max-update", 3, "--lr", 0.01)
    assert said.startswith("rctm2-ours-lr0.01: 3 updates in") and "\nrctm2-ours-lr0.01: perplexity " in said
    assert "updates" not in say(prepared, "row", "rctm2-ours", "--max-update", 3)  # done
    refused = say(prepared, "row", "rctm2-ours", code=2)
    assert "rows/rctm2-ours: expected a training of 5850 updates, found one of 3; use another --out" in refused
    said = say(prepared, "rescore", "rctm2-ours", "--of", "rnnsearch-softmax")
    assert "\nmodel        1.0000" in said and "\ntest " in said
    check_phrases(prepared)
    table = say(prepared, "table").splitlines()
    first = [line for line in table if line.startswith("| RCTM II")]
    assert len(first) == 2 and "| ours | 3 |" in first[0]
    assert sum(line.startswith("| RNNsearch") for line in table) == 2
