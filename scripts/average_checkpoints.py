#!/usr/bin/env python3
"""Average the weights of checkpoints: of a folder's last epochs, or of given files.

    python scripts/average_checkpoints.py DIR --last 5 --out FILE          for example checkpoint7.pt … checkpoint11.pt
    python scripts/average_checkpoints.py a.pt b.pt --out FILE

Floating-point values are averaged in float64. All other entries (options, sizes of dictionaries, state of the training)
are those of the last checkpoint. Checkpoints of a log-linear model must have the same prior, and the same output tree.
They are read as data and never run. (fairseq's own scripts/average_checkpoints.py is not in its package, and
unpickles.)
"""

import argparse
import logging
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # if the package is not installed
logging.getLogger("fairseq").setLevel(logging.WARNING)  # before the import, which logs

from fairseq_llrnn.cli.places import check_place  # noqa: E402
from fairseq_llrnn.errors import DataError, OptionError, check_least, one_line_errors  # noqa: E402
from fairseq_llrnn.plugin.compat.checkpoint_errors import explain_load_errors  # noqa: E402
from fairseq_llrnn.plugin.compat.safe_checkpoints import safe_loading  # noqa: E402
from fairseq_llrnn.plugin.compat.task_checkpoints import write_whole  # noqa: E402

EPOCH = re.compile(r"checkpoint(\d+)\.pt")
FINGERPRINT = "prior_fingerprint"  # of head/head.py
TREE = (".parent", ".row_of")  # of an output tree: which row of weights is for which words


def last_epochs(folder: Path, count: int) -> list[Path]:
    """Return the checkpoints of the last `count` epochs, oldest first. Raises DataError if there are fewer."""
    epochs = {int(found[1]): path for path in folder.iterdir() if (found := EPOCH.fullmatch(path.name))}
    if len(epochs) < count:
        names = ", ".join(epochs[n].name for n in sorted(epochs)) or "none"
        raise DataError(
            f"{folder}: expected the checkpoints of {count} epochs (checkpoint1.pt, …), found {names}; train with "
            f"--keep-last-epochs {count} and without --no-epoch-checkpoints, or use a smaller --last"
        )
    return [epochs[n] for n in sorted(epochs)[-count:]]


def read(path: Path) -> dict[str, Any]:
    """Read a checkpoint. Raises DataError: no such file, a damaged file, code in it, or another kind of file."""
    if not path.is_file():
        raise DataError(f"{path}: expected a checkpoint, found no such file")
    with safe_loading():
        state: dict[str, Any] = explain_load_errors(torch.load)(str(path), map_location="cpu")
    weights = state.get("model") if isinstance(state, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(value, Tensor) for value in weights.values()):
        raise DataError(f"{path}: expected a checkpoint of fairseq, found one without weights under `model`")
    return state


def average(paths: Sequence[Path]) -> dict[str, Any]:
    """Return the last checkpoint with the mean of all weights.

    Raises:
        DataError: as `read`, or the checkpoints differ in names or shapes of weights or in the prior, or a mean is not
            finite.
    """
    averaged = read(paths[-1])
    weights: dict[str, Tensor] = averaged["model"]
    # copies, each its own: tied weights share their numbers
    floats = {name: value for name, value in weights.items() if value.is_floating_point()}
    sums = {name: value.to(torch.float64, copy=True) for name, value in floats.items()}
    for path in paths[:-1]:
        found: dict[str, Tensor] = read(path)["model"]
        _check_same_model(path, found, paths[-1], weights)
        for name, value in sums.items():
            value += found[name].double()
    for name, value in sums.items():
        weights[name] = (value / len(paths)).to(weights[name].dtype)
    return averaged


def _check_same_model(path: Path, found: dict[str, Tensor], last: Path, weights: dict[str, Tensor]) -> None:
    for name in sorted(found.keys() | weights.keys()):
        weight, expected = found.get(name), weights.get(name)
        if weight is None or expected is None:
            raise DataError(f"{path}: expected the weights that {last} has, found {name} in only one of the two")
        if weight.shape != expected.shape:
            raise DataError(
                f"{path}: expected weights of the shapes in {last}, found {name} of {tuple(weight.shape)}, not "
                f"{tuple(expected.shape)}; average checkpoints of one model"
            )
        if name.endswith(FINGERPRINT) and not torch.equal(weight, expected):
            raise DataError(f"{path}: expected a model over the prior of {last}, found one over another prior")
        if name.endswith(TREE) and not torch.equal(weight, expected):
            raise DataError(
                f"{path}: expected the output tree of {last}, found another one, whose rows of weights are for other "
                "words; average epochs in which a learned tree stayed as it was"
            )


def write(state: dict[str, Any], out: Path) -> None:
    """Save it whole, or not at all. Raises DataError."""
    write_whole(out, lambda file: torch.save(state, file), "free some space on the disk, or write elsewhere")


@one_line_errors("average_checkpoints")
def main() -> None:
    parser = argparse.ArgumentParser(description="Average the weights of checkpoints.")
    parser.add_argument("inputs", nargs="+", type=Path, metavar="DIR|FILE", help="a folder with epochs, or files")
    parser.add_argument("--last", type=int, default=5, metavar="N", help="epochs of the folder (default: 5)")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE")
    args = parser.parse_intermixed_args()  # inputs may come after options
    check_place(str(args.out), f"--out {args.out}")
    check_least("--last", args.last, 1)
    paths: list[Path] = args.inputs
    if paths[0].is_dir():
        if len(paths) > 1:
            raise OptionError(f"expected one folder, or files, found {paths[0]} and others")
        paths = last_epochs(paths[0], args.last)
    write(average(paths), args.out)
    print(f"{args.out}: the mean of {', '.join(path.name for path in paths)}")


if __name__ == "__main__":
    sys.exit(main())
