"""The arithmetic about large vocabularies: what it says of small ones is what a step needs."""

import sys
from types import ModuleType

import pytest
from example_modules import SCRIPTS, load


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (module,) = load(SCRIPTS, "scaling_table")
    for name, value in {"N": 300, "H": 8, "M": 300, "MORPHOLOGICAL": 20, "FEATURES": 12, "USUAL": 900}.items():
        monkeypatch.setattr(module.bench, name, value)
    return module


def test_the_page_has_what_the_script_prints(
    table: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["scaling_table"])
    assert table.main() == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    page = (SCRIPTS.parent / "docs" / "results" / "many-machines.md").read_text(encoding="utf-8")
    assert len(rows) == 2 + 3 * 4
    assert "\n".join(rows) in page
