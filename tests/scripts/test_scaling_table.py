"""The arithmetic about large vocabularies: the published rows are what the script prints."""

import json
import sys

import pytest
from example_modules import SCRIPTS, load


def test_the_published_rows_are_what_the_script_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (table,) = load(SCRIPTS, "scaling_table")
    monkeypatch.setattr(sys, "argv", ["scaling_table"])
    assert table.main() == 0
    lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    measured = (SCRIPTS.parent / "docs" / "results" / "measurements.jsonl").read_text(encoding="utf-8")
    known = [row for row in map(json.loads, measured.splitlines()) if row["page"] == "many-machines"]
    section = [row["cells"] for row in known if row["section"] == "The output layer by arithmetic"]
    assert len(section) == 3 * 4
    assert lines[2:] == section
