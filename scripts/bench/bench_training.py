#!/usr/bin/env python3
"""Measure tokens per second of whole training: fairseq's softmax LSTM against ours.

    python scripts/bench/bench_training.py [--quick] [--data DIR] [--device cuda] [--threads 1]

Both are real `fairseq-train` commands on the same binarised data, with the paper's sizes (256-dimensional input, two
LSTM layers of 256) and batches of 2048 tokens:

    softmax      --arch lstm_lm --criterion cross_entropy
    log-linear   --user-dir fairseq_llrnn --task llrnn_language_modeling --arch llrnn_lm --criterion log_linear

Seconds are processor time (on a GPU those of fairseq's log). The first updates of each run are not counted. The runs
alternate. A run that the machine makes slow ends early, with the updates that it has done.

Without --data the text is synthetic: words sampled from a Zipf distribution over 42,500 types, and a lexicon with 400
feature combinations. --data is a folder of fairseq-preprocess with a prior of `llrnn prior` in DIR/prior.

The last line is one JSON object: training_over_fairseq_softmax (tokens per second, log-linear over softmax).
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed

from measuring import Rounds, parse, worked
from zipf_law import zipf

from fairseq_llrnn.cli.main import main as llrnn

ROOT = Path(__file__).resolve().parents[2]
WORDS, TOP_WORDS, COMBINATIONS, TOKENS = 42_500, 2500, 400, 400_000
QUICK, FULL = (8, 40), (20, 120)  # measured updates of softmax and log-linear
SHARED = shlex.split(
    "--decoder-embed-dim 256 --decoder-hidden-size 256 --decoder-layers 2 --dropout 0 "
    "--sample-break-mode eos --tokens-per-sample 512 --max-tokens 2048 --seed 1 --num-workers 0 "
    "--optimizer adam --lr 0.001 --clip-norm 1.0 "
    "--disable-validation --no-save --log-format json --log-interval 1"
)
SOFTMAX = shlex.split(
    "--task language_modeling --arch lstm_lm --criterion cross_entropy --decoder-out-embed-dim 256"
)
LOG_LINEAR = shlex.split("--task llrnn_language_modeling --arch llrnn_lm --criterion log_linear --user-dir")
LOG_LINEAR.append(str(ROOT / "fairseq_llrnn"))


def write_synthetic_data(folder: Path) -> None:
    """Write dict.txt, train.bin and .idx, and the prior, like fairseq-preprocess and `llrnn prior`."""
    from fairseq.data import indexed_dataset

    rng = np.random.default_rng(1)
    words = [f"w{i}" for i in range(WORDS)]
    counts = np.ceil(zipf(WORDS) * TOKENS).astype(int)
    dictionary = folder / "dict.txt"
    dictionary.write_text(
        "".join(f"{word} {count}\n" for word, count in zip(words, counts, strict=True)), encoding="utf-8"
    )

    builder = indexed_dataset.make_builder(str(folder / "train.bin"), impl="mmap", vocab_size=WORDS + 4)
    tokens = 4 + rng.choice(WORDS, TOKENS, p=zipf(WORDS))  # after <s> <pad> </s> <unk>
    ends = np.cumsum(rng.integers(8, 43, TOKENS // 25))
    for sentence in np.split(tokens, ends[ends < TOKENS]):
        builder.add_item(torch.from_numpy(np.append(sentence, 2)))
    builder.finalize(str(folder / "train.idx"))

    tags = [
        f"N{i % 10}\tCase={i % 7}|Gender={i % 3}|Number={i % 11}|Person={i % 13}" for i in range(COMBINATIONS)
    ]
    classes = rng.choice(COMBINATIONS, WORDS, p=zipf(COMBINATIONS))
    rows = "".join(f"{word}\t{word}\t{tags[i]}\n" for word, i in zip(words, classes, strict=True))
    (folder / "lexicon.tsv").write_text(rows, encoding="utf-8")
    made = ["prior", "--lexicon", str(folder / "lexicon.tsv"), "--dict", str(dictionary)]
    made += ["--top-words", str(TOP_WORDS), "--background", "unigram", "--out", str(folder / "prior")]
    if llrnn(made) != 0:
        raise SystemExit("`llrnn prior` failed; its error is above")


def words_per_second(
    options: list[str], data: Path, warm_up: int, updates: int, args: argparse.Namespace
) -> float:
    """Run one training and read its log: all tokens after the warm-up over their time (on a CPU, processor time)."""
    command = [sys.executable, "-m", "fairseq_cli.train", str(data), *options, *SHARED]
    command += ["--max-update", str(warm_up + updates)] + (["--cpu"] if args.device == "cpu" else [])
    environment = os.environ | {"OMP_NUM_THREADS": str(args.threads)}
    log: list[str] = []
    tokens = seconds = begin = 0.0
    seen, first_update = 0, time.perf_counter()
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as training:
        assert training.stdout is not None
        for line in training.stdout:
            log.append(line)
            if "| train_inner | {" not in line:
                continue
            logged = json.loads(line.split("| train_inner | ", 1)[1])
            seen += 1
            if seen == 1:
                first_update = time.perf_counter()
            if args.device == "cpu":
                now = worked(training.pid)
            else:
                now = seconds + begin + float(logged["wpb"]) / float(logged["wps"])
            if seen <= warm_up:
                begin = now
            else:
                tokens, seconds = tokens + float(logged["wpb"]), now - begin
            if time.perf_counter() - first_update > args.budget and seen >= warm_up + 3:
                training.terminate()
                break
    if not tokens:
        raise SystemExit(f"no update was logged by: {' '.join(command)}\n{''.join(log[-15:])}")
    return tokens / seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short run of each; under 50 seconds")
    parser.add_argument("--data", type=Path, help="data-bin folder with a prior inside (default: synthetic text)")
    args = parse(parser)
    args.budget = 10.0 if args.quick else 120.0  # seconds of one run

    with tempfile.TemporaryDirectory() as temporary:
        data = args.data or Path(temporary)
        if args.data is None:
            write_synthetic_data(data)
        results: dict[str, list[float]] = {"softmax": [], "log-linear": []}
        softmax_updates, our_updates = QUICK if args.quick else FULL
        for _ in range(1 if args.quick else 3):
            results["softmax"].append(words_per_second(SOFTMAX, data, 2, softmax_updates, args))
            results["log-linear"].append(words_per_second(LOG_LINEAR, data, 5, our_updates, args))
    speeds, rounds = {name: statistics.median(speed) for name, speed in results.items()}, Rounds(results)
    print(f"\n{'whole training on ' + args.device:<24}{'tokens/s':>10}{'runs':>24}")
    for name, speed in speeds.items():
        print(f"  {name:<22}{speed:>10,.0f}{', '.join(f'{run:,.0f}' for run in results[name]):>24}")
    print(json.dumps({"training_over_fairseq_softmax": round(rounds.ratio("log-linear", "softmax"), 2)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
