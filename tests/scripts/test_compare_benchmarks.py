"""Ratios of benchmarks beside kept ones: a worse one is an error, by the clock and the turns that all measure with."""

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from example_modules import BENCH, ROOT, load


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """With two benchmarks of two figures each."""
    (module,) = load(BENCH, "compare_benchmarks")
    (tmp_path / "scripts" / "bench").mkdir(parents=True)
    for name, figures in (("bench_one", '{"speed": 4.0, "overhead": 0.3}'), ("bench_two", '{"speed": 1.0}')):
        file = tmp_path / "scripts" / "bench" / f"{name}.py"
        file.write_text(f"import sys\nprint(sys.argv[1:])\nprint('{figures}')\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def kept(tmp_path: Path, **ratios: tuple[float, str, float]) -> Path:
    """A file that keeps these ratios of bench_one, and the speed of bench_two."""
    found = {r: {"kept": k, "worse": w, "tolerance": t} for r, (k, w, t) in ratios.items()}
    two = {"speed": {"kept": 1.0, "worse": "less", "tolerance": 0.1}}
    every = {"bench_one": {"arguments": ["--quick"], "ratios": found}, "bench_two": {"arguments": [], "ratios": two}}
    (tmp_path / "kept.json").write_text(json.dumps(every))
    return tmp_path / "kept.json"


def run(compare: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["compare", *map(str, arguments)])
    status: int = compare.main()
    return status


@pytest.mark.parametrize(
    ("speed", "overhead", "status", "said"),
    [
        ((4.2, "less", 0.5), (0.28, "more", 0.05), 0, []),
        ((5.0, "less", 0.5), (0.28, "more", 0.05), 1, ["WORSE by 1, where 0.5 is allowed"]),
        ((4.2, "less", 0.5), (0.1, "more", 0.05), 1, ["WORSE by 0.2, where 0.05 is allowed"]),
        ((2.0, "less", 0.5), (0.9, "more", 0.05), 0, ["better; --keep it", "better; --keep it"]),
    ],
)
def test_a_ratio_is_worse_on_one_side_alone(
    compare: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    speed: tuple[float, str, float], overhead: tuple[float, str, float], status: int, said: list[str],
) -> None:  # fmt: skip
    assert run(compare, monkeypatch, "--file", kept(tmp_path, speed=speed, overhead=overhead)) == status
    out, err = capsys.readouterr()
    assert [line.split("   ")[-1] for line in out.splitlines() if "WORSE" in line or "better" in line] == said
    assert err.startswith("['--quick']\n") and "bench_two" in out


def test_a_figure_that_is_gone_is_worse(
    compare: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = kept(tmp_path, memory=(1.0, "more", 0.1))
    assert run(compare, monkeypatch, "bench_one", "--file", file) == 1
    assert "WORSE: no longer measured" in capsys.readouterr().out
    assert run(compare, monkeypatch, "bench_one", "--file", file, "--keep") == 1


def test_the_figure_of_a_contestant_that_failed_is_worse_and_not_kept(
    compare: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = kept(tmp_path, speed=(4.0, "less", 0.1))
    (tmp_path / "scripts" / "bench" / "bench_one.py").write_text("print('{\"speed\": NaN}')\n")
    assert run(compare, monkeypatch, "bench_one", "--file", file) == 1
    assert "WORSE: no longer measured" in capsys.readouterr().out
    assert run(compare, monkeypatch, "bench_one", "--file", file, "--keep") == 1
    assert json.loads(file.read_text())["bench_one"]["ratios"]["speed"]["kept"] == 4.0


def test_the_kept_file_names_benchmarks_that_there_are() -> None:
    every = json.loads((ROOT / "docs" / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    for name, one in every.items():
        source = (BENCH / f"{name}.py").read_text(encoding="utf-8")
        assert one.keys() == {"arguments", "ratios"} and "--quick" in one["arguments"]
        for ratio, kept_one in one["ratios"].items():
            assert kept_one["worse"] in ("more", "less") and kept_one["tolerance"] > 0
            assert ratio in source or ratio.endswith("_overhead") or name == "bench_variable_computation"


def test_a_ratio_is_the_median_of_those_of_the_rounds() -> None:
    """Where a machine becomes slower from round to round, medians of each say something else."""
    (measuring,) = load(BENCH, "measuring")
    calls: list[str] = []
    times = {"ours": iter([9.0, 1.0, 3.0, 5.0]), "theirs": iter([9.0, 2.0, 6.0, 100.0])}

    def contestant(name: str) -> float:
        calls.append(name)
        return next(times[name])

    def turns(least: int, most: int, budget: float) -> "tuple[object, list[str]]":
        calls.clear()
        found = measuring.in_turns({n: lambda n=n: contestant(n) for n in times}, least, most, budget)
        return found, list(calls)

    rounds, order = turns(2, 3, 1000.0)
    assert order == ["ours", "theirs"] * 4, "the first round warms up"
    assert rounds.ratio("theirs", "ours") == 2.0 and rounds.median("theirs") == 6.0  # type: ignore[attr-defined]
    times |= {"ours": iter([1.0] * 9), "theirs": iter([1.0] * 9)}
    assert turns(2, 5, 1.0)[1] == ["ours", "theirs"] * 3


def test_the_clock_of_a_cpu_is_that_of_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    (measuring,) = load(BENCH, "measuring")
    monkeypatch.setattr(measuring.time, "process_time", iter([1.0, 3.5]).__next__)
    assert measuring.timed(lambda: None) == 2.5
