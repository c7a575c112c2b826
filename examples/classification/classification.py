#!/usr/bin/env python3
"""Train one classifier, measure it, and append a line of JSON to a file; or print the lines as a table.

    python classification.py run --data ../shared/data --set glosses --model huffman --arity 20 --out rows.jsonl
    python classification.py table rows.jsonl

A line that the file already has is skipped. Times are seconds of processor time, one thread.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from bag_tree import Classifier, Options
from label_data import READERS, Texts, read
from others import FastText, FastTextOptions, NapkinXC

from fairseq_llrnn.errors import OptionError, check_least, one_line_errors
from llrnn_research.output_trees.tree_layer import TreeLayer

OPTIONS = ("set", "model", "arity", "size", "rate", "epochs", "batch", "seed")  # which tell a line from others
OURS = ("flat", "huffman", "random", "learned", "refit")
MODELS = (*OURS, "fasttext-hs", "fasttext-softmax", "napkinxc")
COLUMNS = ("set", "model", "arity", "size", "rate", "epochs", "seed", "valid_p_at_1", "test_p_at_1", "test_p_at_5",
           "test_r_at_5", "train_seconds", "test_seconds")  # fmt: skip


@one_line_errors("classification.py")
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--data", type=Path, default=Path("../shared/data"))
    run.add_argument("--set", choices=READERS, default="glosses")
    run.add_argument("--model", choices=MODELS, required=True)
    run.add_argument("--arity", type=int, default=20)
    run.add_argument("--size", type=int, default=100, help="width of the vectors")
    run.add_argument("--rate", type=float, default=0.2)
    run.add_argument("--epochs", type=int, default=10)
    run.add_argument("--batch", type=int, default=256)
    run.add_argument("--seed", type=int, default=1)
    run.add_argument("--out", type=Path, required=True)
    table = commands.add_parser("table")
    table.add_argument("rows", type=Path)
    args = parser.parse_args()
    if args.command == "table":
        print(as_table(lines_of(args.rows)))
    elif args.out.exists() and any(options_of(args).items() <= line.items() for line in lines_of(args.out)):
        print(f"{args.model}: {args.out} has it")
    else:
        found = row(args)
        with args.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(args, name) for name in OPTIONS}


def row(args: argparse.Namespace) -> dict[str, Any]:
    """Train and measure one model."""
    check_least("--epochs", args.epochs, 1, "passes over the texts")
    torch.set_num_threads(1)
    texts = read(args.set, args.data)
    model: Any
    if args.model in OURS:
        options = Options(args.model, args.arity, args.size, args.rate, args.epochs, args.batch, args.seed)
        make, seconds = refitted if args.model == "refit" else Classifier, 0.0
        model = make(texts["train"], options)
        for epoch, seconds, loss in model.train(texts["train"]):
            print(f"epoch {epoch}: {loss:.4f} nats, {seconds:.1f} seconds", flush=True)
    else:
        if args.model == "napkinxc":
            model = NapkinXC(texts["train"], args.arity)
        else:
            loss = args.model.partition("-")[2]
            model = FastText(texts["train"], FastTextOptions(loss, args.size, args.rate, args.epochs, args.seed))
        seconds = model.seconds
    valid, _ = model.measure(texts["valid"])
    test, test_seconds = model.measure(texts["test"])
    facts = options_of(args)
    facts |= {"valid_p_at_1": valid.p_at_1, **{f"test_{name}": value for name, value in test.facts().items()}}
    facts |= {"train_seconds": seconds, "test_seconds": test_seconds}
    if args.model in OURS:
        facts["test_nats"] = model.nats(texts["test"])
    print(json.dumps(facts), flush=True)
    return facts


def refitted(texts: Texts, options: Options) -> Classifier:
    """Return an untrained model with the tree that another one has learned, to measure the value of the tree alone."""
    first = Classifier(texts, replace(options, tree="learned"))
    for _ in first.train(texts):
        pass
    learned = first.head.normaliser
    assert isinstance(learned, TreeLayer)
    return Classifier(texts, options, learned.tree)


def as_table(rows: list[dict[str, Any]]) -> str:
    if not rows:
        raise OptionError("expected rows of `classification.py run`, found none; run something first")
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for found in rows:
        cells = (found[name] for name in COLUMNS)
        lines.append("| " + " | ".join(f"{x:.2f}" if isinstance(x, float) else str(x) for x in cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
