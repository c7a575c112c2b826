"""Treebank to text: the split, the spelling of words, the subsets' names, and the real corpus."""

import hashlib
from pathlib import Path

import pytest
from example_modules import load, run_example
from french_treebank import FOLDER, TRAIN, write_treebank

(prepare,) = load(FOLDER, "prepare")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("french")
    ud = write_treebank(folder / "ud")
    run_example("french_morphology/prepare.py", "--ud", ud, "--out", folder / "out")
    return folder / "out"


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_the_last_twentieth_of_train_is_validation(prepared: Path) -> None:
    texts = {name: lines(prepared / "text" / f"{name}.txt") for name in ("train", "valid", "test1", "test2", "all")}
    assert len(texts["valid"]) == round(len(TRAIN) / 20)
    assert texts["train"] + texts["valid"] == TRAIN
    assert texts["all"] == texts["train"] + texts["valid"] + texts["test1"] + texts["test2"]


def test_the_train_only_treebank_lacks_the_validation_sentences(prepared: Path) -> None:
    assert prepare.sentences(prepared / "train.conllu") == lines(prepared / "text" / "train.txt")


def test_a_word_with_a_space_stays_one_word() -> None:
    assert prepare.sentence_text(["10 000", "ans"]) == "10_000 ans"


@pytest.mark.slow
@pytest.mark.real_data("ud-french-gsd-1.4")
def test_the_french_corpus(shared_data: Path, tmp_path: Path) -> None:
    texts = prepare.write_texts(shared_data / "ud-french-gsd-1.4", tmp_path)
    assert {name: len(text) for name, text in texts.items()} == {
        "train": 13_826, "valid": 728, "test1": 298, "test2": 1_596
    }  # fmt: skip
    counts = prepare.count(texts)
    assert (counts["all"].words, counts["all"].types) == (402_197, 42_503)
    assert (counts["test1"].words, counts["test1"].new_types) == (7_020, 360)
    digest = hashlib.sha256((tmp_path / "text" / "all.txt").read_bytes()).hexdigest()
    assert digest.startswith("c317c9ab42c87be0")
    table = prepare.table(counts)
    assert "463,069" in table and "42,894" in table and "402,197" in table
