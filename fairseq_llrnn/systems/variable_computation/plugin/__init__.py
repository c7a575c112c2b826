"""What networks of variable computation are told on the command line (systems/variable_computation/variable_cells.py)."""

from __future__ import annotations

import math
from argparse import Namespace
from typing import Any

from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.numbers import check_penalty
from fairseq_llrnn.networks.cells import CELLS
from fairseq_llrnn.networks.recurrent import RecurrentNetwork
from fairseq_llrnn.systems.variable_computation.computation_target import ComputationTarget
from fairseq_llrnn.systems.variable_computation.variable_cells import Sharpness

TARGET, PENALTY, SHARPNESS, UPDATES = 0.4, 0.1, 1.0, 5000
HELP = {
    "vc_target": f"share of its dimensions that --cell vcgru or vcrnn should compute at a step (default: {TARGET:g})",
    "vc_penalty": "weight, in nats, of the distance of that share to its target; 0: the network computes what it likes "
    f"(default: {PENALTY:g})",
    "vc_sharpness": "λ of the mask between what is computed and what is kept, at its largest; about 14/λ dimensions "
    f"are between the two (default: {SHARPNESS:g}, made for 1,024 dimensions)",
    "vc_sharpen_updates": "updates in which λ rises to it, from a tenth: at first the network learns with soft masks "
    f"(default: {UPDATES:,}; half of the training's updates is a good choice)",
    "vc_guide": "words at which everything should be computed, separated by spaces, as the one that marks a space in a "
    "text in characters: the target is 1 as one of them is read (default: none)",
}


def metadata(name: str) -> dict[str, Any]:
    """Of the option's field."""
    return {"help": HELP[name]}


def computation_target(
    args: Namespace | FairseqDataclass, network: RecurrentNetwork, dictionary: Dictionary
) -> ComputationTarget | None:
    """Do what the options say, which old checkpoints lack; None for a cell that computes everything at every step.

    Raises:
        OptionError: a value out of range, an option beside a cell that has no use for it, a word that is unknown.
    """
    given = {name: getattr(args, name, None) for name in HELP}
    if CELLS[args.cell].constant is None:
        for name, value in given.items():
            if value is not None:
                raise OptionError(
                    f"{_option(name)} {value}: expected --cell vcgru or vcrnn, found {args.cell}, which computes "
                    "everything at every step; leave one of them out"
                )
        return None
    target, penalty = _value(given["vc_target"], TARGET), _value(given["vc_penalty"], PENALTY)
    sharpness, updates = _value(given["vc_sharpness"], SHARPNESS), _value(given["vc_sharpen_updates"], UPDATES)
    if not 0.0 <= target <= 1.0:
        raise OptionError(f"--vc-target {target}: expected a share from 0 to 1, e.g. 0.4")
    check_penalty("--vc-penalty", penalty)
    if not (math.isfinite(sharpness) and sharpness > 0):
        raise OptionError(f"--vc-sharpness {sharpness}: expected a finite number above 0, e.g. 1")
    if updates < 0:
        raise OptionError(
            f"--vc-sharpen-updates {updates}: expected 0 or a number of updates, e.g. half of the training's"
        )
    network.sharpen(Sharpness(sharpness, updates))
    boundaries = []
    for word in (given["vc_guide"] or "").split():
        if word not in dictionary:
            raise OptionError(
                f"--vc-guide: expected words of the dictionary, found {word!r}, which is not in it; give the words as "
                "the training text has them"
            )
        boundaries.append(dictionary.index(word))
    return ComputationTarget(target, penalty, tuple(boundaries))


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _value(given: Any, default: Any) -> Any:
    return default if given is None else given
