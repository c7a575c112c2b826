"""--encoder-layers-to-keep, --decoder-layers-to-keep: a Transformer of some of the layers of a deeper one.

What was trained with LayerDrop also works without some of its layers (Fan et al. 2020, *Reducing Transformer Depth on
Demand*). As in fairseq, the model is built with as many layers as are kept, and takes their weights out of a deeper
checkpoint: in training by --restore-file or --finetune-from-model, elsewhere by --model-overrides. Its own checkpoints
hold its number of layers and no list. What fairseq does with such lists does not serve: on the command line it makes
numbers of them that it then takes for text, and where one side has a list, it drops all layers of the other.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from fairseq_llrnn.errors import OptionError

LAYERS = {"encoder": "encoder.layers.", "decoder": "decoder.body.layers."}  # how the names of their weights begin


def read_as_text(parser: ArgumentParser) -> None:
    """Let the parser of fairseq's options leave the lists as they are."""
    for action in parser._actions:
        if action.dest in {f"{side}_layers_to_keep" for side in LAYERS}:
            action.type = str


def take_kept_layers(args: Namespace) -> dict[str, list[int]]:
    """The layers that each side keeps, if not all; afterwards `args` describe a model that has no others.

    Raises:
        OptionError: no list of numbers, or a layer that is not there, or named twice.
    """
    kept = {}
    for side in LAYERS:
        value, layers = getattr(args, f"{side}_layers_to_keep", None), getattr(args, f"{side}_layers")
        if value is None or value == "":
            continue
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        kept[side] = _read(f"--{side}-layers-to-keep {text}", text, side, layers)
        setattr(args, f"{side}_layers", len(kept[side]))
        setattr(args, f"{side}_layers_to_keep", None)
    return kept


def _read(option: str, text: str, side: str, layers: int) -> list[int]:
    found: set[int] = set()
    for part in text.split(","):
        if not part.strip().isdecimal():
            raise OptionError(
                f"{option}: expected numbers of layers with commas between them, e.g. 0,2, found {part.strip()!r}; "
                "fix the list"
            )
        number = int(part)
        if number >= layers:
            raise OptionError(
                f"{option}: expected layers from 0 to {layers - 1}, since the {side} has {layers}, found {number}; "
                f"count from 0, or see whether --{side}-layers is that of the deeper model"
            )
        if number in found:
            raise OptionError(f"{option}: expected every layer once, found {number} twice; take one of them out")
        found.add(number)
    return sorted(found)


def keep_layers(state: Mapping[str, Tensor], kept: Mapping[str, list[int]]) -> dict[str, Any]:
    """The weights of a checkpoint without layers that are not kept, the others numbered anew.

    A checkpoint with as many layers as are kept is one of the smaller model, and stays as it is: a training is resumed
    by the command that began it.

    Raises:
        OptionError: a layer that the checkpoint has not.
    """
    result = dict(state)
    for side, numbers in kept.items():
        begin = LAYERS[side]
        parts = {name: name.removeprefix(begin).partition(".") for name in state if name.startswith(begin)}
        names = {name: part for name, part in parts.items() if part[0].isdecimal()}  # of others, loading complains
        there = {int(place) for place, _, _ in names.values()}
        if len(there) in (0, len(numbers)):
            continue
        for number in numbers:
            if number not in there:
                raise OptionError(
                    f"--{side}-layers-to-keep {','.join(map(str, numbers))}: expected layers of the checkpoint, whose "
                    f"{side} has {len(there)}, found {number}; name some from 0 to {len(there) - 1}"
                )
        for name in names:
            del result[name]
        for name, (place, dot, rest) in names.items():
            if int(place) in numbers:
                result[f"{begin}{numbers.index(int(place))}{dot}{rest}"] = state[name]
    return result
