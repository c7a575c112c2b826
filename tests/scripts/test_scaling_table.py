"""The arithmetic about large vocabularies gives the rows that were read against the formulas."""

import sys

import pytest
from example_modules import BENCH, load

ROWS = """
softmax | 1,025.0 M | 16.40 GB | 98.30 GB | 8 | 503.3 + 287.0 ms | 33.50 h
softmax | 1,025.0 M | 16.40 GB | 98.30 GB | 32 | 503.3 + 317.8 ms | 8.70 h
softmax | 1,025.0 M | 16.40 GB | 98.30 GB | 64 | 503.3 + 322.9 ms | 4.38 h
softmax | 1,025.0 M | 16.40 GB | 98.30 GB | 256 | 503.3 + 326.7 ms | 1.10 h
log-linear, S = 25,000 | 25.6 M | 0.44 GB | 1.09 GB | 8 | 12.6 + 7.2 ms | 0.84 h
log-linear, S = 25,000 | 25.6 M | 0.44 GB | 1.09 GB | 32 | 12.6 + 7.9 ms | 0.22 h
log-linear, S = 25,000 | 25.6 M | 0.44 GB | 1.09 GB | 64 | 12.6 + 8.1 ms | 0.11 h
log-linear, S = 25,000 | 25.6 M | 0.44 GB | 1.09 GB | 256 | 12.6 + 8.2 ms | 0.03 h
log-linear, S = 100,000 | 102.5 M | 1.67 GB | 4.16 GB | 8 | 50.4 + 28.7 ms | 3.35 h
log-linear, S = 100,000 | 102.5 M | 1.67 GB | 4.16 GB | 32 | 50.4 + 31.8 ms | 0.87 h
log-linear, S = 100,000 | 102.5 M | 1.67 GB | 4.16 GB | 64 | 50.4 + 32.3 ms | 0.44 h
log-linear, S = 100,000 | 102.5 M | 1.67 GB | 4.16 GB | 256 | 50.4 + 32.7 ms | 0.11 h
"""


def test_the_rows_of_the_arithmetic(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (table,) = load(BENCH, "scaling_table")
    monkeypatch.setattr(sys, "argv", ["scaling_table"])
    assert table.main() == 0
    lines = [line.strip("| ") for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert lines[2:] == ROWS.strip().splitlines()
