"""The demo's report: its table and picture from known grades, and what it says when something is missing."""

from pathlib import Path
from types import ModuleType

import pytest
from example_modules import EXAMPLES, load

from toy_french import Probe
from toy_french.evaluation import KINDS, Grades


@pytest.fixture(scope="module")
def demo_report() -> ModuleType:
    (module,) = load(EXAMPLES / "quickstart", "demo_report")
    return module


def grades(right: float) -> Grades:
    probes = [Probe("agreement", "la porte est", f"r{i}", f"w{i}", 4 * i) for i in range(3)]
    probes += [Probe("number", "le prix est de", "37", "lyon", 2), Probe("place", "elle va à", "lyon", "37", 1)]
    return Grades(dict.fromkeys(KINDS, 2.0), dict.fromkeys(KINDS, 10), [(probe, right) for probe in probes])


def test_long_names_of_models_are_apart(demo_report: ModuleType) -> None:
    names = ["softmax", "softmax, unigram", "log-linear"]
    lines = demo_report.table([demo_report.Entry(name, grades(1.0), (-9.0, -8.0), 1, 1.0) for name in names])
    header, *rows = lines.splitlines()
    assert header.split("  ")[-1] == "log-linear" and "softmax  softmax, unigram  " in header
    assert {len(row) for row in rows} == {len(header)}


def test_table_and_picture(demo_report: ModuleType, tmp_path: Path) -> None:
    entries = [
        demo_report.Entry("softmax", grades(-1.0), (-9.0, -8.0), 1_600_000, 95.2),
        demo_report.Entry("log-linear", grades(13.0), (-6.0, -16.0), 400_000, 39.8),
    ]
    rows = {line[:32].strip(): line[32:].split() for line in demo_report.table(entries).splitlines()}
    assert rows[""] == ["softmax", "log-linear"]
    assert rows["parameters"] == ["1,600,000", "400,000"]
    assert rows["training, seconds"] == ["95", "40"]
    assert rows["test perplexity"] == rows["words not in train"] == ["7.4", "7.4"]
    assert rows["agreement of unseen forms"] == rows["4 to 7 words in between"] == ["0.0", "%", "100.0", "%"]
    assert rows["price: p(number) / p(place)"] == ["0.4", "4.4e+05"]
    assert rows["p(37 | le prix était de)"] == ["1.2e-04", "2.5e-03"]
    demo_report.draw(entries, tmp_path / "demo.png")
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["demo.png"]
