"""Reject a checkpoint of another model before fairseq resumes from it, and print the options that differ.

fairseq stops in its optimizer, in its learning-rate schedule or in torch, and advises a reset of these, with which
training then fails or goes on with tied weights that were not.
"""

from __future__ import annotations

import itertools
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.compat.checkpoint_errors import LAST
from fairseq_llrnn.plugin.names import name_in

MOST = 4  # options in a message


def check_same_model(cfg: Any, trainer: Any) -> None:
    """Raise OptionError if a training would resume from a checkpoint of a model with other options and weights.

    A checkpoint that cannot be read, or differs only in its dictionary or prior, is left to later checks.

    cfg: fairseq's options of checkpoints.
    """
    path, state = restored(cfg)
    try:
        if state is None or _fits(trainer.get_model(), state["model"]):
            return
        options = state["cfg"]["model"]
    except Exception:  # a damaged file can raise anything
        return
    is_of_folder = cfg.restore_file == LAST or path.parent == Path(cfg.save_dir)
    if changed := changed_options(trainer.get_model(), options, trainer.cfg.model):
        advice = "another --save-dir to train this model" if is_of_folder else "the checkpoint's options"
        raise OptionError(
            f"{path}: expected a checkpoint of this model, found one of another model ({changed}); use {advice}", path
        )


def restored(cfg: Any) -> tuple[Path, dict[str, Any] | None]:
    """Return the checkpoint that a training resumes from, and its content, or None if it is missing or damaged.

    cfg: fairseq's options of checkpoints.
    """
    path = Path(cfg.save_dir, LAST) if cfg.restore_file == LAST else Path(cfg.restore_file)
    try:
        return path, torch.load(str(path), map_location="cpu", mmap=True, weights_only=True)
    except Exception:  # a damaged file can raise anything
        return path, None


def _fits(model: nn.Module, weights: Mapping[str, Tensor]) -> bool:
    """Return whether a model has weights of these names and shapes, and the same matrices are equal.

    A GPU stores shared weights as copies.
    """
    own = dict(model.named_parameters(remove_duplicate=False))
    shapes = {name: parameter.shape for name, parameter in own.items()}
    if shapes != {name: weights[name].shape for name in own if name in weights}:
        return False
    if set(weights) - set(model.state_dict()):
        return False
    matrices = [name for name, parameter in own.items() if parameter.dim() > 1]
    return all(
        (own[one] is own[other]) == torch.equal(weights[one], weights[other])
        for one, other in itertools.combinations(matrices, 2)
        if shapes[one] == shapes[other]
    )


def changed_options(model: Any, before: Any, now: Any) -> str:
    """Return the options of a model that differ from those of a checkpoint, as the checkpoint has them, or nothing."""
    parser = ArgumentParser(argument_default=SUPPRESS, add_help=False)
    type(model).add_args(parser)
    stored, own = dict(_items(before)), dict(_items(now))
    names = [action.dest for action in parser._actions if action.dest in stored]
    changed = [("arch", name_in(before), name_in(now)), *((name, stored[name], own.get(name)) for name in names)]
    shown = [_shown(name, old) for name, old, new in changed if old != new and (old or new)]
    return ", ".join(shown[:MOST]) + (", …" if len(shown) > MOST else "")


def _items(options: Any) -> Iterable[tuple[str, Any]]:
    items: Iterable[tuple[str, Any]] = (options if hasattr(options, "items") else vars(options)).items()
    return items


def _shown(name: str, value: Any) -> str:
    option = f"--{name.replace('_', '-')}"
    return f"no {option}" if value is None or value is False else option if value is True else f"{option} {value}"
