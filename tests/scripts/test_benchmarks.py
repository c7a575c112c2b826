"""The benchmarks at toy size: every contestant runs, and the last line is the promised JSON object."""

import argparse
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from example_modules import BENCH, load


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """They silence fairseq in their process, which is that of the other tests."""
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def output_layer(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module, layers = load(BENCH, "bench_output_layer", "timed_layers")
    small = {"N": 24, "H": 8, "M": 20, "USUAL": 500, "MORPHOLOGICAL": 10, "FEATURES": 12}
    small |= {"HOST_CUTOFFS": [100, 50_000], "CUTOFFS": ([20, 80], [40])}
    for name, value in small.items():
        monkeypatch.setattr(layers, name, value)
    monkeypatch.setattr(module, "HUGE", 5000)
    return module


def last_line(capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert isinstance(result, dict)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_output_layer_benchmark(
    output_layer: ModuleType, dtype: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--threads", "1", "--dtype", dtype])
    assert output_layer.main() == 0
    out = capsys.readouterr().out
    figures = json.loads(out.splitlines()[-1])
    table = out.partition("MB of a step\n")[2].partition("\n\n")[0].splitlines()
    memory = {line.split("  ")[1].strip(): float(line.split()[-1]) for line in table}
    short = 2 if dtype == "bfloat16" else 4  # bytes of a number; a softmax has at least its logits' gradients, too
    assert memory["softmax"] * 1e6 >= 2 * short * 24 * 500 and len(memory) >= 4
    ratios = ["softmax_over_loglinear", "adaptive_over_loglinear", "exact_over_tree", "adaptive_over_tree"]
    assert list(figures) == [*ratios, "growth_time", "growth_memory"]
    assert all(figure is None or figure >= 0 for figure in figures.values())


def test_all_rivals_of_the_large_tree_are_distributions() -> None:
    (module,) = load(BENCH, "bench_large_tree")
    args = argparse.Namespace(device="cpu", dtype="float32")
    large = module.Large(300, args)
    hidden, targets = large.setting.hidden[:1].expand(300, -1).detach(), torch.arange(300)
    makers = [*large.trees(sparse=True), large.exact, lambda: large.adaptive([20, 80], 4.0)]
    for rival in (make() for make in makers):
        with torch.no_grad():
            total = rival.scored(hidden, targets).exp().sum()
        torch.testing.assert_close(total, torch.tensor(1.0), rtol=1e-4, atol=1e-4)


def test_all_contestants_agree_about_a_vocabulary_of_equal_words(output_layer: ModuleType) -> None:
    """With all parameters at zero every softmax is uniform, and ours is the background: the losses are known."""
    setting = output_layer.Setting(500, torch.device("cpu"), torch.float32)
    for contestant, expected in (
        (setting.softmax(), 24 * torch.tensor(500.0).log()),
        (setting.log_linear(), -torch.from_numpy(output_layer.layers.zipf(500))[setting.targets].log().sum()),
    ):
        for parameter in contestant.module.parameters():
            torch.nn.init.zeros_(parameter)
        torch.testing.assert_close(contestant.loss().float(), expected.float())


@pytest.mark.slow
def test_prior_benchmark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (module,) = load(BENCH, "bench_prior")
    monkeypatch.setattr(module, "QUICK", (20_000, 3_000))
    monkeypatch.setattr(module, "AT_ONCE", 6_000)
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--only", "unigram"])
    module.main()
    found = last_line(capsys)
    assert (found["words"], found["types"]) == (20_000, 3_000)
    assert found["priors"]["unigram"]["seconds"] > 0 and found["priors"]["unigram"]["gib"] > 0.01


@pytest.mark.parametrize("short", [[], ["--short"]])
def test_the_loss_eager_and_compiled(
    short: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (module,) = load(BENCH, "bench_loss")
    monkeypatch.setattr(torch, "compile", lambda loss, fullgraph: loss)
    sizes = ["--positions", "20", "--classes", "30", "--width", "4", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", ["bench", *sizes, *short])
    assert module.main() == 0
    assert list(last_line(capsys)) == ["eager_mb", "eager_s", "compiled_mb", "compiled_s"]


@pytest.mark.slow
def test_constraints_of_all_packages(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    module, contestants = load(BENCH, "bench_constraints", "constraint_contestants")
    monkeypatch.setattr(module, "SEARCHES", {1: 1, 8: 1})
    monkeypatch.setattr(contestants, "LENGTH", 12)
    monkeypatch.setattr(sys, "argv", ["bench", "--rounds", "2", "--vocabulary", "600"])
    module.main()
    found = last_line(capsys)
    for constraint in ("grammar", "regex", "schema", "nested"):
        assert all(found[f"{constraint}_{number}_ours_log p"] > 0 for number in (1, 8))


@pytest.mark.slow
def test_schemas_of_all_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (module,) = load(BENCH, "bench_schemas")
    schemas = [{"type": "integer"}, {"type": "array", "items": {"enum": ["a", "b"]}}, {"not": {"type": "integer"}}]
    tests = [{"data": 12, "valid": True}, {"data": ["a"], "valid": True}, {"data": "x", "valid": False}]
    for number, schema in enumerate(schemas):
        of_schema = [test | {"valid": test["valid"] and test is tests[number]} for test in tests]
        (tmp_path / f"{number}.json").write_text(json.dumps({"schema": schema, "tests": of_schema}), encoding="utf-8")
    sizes = ["--schemas", str(tmp_path), "--number", "3", "--vocabulary", "600", "--packages", "ours", "llguidance"]
    monkeypatch.setattr(sys, "argv", ["bench", *sizes])
    module.main()
    found = last_line(capsys)
    assert found["ours_compile_percent"] == found["ours_right_percent"] == 66.7
    assert (found["ours_valid"], found["ours_invalid"], found["ours_wrong_rejects"], found["ours_wrong_accepts"]) == (
        2,
        4,
        0,
        0,
    )
