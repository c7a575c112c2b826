"""The benchmark of memory: what a process took, its limits, and commands that fail."""

import json
from pathlib import Path
from types import ModuleType

import pytest
from example_modules import BENCH, load


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (module,) = load(BENCH, "bench_memory")

    def write(place: Path) -> None:
        (place / "test.txt").write_text("le chat dort\n", encoding="utf-8")

    monkeypatch.setattr(module, "WRITERS", {"embedded": write, "large": write})
    commands = {name: f"python -c 'x = bytes(1) * {mb} * 10**6'" for name, mb in (("prior", 1), ("train", 600))}
    monkeypatch.setattr(module, "COMMANDS", tuple(module.Command(*each) for each in commands.items()))
    return module


@pytest.mark.slow
def test_the_largest_resident_set_of_each_process(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "LIMITS", {"embedded": 10**6})  # what this process holds counts, too
    monkeypatch.setattr(bench.sys, "argv", ["bench_memory.py", "--quick"])
    assert bench.main() == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])["embedded"]["trigram"]
    assert found["train"] >= 600


@pytest.mark.slow
def test_too_much_is_an_error(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "LIMITS", {"embedded": 200})
    monkeypatch.setattr(bench.sys, "argv", ["bench_memory.py", "--quick"])
    assert bench.main() == 1
    assert "too much: embedded, trigram, train: " in capsys.readouterr().err
