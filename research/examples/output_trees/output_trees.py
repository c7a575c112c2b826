"""Flat softmax, adaptive softmax and output trees with the same network, on English novels (README.md).

    output_trees.py prepare --novels ELTEC_ENG --out OUT [--every 4]     texts, dictionary, prior
    output_trees.py train --out OUT [ROW …] [--network lbl] [--seed 1]   finished rows are skipped;
                                                                         other --epochs or --part need another OUT
    output_trees.py time --out OUT [ROW …]                               milliseconds per batch, in turns
    output_trees.py table --out OUT                                      the tables, and the picture OUT/curves.png

Sizes: B sentences of a batch, T their length, N targets of a batch.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from tree_models import OUTPUTS
from tree_table import table
from tree_texts import prepare
from tree_times import time_cutoffs, time_rows
from tree_training import NETWORKS, Training, train

from fairseq_llrnn.errors import OptionError, one_line_errors


def parse_rows(names: Sequence[str]) -> list[str]:
    for name in names:
        if name not in OUTPUTS:
            raise OptionError(f"ROW: expected one of {', '.join(OUTPUTS)}, found {name!r}")
    return list(names) or list(OUTPUTS)


@one_line_errors("output_trees.py")
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stages = parser.add_subparsers(dest="stage", required=True)
    for name in ("prepare", "train", "time", "table"):
        stage = stages.add_parser(name)
        stage.add_argument("--out", type=Path, required=True)
        if name == "prepare":
            stage.add_argument("--novels", type=Path, required=True)
            stage.add_argument("--every", type=int, default=4, metavar="N", help="sentences of train (default: 4)")
        if name in ("train", "time"):
            stage.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(OUTPUTS))
        if name == "time":
            stage.add_argument("--batches", type=int, default=30)
            stage.add_argument("--cutoffs", action="store_true", help="of adaptive softmaxes, instead of rows")
        if name == "train":
            stage.add_argument("--network", choices=NETWORKS, default="lbl")
            stage.add_argument("--seed", type=int, default=1)
            stage.add_argument("--epochs", type=int, default=1)
            stage.add_argument("--part", type=float, default=1.0, help="of each epoch's batches (default: 1)")
            stage.add_argument(
                "--rate", type=float, help="learning rate, a part of the model's name (default: the network's)"
            )
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Sparse invariant checks")  # torch's Adagrad
    if args.stage == "prepare":
        prepare(args.novels, args.out, args.every)
    elif args.stage == "table":
        table(args.out)
    elif args.stage == "time" and args.cutoffs:
        time_cutoffs(args.out, args.batches)
    elif args.stage == "time":
        time_rows(args.out, parse_rows(args.rows), args.batches)
    else:
        for row in parse_rows(args.rows):
            train(Training(row, args.network, args.seed, args.epochs, args.part, args.rate), args.out)


if __name__ == "__main__":
    sys.exit(main())
