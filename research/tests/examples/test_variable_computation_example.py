"""examples/variable_computation at toy size: texts, two systems and the table."""

import gzip
import math
import random
from pathlib import Path

import pytest
from example_modules import OF_RESEARCH, load, run_example
from shell import Result

SCRIPT = OF_RESEARCH / "variable_computation/variable_computation.py"
(example,) = load(OF_RESEARCH / "variable_computation", "variable_computation")


def write_novels(place: Path) -> None:
    rng = random.Random(1)
    for split, lines in {"train": 40, "valid": 40, "test": 40}.items():
        text = [" ".join(rng.choices("the old house by sea was quiet".split(), k=8)) for _ in range(lines)]
        with gzip.open(place / f"{split}.txt.gz", "wt", encoding="utf-8") as stream:
            stream.write("\n".join([*text, "short", "long " * 60]) + "\n")


@pytest.mark.slow
def test_systems_are_trained_and_compared(tmp_path: Path) -> None:
    def run(*arguments: object, code: int = 0) -> Result:
        return run_example(SCRIPT, *arguments, code=code)

    write_novels(tmp_path)
    out = tmp_path / "out"
    said = run("prepare", "--novels", tmp_path, "--out", out, "--every", 2).out
    assert said.startswith("train: 20 sentences")
    assert "▁" in (out / "text" / "train.txt").read_text(encoding="utf-8")
    run("train", "--out", out, "vcgru", "gru-57", "--seeds", 1, "--epochs", 1)
    rows = [line.split("|") for line in run("table", "--out", out, "--epochs", 1).out.splitlines()[2:]]
    assert [row[1].strip() for row in rows] == ["vcgru", "gru-57"]
    (variable, constant) = (float(row[4]) for row in rows)
    assert 0 < float(rows[0][3]) < 1 and 0 < variable < 128 * math.sqrt(3) + 1
    assert float(rows[1][3]) == 1 and constant == round(57 * math.sqrt(3))
    assert all(0 < float(row[5].split()[0]) < 8 for row in rows)
    wrong = run("train", "--out", out, "vclstm", code=2)
    assert "SYSTEM: expected one of vcgru, " in wrong.err and "Traceback" not in wrong.err
