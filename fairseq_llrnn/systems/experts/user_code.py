"""The option --expert of every command that loads a model, with the interface that plugin/compat/loading.py defines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq_llrnn.errors import OptionError

HEAD = "decoder.head."
OPTION, METAVAR = "expert", "FILE:Class"
HELP = "comma-separated experts{of}, the same as in training; checkpoints do not store them"


def files(names: str | None) -> dict[str, Path]:
    """Return the files of these experts, by number, file name and class."""
    listed = [name.strip().rpartition(":") for name in names.split(",")] if names else []
    return {f"expert {i} ({Path(file).name}:{cls})": Path(file) for i, (file, _, cls) in enumerate(listed, start=1)}


def trained(weights: Mapping[str, Any], prefix: str = HEAD) -> int:
    """Return the number of experts of a model with these weights. prefix: of the head's names."""
    shape = getattr(weights.get(f"{prefix}experts.weight"), "shape", ())  # (E, H)
    return shape[0] if shape else 0


def check(option: str, checkpoint: str, weights: Mapping[str, Any], num_experts: int, prefix: str = HEAD) -> None:
    """Raise OptionError unless the checkpoint was trained with `num_experts` experts."""
    of_training = trained(weights, prefix)
    if of_training != num_experts:
        fix = f"give the same ones in the same order, as {option} FILE:Class" if of_training else "leave it out"
        raise OptionError(f"{option}: {checkpoint} was trained with {of_training} experts, found {num_experts}; {fix}")
