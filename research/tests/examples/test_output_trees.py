"""examples/output_trees at toy size: texts, every output layer, times and the table."""

import gzip
import json
import random
from pathlib import Path

import pytest
import torch
from example_modules import OF_RESEARCH, load, run_example

SCRIPT = OF_RESEARCH / "output_trees/output_trees.py"
FOLDER = OF_RESEARCH / "output_trees"
models, texts = load(FOLDER, "tree_models", "tree_texts")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `prepare` makes of a few sentences of 150 words."""
    place = tmp_path_factory.mktemp("novels")
    rng = random.Random(1)
    words = [f"w{i}" for i in range(150)]
    for split, lines in {"train": 160, "valid": 40, "test": 80}.items():
        text = [[words[min(int(rng.expovariate(0.05)), 149)] for _ in range(rng.randint(3, 12))] for _ in range(lines)]
        with gzip.open(place / f"{split}.txt.gz", "wt", encoding="utf-8") as stream:
            stream.writelines(" ".join(line) + "\n" for line in text)
    run_example(SCRIPT, "prepare", "--novels", place, "--out", place / "out", "--every", 1)
    return place / "out"


@pytest.mark.slow
def test_rows_are_trained_timed_and_compared(out: Path) -> None:
    def run(*arguments: object) -> str:
        return run_example(SCRIPT, *arguments).out

    rows = ("flat", "adaptive", "clusters", "huffman", "clustering", "random", "learned")
    said = run("train", "--out", out, *rows, "--part", 0.5)
    assert said.count("test") == len(rows)
    assert "lbl-learned-1: finished" in run("train", "--out", out, "learned", "--part", 0.5)
    for asked, found in (((), "--part 1, found those of --part 0.5"), (("--epochs", 2), "--epochs 2, found those of")):
        other = run_example(SCRIPT, "train", "--out", out, "learned", *asked, code=2).err
        assert f"lbl-learned-1.json: expected results of {found}" in other and "use another --out" in other
    run("train", "--out", out, "random", "--network", "lstm", "--rate", 0.02, "--epochs", 2)
    facts = json.loads((out / "models" / "lstm-random-0.02-1.json").read_text(encoding="utf-8"))
    assert facts["rate"] == 0.02 and facts["curve"][-1]["epoch"] == 2 and facts["curve"][-1]["valid"] < 150
    run("time", "--out", out, *rows, "--batches", 1)
    lines = [line for line in run("table", "--out", out).splitlines() if line.startswith("| ")]
    assert [line.split("|")[1].strip() for line in lines] == ["output", *rows]
    assert all(1 < float(line.split("|")[2]) < 10_000 and float(line.split("|")[4]) > 0 for line in lines[1:])
    assert (out / "curves.png").stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.parametrize("row", ["flat", "huffman", "learned", "learned-clusters"])
def test_every_model_reads_the_same_batches_and_has_probabilities(out: Path, row: str) -> None:
    prior = models.Prior.load(out / "prior")
    text = texts.Text.read(out / "train.txt", prior)
    batches = text.batches(60, seed=3)
    assert sorted(i for batch in batches for i in batch) == list(range(160)) and batches == text.batches(60, seed=3)
    assert max(sum(len(text.sentences[i]) for i in batch) for batch in batches) <= 60
    words = len(prior.symbols)
    output = models.OUTPUTS[row](models.World(prior, words, lambda: torch.zeros(words, models.WIDTH), 1)).eval()
    hidden = torch.randn(1, models.WIDTH).expand(words, -1)
    with torch.no_grad():
        assert output.log_probs(hidden, torch.arange(words)).exp().sum().item() == pytest.approx(1.0, abs=1e-4)
