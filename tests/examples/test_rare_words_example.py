"""The comparison of rare words as a user runs it, of each kind of its rows one, on files of Multi30k's form."""

from pathlib import Path

import pytest
from example_modules import run_example
from multi30k_files import write_multi30k
from shell import Result

ROWS = ["unk", "positional-all", "slots", "words", "hybrid"]
TINY = {"PAIRS": "80", "WORDS": "40", "ROWS": " ".join(f"{row}=2" for row in ROWS)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rare-words")
    write_multi30k(made / "multi30k", made / "toy", [("the 12 dogs .", "les 12 chiens .")])
    return made


@pytest.fixture(scope="module")
def first(place: Path) -> Result:
    """What the first run wrote."""
    return run_example("translation/rare_words.sh", place / "multi30k", place / "work", variables=TINY)


def recall(report: str) -> dict[str, float]:
    """The share of numbers and names that each system has, by a report."""
    lines = report.partition("Numbers and names")[2].splitlines()
    found = next(line for line in lines if line.strip().startswith("recall")).split()[1:]
    return dict(zip(lines[1].split()[1:], (float(cell.rstrip("%")) for cell in found), strict=True))


@pytest.mark.slow
def test_annotated_references_have_the_rare_words_back(first: Result) -> None:
    ceilings = recall(first.out.partition("== 2/3")[0])
    assert list(ceilings) == ["unk", "copyable", "positional", "positional-all"]
    assert ceilings["unk"] == 0.0 and all(ceilings[scheme] > 0.0 for scheme in list(ceilings)[1:])


@pytest.mark.slow
def test_every_row_is_trained_translated_and_measured(place: Path, first: Result) -> None:
    work, told = place / "work", first.out.partition("== 3/3")[2]
    assert list(recall(told)) == ["no-copies", *ROWS]
    assert "</html>" in (work / "report.html").read_text("utf-8")
    texts = {name: (work / f"{name}.fr").read_text("utf-8") for name in ("no-copies", *ROWS)}
    for row in ROWS:
        assert f"{row}, 2 updates, and translation:" in told and f"{row}: validation perplexity" in told
        assert "num_updates: 2" in (work / "models" / row / "train.log").read_text("utf-8")
        assert len(texts[row].splitlines()) == len((work / "text" / "test.en").read_text("utf-8").splitlines()) == 5
    known = {line.split()[0] for line in (work / "data/unk/dict.fr.txt").read_text("utf-8").splitlines()}
    assert len(known) == 40 and set(texts["no-copies"].split()) <= known | {"<unk>"}
    assert "<unk>" not in texts["unk"]  # which copies what they are aligned to
    assert set(texts["slots"].split()) - known


@pytest.mark.slow
def test_run_again_it_goes_on_where_it_stopped(place: Path, first: Result) -> None:
    more = TINY | {"ROWS": f"{TINY['ROWS']} copyable=2"}
    again = run_example("translation/rare_words.sh", place / "multi30k", place / "work", variables=more)
    assert "prior written" not in again.out and again.out.count("and translation:") == 1
    found, told = recall(again.out.partition("== 3/3")[2]), recall(first.out.partition("== 3/3")[2])
    assert set(found) == {"copyable", *told} and all(found[name] == told[name] for name in told)
