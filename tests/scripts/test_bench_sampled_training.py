"""The benchmark of sampled training at toy size: a sample of all classes trains as all do; the last line is JSON."""

import json
import sys
from types import ModuleType

import pytest
import torch
from example_modules import SCRIPTS, load


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (module,) = load(SCRIPTS, "bench_sampled_training")
    small = {"V": 200, "F": 20, "A": 4, "C": 5, "H": 8, "N": 32, "HELD_OUT": 50, "BATCHES": 4, "QUICK_SECONDS": 0.1}
    for name, value in small.items():
        monkeypatch.setattr(module, name, value)
    return module


def test_it_runs(bench: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--samples", "20"])
    assert bench.main() == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(figures) == ["speed", "loss", "same_steps"]
    assert figures["speed"]["20"] > 0 and list(figures["loss"]) == ["exact", "20"]


def test_a_sample_of_all_classes_trains_as_all_classes_do(bench: ModuleType) -> None:
    language = bench.Language()
    contexts, targets = language.draw(4 * 32)
    batches = bench.Batches(contexts.view(4, 32), targets.view(4, 32))
    exact, sampled = bench.Contestant(language, 0), bench.Contestant(language, 200)
    for one in (exact, sampled):
        one.train(batches, 60.0, 5)
    torch.testing.assert_close(sampled.output.weight, exact.output.weight, rtol=1e-3, atol=1e-4)
    held_out = language.draw(50)
    assert sampled.exact_loss(*held_out) == pytest.approx(exact.exact_loss(*held_out), abs=1e-3)


def test_the_language_is_normalised_and_what_is_drawn_follows_it(bench: ModuleType) -> None:
    language = bench.Language()
    torch.testing.assert_close(language.log_probs.exp().sum(1), torch.ones(5))
    contexts, targets = language.draw(20_000)
    counts = torch.bincount(targets[contexts == 0], minlength=200)
    assert abs(counts / counts.sum() - language.log_probs[0].exp()).max() < 0.03
