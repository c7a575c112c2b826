"""What the system adds to our models: the options of its cells, and what a network of them says of its computation.

    computation_terms.py  … for the criterion and for explanations
"""

import math
from argparse import Namespace
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Optional  # fairseq reads Optional[X] from its dataclasses, and not X | None

from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass

from fairseq_llrnn.errors import OptionError, check_unused_options
from fairseq_llrnn.files.numbers import check_penalty
from fairseq_llrnn.networks.recurrent import RecurrentNetwork, find_cell
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS, RECURRENT, Args, Extension, non_default_options

TARGET, PENALTY, SHARPNESS, UPDATES = 0.4, 0.1, 1.0, 5000


@dataclass
class ComputationConfig(FairseqDataclass):
    """Options of cells that vary their computation. None, as in old checkpoints: the usual."""

    vc_target: Optional[float] = field(
        default=None,
        metadata={
            "help": f"share of its dimensions that --cell vcgru or vcrnn should compute at a step (default: {TARGET:g})"
        },
    )
    vc_penalty: Optional[float] = field(
        default=None,
        metadata={
            "help": "weight, in nats, of the distance of that share to its target; 0: the network computes what it "
            f"likes (default: {PENALTY:g})"
        },
    )
    vc_sharpness: Optional[float] = field(
        default=None,
        metadata={
            "help": "λ of the mask between what is computed and what is kept, at its largest; about 14/λ dimensions "
            f"are between the two (default: {SHARPNESS:g}, made for 1,024 dimensions)"
        },
    )
    vc_sharpen_updates: Optional[int] = field(
        default=None,
        metadata={
            "help": "updates in which λ rises to it, from a tenth: at first the network learns with soft masks "
            f"(default: {UPDATES:,}; half of the training's updates is a good choice)"
        },
    )
    vc_guide: Optional[str] = field(
        default=None,
        metadata={
            "help": "words at which everything should be computed, separated by spaces, as the one that marks a space "
            "in a text in characters: the target is 1 as one of them is read (default: none)"
        },
    )


class VariableComputation(Extension):
    """Networks of these cells."""

    options: ClassVar = {RECURRENT: ComputationConfig}

    def set_up_network(self, args: Args, network: RecurrentNetwork, dictionary: Dictionary) -> None:
        _set_up(args, network, dictionary)


def _set_up(args: Namespace | FairseqDataclass, network: RecurrentNetwork, dictionary: Dictionary) -> None:
    """Do what the options say, which old checkpoints lack.

    Raises:
        OptionError: a value out of range, an option beside a cell that has no use for it, a word that is unknown.
    """
    options = non_default_options(args, ComputationConfig)
    if find_cell(args.cell).constant is None:
        check_unused_options(
            options,
            f"expected --cell vcgru or vcrnn, found {args.cell}, which computes everything at every step; leave one of "
            "them out",
        )
        return
    from fairseq_llrnn.systems.variable_computation.plugin.computation_terms import ComputationTarget, computation_terms
    from fairseq_llrnn.systems.variable_computation.variable_cells import Sharpness, sharpen

    target, penalty = options.get("vc_target", TARGET), options.get("vc_penalty", PENALTY)
    sharpness, updates = options.get("vc_sharpness", SHARPNESS), options.get("vc_sharpen_updates", UPDATES)
    if not 0.0 <= target <= 1.0:
        raise OptionError(f"--vc-target {target}: expected a share from 0 to 1, e.g. 0.4")
    check_penalty("--vc-penalty", penalty)
    if not (math.isfinite(sharpness) and sharpness > 0):
        raise OptionError(f"--vc-sharpness {sharpness}: expected a finite number above 0, e.g. 1")
    if updates < 0:
        raise OptionError(
            f"--vc-sharpen-updates {updates}: expected 0 or a number of updates, e.g. half of the training's"
        )
    sharpen(network, Sharpness(sharpness, updates))
    boundaries = []
    for word in options.get("vc_guide", "").split():
        if word not in dictionary:
            raise OptionError(
                f"--vc-guide: expected words of the dictionary, found {word!r}, which is not in it; give the words as "
                "the training text has them"
            )
        boundaries.append(dictionary.index(word))
    aim = ComputationTarget(target, penalty, tuple(boundaries))
    network.terms.append(partial(computation_terms, aim, len(network.layers)))


EXTENSIONS.append(VariableComputation())
