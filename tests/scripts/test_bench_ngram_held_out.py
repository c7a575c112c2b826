"""The benchmark of held-out n-grams: its perplexities are those of the definition."""

import json
import math
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ngram_oracles import log_prob, table_of

from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.ngrams.folds import folds_of
from fairseq_llrnn.ngrams.kneser_ney import estimate
from fairseq_llrnn.ngrams.ngrams import Sentences, read_sentences


@pytest.mark.slow
def test_perplexities(tmp_path: Path, root: Path) -> None:
    rng = random.Random(1)
    for name in ("train", "valid"):
        lines = (" ".join(rng.choices("abcdz", k=rng.randrange(6))) for _ in range(60))
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "dict.txt").write_text("a 4\nb 3\nc 2\nd 1\n")
    options = ["--dict", "dict.txt", "--train", "train", "--valid", "valid", "--orders", "1", "3", "--folds", "3"]
    script = root / "scripts" / "bench_ngram_held_out.py"
    run = subprocess.run(
        [sys.executable, str(script), *options], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = json.loads(run.stdout.splitlines()[-1])
    words = load_dictionary(tmp_path / "dict.txt")
    train, valid = (read_sentences([tmp_path / name], words) for name in ("train", "valid"))

    def log_sum(model_of: Sentences, text: Sentences, order: int, unigrams: np.ndarray | None = None) -> float:
        table = table_of(estimate(model_of, words, order, unigrams=unigrams))
        total, ends = 0.0, text.lengths.cumsum()
        for end, length in zip(ends, text.lengths, strict=True):
            spelled = ("<s>", *(words.symbols[i] for i in text.tokens[end - length : end]), "</s>")
            for i in range(1, len(spelled)):
                total += log_prob(table, spelled[max(0, i + 1 - order) : i], spelled[i])
        return total

    def perplexity(total: float, text: Sentences) -> float:
        return math.exp(-total / (len(text.tokens) + len(text)))

    for order in (1, 3):
        row = found[str(order)]
        assert row["seen"] == pytest.approx(perplexity(log_sum(train, train, order), train), abs=0.01)
        assert row["new"] == pytest.approx(perplexity(log_sum(train, valid, order), valid), abs=0.01)
    unigrams = estimate(train, words, 3).log_probs[: len(words)]
    fold_of = folds_of(train, 3)
    held_out = sum(log_sum(train.chosen(fold_of != k), train.chosen(fold_of == k), 3, unigrams) for k in range(3))
    assert found["3"]["held_out"] == pytest.approx(perplexity(held_out, train), abs=0.01)
    assert found["3"]["seen"] < found["3"]["held_out"]
