"""Average the weights of a training's checkpoints into its checkpoint_best.pt (Merity et al. 2018).

    average.py FOLDER        every checkpoint_EPOCH_UPDATE.pt in it, with equal weight
"""

import argparse
import os
import sys
from pathlib import Path

import torch

import fairseq_llrnn.plugin  # noqa: F401  (allows the one class that checkpoints hold besides tensors)
from fairseq_llrnn.errors import DataError, LLRNNError


def average(folder: Path) -> int:
    """Write the average; returns how many checkpoints went into it.

    Raises:
        DataError: there are none, or they are of different models.
    """
    paths = sorted(folder.glob("checkpoint_[0-9]*_[0-9]*.pt"))
    if not paths:
        raise DataError(
            f"{folder}: expected checkpoint_EPOCH_UPDATE.pt files, found none; train with --save-interval-updates"
        )
    total: dict[str, torch.Tensor] = {}
    for path in paths:
        state = torch.load(path, map_location="cpu", weights_only=True)
        if total and state["model"].keys() != total.keys():
            raise DataError(f"{path}: expected the weights of {paths[0].name}, found others; use one training's folder")
        for name, weights in state["model"].items():
            if weights.is_floating_point():
                total[name] = total.get(name, torch.zeros_like(weights, dtype=torch.float64)) + weights.double()
            else:
                total[name] = weights
    state["model"] = {
        name: (weights / len(paths)).float() if weights.dtype == torch.float64 else weights
        for name, weights in total.items()
    }
    temporary = folder / "checkpoint_best.tmp"
    torch.save(state, temporary)
    os.replace(temporary, folder / "checkpoint_best.pt")
    return len(paths)


def main() -> int:
    parser = argparse.ArgumentParser(description="average the checkpoints of one training")
    parser.add_argument("folder", type=Path, help="what --save-dir was")
    try:
        print(f"averaged {average(parser.parse_args().folder)} checkpoints")
    except LLRNNError as error:
        print(f"average.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
