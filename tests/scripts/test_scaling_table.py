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


@pytest.mark.parametrize("words", [400, 900])
def test_small_cases_need_what_the_formulas_say(table: ModuleType, words: int) -> None:
    cases = table.small_cases(words)
    assert [layer.classes for layer, _ in cases] == [words, 324]
    for layer, found in cases:
        positions = table.bench.N
        assert layer.parameters == found.parameters
        assert layer.products(positions) == found.products
        assert layer.largest_tensor(positions) == found.largest_tensor
        assert layer.activation_bytes(positions) == pytest.approx(found.activation_bytes, rel=0.1)


def test_one_gpu_sends_nothing_and_many_send_twice_the_gradients(table: ModuleType) -> None:
    layer = table.softmax(1000, 10)
    assert layer.all_reduced_bytes(1) == 0
    assert layer.all_reduced_bytes(2) == 4 * layer.parameters
    assert layer.all_reduced_bytes(10**9) == pytest.approx(8 * layer.parameters)


def test_the_page_has_what_the_script_prints(
    table: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["scaling_table"])
    assert table.main() == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    page = (SCRIPTS.parent / "docs" / "results" / "many-machines.md").read_text(encoding="utf-8")
    assert len(rows) == 2 + 3 * 4
    assert "\n".join(rows) in page
