"""The benchmarks at toy size: every contestant runs, and the last line is the promised JSON object."""

import argparse
import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from example_modules import SCRIPTS, load
from shell import run_script

TRANSLATION = [
    "generate_over_softmax", "lexical_overhead", "slots_overhead", "condition_overhead", "step_operations",
    "condition_operations", "training_over_softmax", "training_with_conditions_over_softmax",
    "training_over_softmax_200k",
]  # fmt: skip
SETTINGS = "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184 GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
KEEPING = """\
import argparse, os, sys
from kept_memory import add_memory_option, run_again, told

parser = argparse.ArgumentParser()
add_memory_option(parser)
status = run_again(parser.parse_args().memory)
if status is None:
    print(told())
    print('{"speed": %d}' % (2 if "MALLOC_MMAP_MAX_" in os.environ else 1))
sys.exit(status)
"""


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """They silence fairseq in their process, which is that of the other tests."""
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def output_layer(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module, layers = load(SCRIPTS, "bench_output_layer", "timed_layers")
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


@pytest.fixture
def large_tree(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (module,) = load(SCRIPTS, "bench_large_tree")
    for name, value in {"WORDS": 300, "GROWTH": (200, 400), "CUTOFFS": ([20, 80],), "ONE_BY_ONE": 3}.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module.sizes, "N", 24)
    monkeypatch.setattr(module.sizes, "H", 8)
    return module


@pytest.mark.slow
def test_large_tree_benchmark(
    large_tree: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "growth.png"
    monkeypatch.setattr(sys, "argv", ["bench", "--picture", str(picture)])
    assert large_tree.main() == 0
    figures = last_line(capsys)
    assert {"large_training", "large_training_sparse", "large_scoring", "large_one_word"} <= set(figures)
    assert picture.stat().st_size > 1000


@pytest.mark.slow
def test_large_update_benchmark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("fairseq")
    (module,) = load(SCRIPTS, "bench_large_update")
    for name, value in {"TOKENS": 64, "SIZE": 8, "ARITY": 4, "QUICK": 2}.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--words", "200", "--optimizer", "adam"])
    assert module.main() == 0
    assert list(last_line(capsys)) == ["update_dense", "update_sparse", "update_dense_over_sparse"]


def test_all_rivals_of_the_large_tree_are_distributions() -> None:
    (module,) = load(SCRIPTS, "bench_large_tree")
    args = argparse.Namespace(device="cpu", dtype="float32")
    large = module.Large(300, args)
    hidden, targets = large.setting.hidden[:1].expand(300, -1).detach(), torch.arange(300)
    makers = [*large.trees(sparse=True), large.exact, lambda: large.adaptive([20, 80], 4.0)]
    for rival in (make() for make in makers):
        with torch.no_grad():
            total = rival.scored(hidden, targets).exp().sum()
        torch.testing.assert_close(total, torch.tensor(1.0), rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("name", ["bench_output_layer", "bench_large_tree", "bench_backgrounds", "bench_generate"])
def test_a_gpu_that_is_not_there(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (module,) = load(SCRIPTS, name)
    monkeypatch.setattr(sys, "argv", ["bench", "--device", "cuda"])
    with pytest.raises(SystemExit) as end:
        module.main()
    assert end.value.code == 2
    assert "error: --device cuda: expected a GPU that torch can use, found none" in capsys.readouterr().err


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
def test_training_benchmark(
    quick_commands: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fairseq")
    monkeypatch.setattr(sys, "executable", str(Path(quick_commands["BASH_ENV"]).with_name("python")))
    (module,) = load(SCRIPTS, "bench_training")
    small = {"WORDS": 300, "TOP_WORDS": 50, "COMBINATIONS": 20, "TOKENS": 9000, "QUICK": (2, 2)}
    small["worked"] = lambda process: time.perf_counter()  # the process that is started does not work itself
    for name, value in small.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--threads", "1"])
    assert module.main() == 0
    assert last_line(capsys)["training_over_fairseq_softmax"] > 0


@pytest.mark.slow
def test_backgrounds_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (module,) = load(SCRIPTS, "bench_backgrounds")
    small = {
        "WORDS": 80, "TOKENS": 2000, "TOP_WORDS": 20, "COMBINATIONS": 5, "BATCH_TOKENS": 100, "STATES": 60,
        "GRAMMAR_STATES": 20, "HYPOTHESES": 7, "QUICK": (1, 2), "TREEBANK": tmp_path / "none",
    }  # fmt: skip
    for name, value in small.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(sys, "argv", ["bench", "--quick"])
    assert module.main() == 0
    found = last_line(capsys)
    assert found.keys() == {
        "ngram_over_unigram_training", "cache_over_ngram_training",
        "automaton_step_share", "grammar_product_step_share",
    }  # fmt: skip
    assert all(value > 0 for value in found.values())


@pytest.mark.slow
def test_prior_benchmark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (module,) = load(SCRIPTS, "bench_prior")
    monkeypatch.setattr(module, "QUICK", (20_000, 3_000))
    monkeypatch.setattr(module, "AT_ONCE", 6_000)
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--only", "unigram"])
    module.main()
    found = last_line(capsys)
    assert (found["words"], found["types"]) == (20_000, 3_000)
    assert found["priors"]["unigram"]["seconds"] > 0 and found["priors"]["unigram"]["gib"] > 0.01


@pytest.mark.slow
def test_variable_computation_benchmark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (module,) = load(SCRIPTS, "bench_variable_computation")
    for name, value in {"QUICK_WIDTH": 16, "TOKENS": 5, "SENTENCES": 2, "QUICK": 0.05}.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(sys, "argv", ["bench", "--quick"])
    assert module.main() == 0
    out = capsys.readouterr().out
    found = json.loads(out.splitlines()[-1])
    names = ["search_one", "search_five", "score_one", "score_32", "score_32_varying", "training"]
    assert list(found) == names and all(value > 0 for value in found.values())
    assert "16 wide" in out and "vcrnn, m = 0.4" in out


@pytest.mark.slow
def test_translation_benchmark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("fairseq")
    (module,) = load(SCRIPTS, "bench_generate")
    small = {
        "GENERATION_WORDS": 120, "SMALL": 100, "LARGE": 150, "SOURCE_WORDS": 80, "COMBINATIONS": 20, "TOP_WORDS": 30,
        "SENTENCES": 4, "STEPS": 3, "TRAINING_TOKENS": 60, "QUICK": 0.1,
    }  # fmt: skip
    for name, value in small.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--threads", "1"])
    assert module.main() == 0
    out = capsys.readouterr().out
    found = json.loads(out.splitlines()[-1])
    assert list(found) == TRANSLATION and all(value > -1 for value in found.values())
    assert "with translations and evidence" in out and "\nmemory " in out
    assert found["condition_operations"] > found["step_operations"] > 100


@pytest.fixture
def keeping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A benchmark that measures whether memory is kept."""
    for setting in SETTINGS.split():
        monkeypatch.delenv(setting.partition("=")[0], raising=False)
    monkeypatch.setenv("PYTHONPATH", str(SCRIPTS), prepend=os.pathsep)
    (tmp_path / "bench.py").write_text(KEEPING, encoding="utf-8")
    return tmp_path / "bench.py"


def test_memory_is_kept_in_a_process_of_its_own(keeping: Path) -> None:
    """One command measures both; the second begins with the settings, and the last line has both runs' figures."""

    def run(*options: str) -> list[str]:
        return run_script(sys.executable, keeping, *options).out.splitlines()

    plain, kept = run(), run("--memory", "kept")
    assert plain == run("--memory", "default")
    assert plain[0].startswith("memory as glibc's malloc does by default") and plain[1:] == ['{"speed": 1}']
    assert kept == [f"memory kept: {SETTINGS}", '{"speed": 2}']
    both = run("--memory", "both")
    assert both[:-1] == [*plain, "", *kept, ""]
    assert json.loads(both[-1]) == {"speed": 1, "speed_kept": 2}
