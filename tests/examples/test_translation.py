"""The example of translation as a user runs it, with the fewer pairs and epochs that it documents."""

import shutil
from pathlib import Path

import pytest
from example_modules import run_example
from shell import Result

TINY = {"PAIRS": "600", "EPOCHS": "3"}
SYSTEMS = ["softmax", "log-linear"]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("translation") / "work"


@pytest.fixture(scope="module")
def first(work: Path) -> Result:
    """What the first run wrote."""
    return run_example("translation/run.sh", work, variables=TINY)


def report(result: Result) -> list[list[str]]:
    """The lines of the last step, in words."""
    return [line.split() for line in result.out.partition("== 5/5")[2].splitlines()]


def figures(result: Result, row: str) -> dict[str, float]:
    """What a row of the report says of each system."""
    (found,) = [line for line in report(result) if " ".join(line).startswith(f"{row} ")]
    return dict(zip(SYSTEMS, (float(cell.rstrip("%")) for cell in found[-2:]), strict=True))


@pytest.mark.slow
def test_it_runs_to_its_table_and_page(work: Path, first: Result) -> None:
    assert "train     600 " in first.out
    assert ["Scores"] in report(first) and ["softmax", "log-linear"] in report(first)
    bleu = figures(first, "BLEU")
    assert bleu["log-linear"] > bleu["softmax"]
    assert "</html>" in (work / "report.html").read_text("utf-8")
    for system in SYSTEMS:
        assert f"{system}: validation perplexity" in first.out
        log = (work / system / "train.log").read_text("utf-8")
        assert "num_updates" in log and "epoch 003" in log and "epoch 004" not in log
        translations = (work / system / "test.fr").read_text("utf-8").splitlines()
        assert len(translations) == len((work / "corpus" / "test.en").read_text("utf-8").splitlines())


@pytest.mark.slow
def test_numbers_and_names_that_training_lacks_are_copied(work: Path, first: Result) -> None:
    for kind in ("name, unseen", "number, unseen"):
        found = figures(first, kind)
        assert found["log-linear"] > found["softmax"], found  # few epochs: how much more is up to the machine
    known = set((work / "corpus" / "train.fr").read_text("utf-8").split())
    written = set((work / "log-linear" / "test.fr").read_text("utf-8").split())
    offered = set((work / "corpus" / "test.en").read_text("utf-8").split()) - known
    assert any(word.isdigit() for word in written & offered)
    assert any(word.isalpha() and word.istitle() for word in written & offered)


@pytest.fixture
def copied(work: Path, first: Result, tmp_path: Path) -> Path:
    """A work directory in which files may be deleted."""
    return Path(shutil.copytree(work, tmp_path / "work"))


@pytest.mark.slow
def test_run_again_it_goes_on_where_it_stopped(copied: Path, first: Result) -> None:
    work = copied
    translations = (work / "softmax" / "test.fr").read_bytes()
    (work / "softmax" / "test.fr").unlink()
    for system in SYSTEMS:
        (work / system / "train.log").unlink()
    again = run_example("translation/run.sh", work, variables=TINY)
    assert again.out.count("trained already") == 2 and "perplexity" not in again.out
    assert f"log-linear: translated already, in {work / 'log-linear' / 'test.fr'}" in again.out
    assert "softmax: translated already" not in again.out and "prior written" not in again.out
    assert (work / "softmax" / "test.fr").read_bytes() == translations
    assert not any((work / system / "train.log").exists() for system in SYSTEMS)
    assert report(again) == report(first)
