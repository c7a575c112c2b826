"""The example of expert features: its files, its expert, its figures; and the whole of it as a user runs it."""

import sys
from pathlib import Path

import pytest
from example_modules import EXAMPLES, load, run_example

from fairseq_llrnn.systems.experts.expert import Firing
from fairseq_llrnn.systems.experts.loading import load_experts

EXAMPLE = EXAMPLES / "expert"
make_questions, measure_answers = load(EXAMPLE, "make_questions", "measure_answers")


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "argv", ["make_questions.py", str(tmp_path / "text")])
    make_questions.main()
    return tmp_path / "text"


def test_towns_of_the_test_are_in_no_training_question(text: Path) -> None:
    facts = [line.split("\t") for line in (text / "table.tsv").read_text("utf-8").splitlines()]
    towns = {town for town, _, _ in facts}
    assert len(facts) == 900 and len(towns) == 300
    said = {split: set((text / f"{split}.q").read_text("utf-8").split()) & towns for split in ("train", "test")}
    assert said["train"] and said["test"] and not said["train"] & said["test"]
    for ending in "qa":
        known = {line.split()[0] for line in (text / f"vocabulary.{ending}.txt").read_text("utf-8").splitlines()}
        assert all(set((text / f"{split}.{ending}").read_text("utf-8").split()) <= known for split in said)


def test_the_expert_knows_every_number_that_is_due(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOWNS", str(text / "table.tsv"))
    (expert,) = load_experts(f"{EXAMPLE / 'knows_the_table.py'}:KnowsTheTable")
    expert.open(None)  # type: ignore[arg-type]
    for split in ("train", "valid", "test"):
        questions, answers = ((text / f"{split}.{e}").read_text("utf-8").splitlines() for e in "qa")
        for question, answer in zip(questions, answers, strict=True):
            numbers = [word for word in answer.split() if word.isdigit()]
            firing = expert.fires(question.split(), ())
            expected = Firing(1.0, {"Pattern:number": -1.0}, {numbers[0]: 1.0}) if numbers else Firing()
            assert firing == expected, question


def test_the_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"q": "a ?\nb ?\nc ?\nd ?", "r": "it is 7 .\n8 .\nhello\nhello", "x": "it is 7 .\nno\nhello\nit is 3"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text + "\n", encoding="utf-8")
    questions, references = str(tmp_path / "q"), str(tmp_path / "r")
    monkeypatch.setattr(sys, "argv", ["measure_answers.py", questions, references, f"mine={tmp_path / 'x'}"])
    measure_answers.main()
    assert "| mine | 50.0% of 2 | 100.0% of 1 | 50.0% of 2 |" in capsys.readouterr().out


@pytest.mark.slow
def test_the_example_as_a_user_runs_it(tmp_path: Path) -> None:
    done = run_example("expert/run.sh", tmp_path / "work", cwd=tmp_path, variables={"EPOCHS": "3"})
    rows = {line.split("|")[1].strip(): line.split("|") for line in done.out.splitlines() if line.startswith("| ")}
    assert float(rows["expert"][3].split("%")[0]) > 95 and float(rows["alone"][3].split("%")[0]) < 5
    assert float(rows["expert"][4].split("%")[0]) < 5
