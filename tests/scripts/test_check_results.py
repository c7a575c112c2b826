"""Published figures agree with docs/results/runs.jsonl, and each kind of difference gives one message."""

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from example_modules import ROOT, SCRIPTS, load

PAGE = """# Page

## Table

| Data | System | BLEU ↑ | Std | p | Loss (nats) ↓ | Seeds |
|---|---|---:|---:|---:|---:|---:|
| a | softmax | 31.0 | 0.5 | | 2.5 | 3 |
| a | [ours](page.md) | **32.5** | 0.1 | 0.03 | | 3 |

```bash
python scripts/one.py --quick | tee log
{command}
```

## Overview

| Task | Metric | Ours | Std | Baseline | Baseline value | Std | Seeds | p |
|---|---|---:|---:|---|---:|---:|---:|---:|
| b | perplexity ↓ | 1,020 | 2 | softmax | 2000 | 3 | 2 | 0.01 |
"""
README = "## Results\n\n| | ours |\n|---|---:|\n| b | 32.5; p = 0.03, width 512 |\n"


@pytest.fixture
def check() -> ModuleType:
    (module,) = load(SCRIPTS, "check_results")
    return module


@pytest.fixture
def root(tmp_path: Path, check: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one page, its runs and one script."""
    for folder in ("docs/results", "examples", "fairseq_llrnn", "scripts"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "scripts" / "one.py").write_text('add_argument("--quick")\n')
    (tmp_path / "scripts" / "all.sh").write_text('python one.py "$@"\n')
    (tmp_path / "README.md").write_text(README)
    page = PAGE.format(command="A=1 bash scripts/all.sh --anything")
    (tmp_path / "docs" / "results" / "page.md").write_text(page)
    runs = [*check.figures("page.md", page)]
    lines = [json.dumps(run | {"command": "python scripts/one.py -- --other"}) for run in runs]
    (tmp_path / "docs" / "results" / "runs.jsonl").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(sys, "argv", ["check_results.py", "--root", str(tmp_path)])
    return tmp_path


def test_the_published_figures_and_commands_of_this_repository(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["check_results.py", "--root", str(ROOT)])
    status = check.main()
    assert (status, capsys.readouterr().err) == (0, "")


def test_a_figure_has_the_numbers_on_its_right(check: ModuleType) -> None:
    softmax, loss, ours, overview = check.figures("page.md", PAGE)
    assert (softmax["row"], softmax["metric"], softmax["direction"]) == ("a · softmax", "BLEU ↑", "higher")
    assert (softmax["value"], softmax["std"], softmax["n"], softmax.get("p")) == (31.0, 0.5, 3, None)
    assert (loss["value"], loss["direction"], loss.get("std")) == (2.5, "lower", None)
    assert (ours["row"], ours["value"], ours["p"]) == ("a · ours", 32.5, 0.03)
    assert overview == {
        "page": "page.md", "section": "Overview", "row": "b", "direction": "lower", "metric": "perplexity ↓",
        "value": 1020, "std": 2, "baseline": "softmax", "baseline_value": 2000, "baseline_std": 3, "p": 0.01, "n": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("file", "before", "after", "message"),
    [
        ("docs/results/page.md", "31.0", "31.1", "BLEU ↑: value is 31.1 in the table and 31.0 in docs/results/"),
        ("docs/results/page.md", "0.1 |", "0.2 |", "std is 0.2 in the table and 0.1 in"),
        ("docs/results/page.md", "0.03", "", "p is None in the table and 0.03 in"),
        ("docs/results/page.md", "| 2000", "| 2001", "baseline_value is 2001.0 in the table and 2000.0 in"),
        ("docs/results/page.md", "| a | softmax", "| a | mine", "a · mine | BLEU ↑: expected a line in"),
        ("docs/results/page.md", "| a | softmax", "| a | mine", "a · softmax | BLEU ↑: expected this figure in a"),
        ("README.md", "32.5", "32.7", "README.md | b: expected 32.7 in docs/results/runs.jsonl, found no line with it"),
        ("docs/results/page.md", "one.py", "two.py", "page.md: scripts/two.py: expected a script of this repository"),
        ("docs/results/page.md", "--quick", "--quack", "one.py: expected options that its source has, found --quack"),
        ("docs/results/runs.jsonl", "one.py --", "one.py --new --", "runs.jsonl: scripts/one.py: expected options"),
        ("docs/results/runs.jsonl", '"command"', '"comand"', "expected a command in docs/results/runs"),
    ],
)
def test_a_difference_is_printed(
    check: ModuleType, root: Path, capsys: pytest.CaptureFixture[str], file: str, before: str, after: str, message: str
) -> None:
    path = root / file
    assert check.main() == 0 and capsys.readouterr().out == "4 figures agree with docs/results/runs.jsonl\n"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    assert check.main() == 1
    assert message in capsys.readouterr().err


def test_a_value_of_a_baseline_that_differs_from_its_row_is_printed(
    check: ModuleType, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = root / "docs" / "results" / "runs.jsonl"
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    runs[2] |= {"baseline": "a · softmax", "baseline_value": 30.0}
    path.write_text("".join(json.dumps(run) + "\n" for run in runs))
    assert check.main() == 1
    assert "baseline_value is 30.0 in docs/results/runs.jsonl and 31.0 in the table" in capsys.readouterr().err


def test_a_new_row_takes_the_data_of_the_line_before(
    check: ModuleType, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, path = root / "docs" / "results" / "page.md", root / "docs" / "results" / "runs.jsonl"
    page.write_text(page.read_text().replace("| a | [ours]", "| a | new | 33.0 | | | | 1 |\n| a | [ours]"))
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--update"])
    assert check.main() == 0
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    assert [run["row"] for run in runs] == ["a · softmax", "a · softmax", "a · new", "a · ours", "b"]
    assert (runs[2]["value"], runs[2]["command"]) == (33.0, "python scripts/one.py -- --other")


def test_an_update_keeps_baselines_and_corrects_their_values(
    check: ModuleType, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / "docs" / "results" / "runs.jsonl"
    before = [json.loads(line) for line in path.read_text().splitlines()]
    before[2] |= {"baseline": "a · softmax", "baseline_value": 30.0, "baseline_std": 0.5}
    path.write_text("".join(json.dumps(run) + "\n" for run in before))
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--update"])
    assert check.main() == 0
    before[2]["baseline_value"] = 31.0  # in its own row
    assert [json.loads(line) for line in path.read_text().splitlines()] == before
