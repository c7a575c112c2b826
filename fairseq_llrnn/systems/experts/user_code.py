"""--expert, as each command has it that loads a model (plugin/compat/loading.py says what is asked here)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq_llrnn.errors import OptionError

HEAD = "decoder.head."
OPTION, METAVAR = "expert", "FILE:Class"
HELP = "experts{of} (several with commas), as in its training; no checkpoint remembers them"


def files(names: str | None) -> dict[str, Path]:
    """The files that these experts are read from, by number, file name and class of each; none for no names."""
    listed = [name.strip().rpartition(":") for name in names.split(",")] if names else []
    return {f"expert {i} ({Path(file).name}:{of})": Path(file) for i, (file, _, of) in enumerate(listed, start=1)}


def trained(weights: Mapping[str, Any], prefix: str = HEAD) -> int:
    """How many experts a model with these weights was trained with. prefix: of the head's names."""
    shape = getattr(weights.get(f"{prefix}experts.weight"), "shape", ())  # (E, H)
    return shape[0] if shape else 0


def check(option: str, checkpoint: str, weights: Mapping[str, Any], num_experts: int, prefix: str = HEAD) -> None:
    """Raise OptionError where not as many experts, `num_experts`, are named as a checkpoint was trained with."""
    of_training = trained(weights, prefix)
    if of_training != num_experts:
        fix = f"give those of its training, in their order, as {option} FILE:Class" if of_training else "leave it out"
        raise OptionError(
            f"{option}: expected as many experts as {checkpoint} was trained with, which are {of_training}, found "
            f"{num_experts}; {fix}"
        )
