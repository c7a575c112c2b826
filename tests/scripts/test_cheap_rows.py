"""scripts/cheap_rows.py measures rows of pages again."""

import gzip
import math
from decimal import Decimal
from pathlib import Path

import pytest
from example_modules import ROOT, SCRIPTS, load

cheap_rows, ledger = load(SCRIPTS, "cheap_rows", "ledger")
RUNS = ledger.read_ledger(ROOT / ledger.LEDGER)


def test_rows_are_on_their_pages() -> None:
    for row in cheap_rows.ROWS:
        assert row.key in (ROOT / "docs/results" / row.page).read_text(encoding="utf-8")


def test_each_page_has_a_row_or_a_reason() -> None:
    pages = {page.name for page in (ROOT / "docs/results").glob("*.md")} - {"README.md"}
    assert {*(row.page for row in cheap_rows.ROWS), *cheap_rows.WITHOUT_ROW} == pages
    assert not {row.page for row in cheap_rows.ROWS} & {*cheap_rows.WITHOUT_ROW}


@pytest.mark.parametrize(("most", "lines"), [(3, "a b\n"), (4, "a b\nc\n"), (math.inf, "a b\nc\nd e f\n")])
def test_the_first_sentences_with_so_many_tokens(most: float, lines: str, tmp_path: Path) -> None:
    (tmp_path / "all.gz").write_bytes(gzip.compress(b"a b\n\nc\nd e f\n"))
    cheap_rows.write_tokens(tmp_path / "all.gz", tmp_path / "part", most)
    assert (tmp_path / "part").read_text(encoding="utf-8") == lines


@pytest.mark.parametrize(("change", "status", "last"), [("0", 0, "equal"), ("0.5", 1, "different")])
def test_figures_are_compared(
    change: str, status: int, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "here").mkdir()
    key = cheap_rows.ROWS[0].key
    value = RUNS[key]["value"] + Decimal(change)
    row = cheap_rows.Row("page.md", key, "here", lambda data, out: float(value))
    monkeypatch.setattr(cheap_rows, "ROWS", (row, row._replace(folder="there")))
    monkeypatch.setattr(cheap_rows, "WITHOUT_ROW", {"other.md": "an hour"})
    monkeypatch.setattr("sys.argv", ["cheap_rows.py", str(tmp_path), "--out", str(tmp_path / "out")])
    assert cheap_rows.main() == status
    found, skipped, without = capsys.readouterr().out.splitlines()
    assert found == f"page.md\t{key}\t{RUNS[key]['value']}\t{value}\t{last}"
    assert skipped == f"page.md\t{key}\tskipped: {tmp_path / 'there'} is absent"
    assert without == "other.md\tno cheap row\tan hour"


@pytest.mark.slow
@pytest.mark.real_data("ud-hungarian-szeged")
def test_the_hungarian_row(shared_data: Path, tmp_path: Path) -> None:
    row = cheap_rows.ROWS[0]
    assert f"{row.measure(shared_data / row.folder, tmp_path):.2f}" == str(RUNS[row.key]["value"])


@pytest.mark.slow
@pytest.mark.real_data("geoquery")
def test_the_row_of_grammars(shared_data: Path, tmp_path: Path) -> None:
    (row,) = (row for row in cheap_rows.ROWS if row.page == "grammars.md")
    assert row.measure(shared_data / row.folder, tmp_path) == 280
