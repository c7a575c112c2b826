"""Options of our models for cells of variable computation.

    computation_terms.py  their terms for the criterion and for explanations
"""

import math
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
    """Options of cells with variable computation. None, as in old checkpoints: the default."""

    vc_target: Optional[float] = field(
        default=None,
        metadata={
            "help": f"target share of dimensions that --cell vcgru or vcrnn computes at a step (default: {TARGET:g})"
        },
    )
    vc_penalty: Optional[float] = field(
        default=None,
        metadata={
            "help": "weight, in nats, of the distance of that share from its target; 0: no target "
            f"(default: {PENALTY:g})"
        },
    )
    vc_sharpness: Optional[float] = field(
        default=None,
        metadata={
            "help": "final λ of the mask between computed and copied dimensions; about 14/λ dimensions are between the "
            f"two (default: {SHARPNESS:g}, chosen for 1,024 dimensions)"
        },
    )
    vc_sharpen_updates: Optional[int] = field(
        default=None,
        metadata={
            "help": "number of updates in which λ rises from a tenth of its final value "
            f"(default: {UPDATES:,}; half of all updates is a good choice)"
        },
    )
    vc_guide: Optional[str] = field(
        default=None,
        metadata={
            "help": "words with a target of 1, separated by spaces, such as the space symbol of a text in characters "
            "(default: none)"
        },
    )


class VariableComputation(Extension):
    """Networks with cells of variable computation."""

    options: ClassVar = {RECURRENT: ComputationConfig}

    def set_up_network(self, args: Args, network: RecurrentNetwork, dictionary: Dictionary) -> None:
        """Apply the options, which old checkpoints lack.

        Raises:
            OptionError: a value out of range, an option for another cell, or an unknown word.
        """
        options = non_default_options(args, ComputationConfig)
        if find_cell(args.cell).constant is None:
            check_unused_options(
                options,
                f"it needs --cell vcgru or vcrnn, found {args.cell}, which always computes all dimensions; leave one "
                "of them out",
            )
            return
        from llrnn_research.variable_computation.plugin.computation_terms import (
            ComputationTarget,
            computation_terms,
        )
        from llrnn_research.variable_computation.variable_cells import Sharpness, sharpen

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
                    f"--vc-guide: {word!r} is not in the dictionary; give words of the training text"
                )
            boundaries.append(dictionary.index(word))
        aim = ComputationTarget(target, penalty, tuple(boundaries))
        network.terms.append(partial(computation_terms, aim, len(network.layers)))


EXTENSIONS.append(VariableComputation())
