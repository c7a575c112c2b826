"""scripts/cheap_rows.py measures rows of pages again."""

from decimal import Decimal
from pathlib import Path

import pytest
from example_modules import ROOT, SCRIPTS, load

cheap_rows, ledger = load(SCRIPTS, "cheap_rows", "ledger")
RUNS = ledger.read_ledger(ROOT / ledger.LEDGER)


def test_rows_are_on_their_pages() -> None:
    for row in cheap_rows.ROWS:
        assert row.key in (ROOT / "docs/results" / row.page).read_text(encoding="utf-8")


@pytest.mark.parametrize(("change", "status", "last"), [("0", 0, "equal"), ("0.5", 1, "different")])
def test_figures_are_compared(
    change: str, status: int, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "here").mkdir()
    key = cheap_rows.ROWS[0].key
    value = RUNS[key]["value"] + Decimal(change)
    row = cheap_rows.Row("page.md", key, "here", lambda data, out: float(value))
    monkeypatch.setattr(cheap_rows, "ROWS", (row, row._replace(folder="there")))
    monkeypatch.setattr("sys.argv", ["cheap_rows.py", str(tmp_path), "--out", str(tmp_path / "out")])
    assert cheap_rows.main() == status
    found, skipped = capsys.readouterr().out.splitlines()
    assert found == f"page.md\t{key}\t{RUNS[key]['value']}\t{value}\t{last}"
    assert skipped == f"page.md\t{key}\tskipped: {tmp_path / 'there'} is absent"


@pytest.mark.slow
@pytest.mark.real_data("ud-hungarian-szeged")
def test_the_hungarian_row(shared_data: Path, tmp_path: Path) -> None:
    row = cheap_rows.ROWS[0]
    assert f"{row.measure(shared_data / row.folder, tmp_path):.2f}" == str(RUNS[row.key]["value"])
