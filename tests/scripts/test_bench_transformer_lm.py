"""The benchmark of a Transformer language model at toy size: both outputs train, and steps are timed in turn."""

import gzip
import json
import random
import sys
from types import ModuleType
from typing import Any

import pytest
from example_modules import SCRIPTS, load

from fairseq_llrnn.prior import Recipe
from fairseq_llrnn.prior.building import build_prior

SMALL = ["--width", "8", "--layers", "1", "--heads", "2", "--context", "4", "--batch", "32", "--warm-up", "5"]


@pytest.fixture
def script() -> ModuleType:
    (module,) = load(SCRIPTS, "bench_transformer_lm")
    return module


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A prior, and three texts in which each of 20 words is followed by one of two."""
    folder, words = tmp_path_factory.mktemp("transformer"), [f"w{i}" for i in range(20)]
    random.seed(1)
    paths = [folder / name for name in ("train.txt.gz", "valid.txt", "test.txt")]
    for path, sentences in zip(paths, (100, 10, 10), strict=True):
        lines = []
        for _ in range(sentences):
            at = random.randrange(20)
            numbers = [at := (2 * at + random.randrange(2)) % 20 for _ in range(8)]
            lines.append(" ".join(words[number] for number in numbers) + "\n")
        text = "".join(lines).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *words]
    build_prior(symbols, Recipe(suffixes=2, top_words=10)).save(folder / "prior")
    return [str(path) for path in (folder / "prior", *paths)]


def figures(script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str) -> Any:
    monkeypatch.setattr(sys, "argv", ["bench", *args, *SMALL])
    assert script.main() == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("output", ["softmax", "log-linear"])
def test_training_lowers_perplexity(
    script: ModuleType,
    texts: list[str],
    output: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, again, longer = (
        figures(script, monkeypatch, capsys, *texts, "--output", output, "--passes", passes, "--rate", "0.03")
        for passes in ("1", "1", "8")
    )
    assert (first["updates"], longer["updates"]) == (28, 225), "900 tokens, 32 in a batch"
    assert [first[name] for name in ("valid", "test")] == [again[name] for name in ("valid", "test")]
    assert 2.0 < longer["valid"] < first["valid"] < 30.0
    assert len(longer["curve"]) >= 3 and longer["output"] == output


def test_steps_are_timed_in_turn(
    script: ModuleType, texts: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *texts, "--time", "2", *SMALL])
    assert script.main() == 0
    *table, last = capsys.readouterr().out.splitlines()
    found = json.loads(last)
    assert found["training_step_over_softmax"] > 0 and found["words"] == 24
    contestants = {"log-linear", "softmax", "softmax, chunked"}
    assert set(found["tokens_per_second"]) == set(found["step_gb"]) == contestants
    assert [line.rsplit(None, 4)[0] for line in table[1:]] == ["log-linear", "softmax", "softmax, chunked"]
