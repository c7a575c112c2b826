"""Options of regularisation, for all models with a recurrent network.

    state_penalties.py    dropout of weights, and penalties
"""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass

from fairseq_llrnn.errors import check_unused_options
from fairseq_llrnn.files.numbers import check_penalty
from fairseq_llrnn.networks.recurrent import RecurrentNetwork
from fairseq_llrnn.plugin.models.extensions import (
    EXTENSIONS,
    RECURRENT,
    Args,
    Extension,
    check_dropouts,
    non_default_options,
)


@dataclass
class RegularisationConfig(FairseqDataclass):
    """Options of regularisation. With the defaults, as in older checkpoints, there is none."""

    weight_drop: float = field(
        default=0.0,
        metadata={
            "help": "dropout probability of state-to-state weights in training, with one mask per batch, e.g. 0.5"
        },
    )
    activation_penalty: float = field(
        default=0.0, metadata={"help": "weight, in nats, of the mean square of the network's states, e.g. 2"}
    )
    change_penalty: float = field(
        default=0.0,
        metadata={"help": "weight, in nats, of the mean square of the change from each state to the next, e.g. 1"},
    )


class Regularisation(Extension):
    """Networks with regularised weights and states."""

    options: ClassVar = {RECURRENT: RegularisationConfig}

    def set_up_network(self, args: Args, network: RecurrentNetwork, dictionary: Dictionary) -> None:
        options = non_default_options(args, RegularisationConfig)
        if not options:
            return
        from fairseq_llrnn.systems.regularisation.plugin.state_penalties import state_penalties, with_dropped_weights

        check_dropouts(args, "weight_drop")
        if drop := options.pop("weight_drop", None):
            if network.varies:
                advice = f"not supported with --cell {args.cell}; leave one of them out"
                check_unused_options({"weight_drop": drop}, advice)
            network.call_layer = partial(with_dropped_weights, drop)
        for name, weight in options.items():
            check_penalty(f"--{name.replace('_', '-')}", weight)
        if window := getattr(args, "context_window", 0):
            check_unused_options(options, f"not supported with --context-window {window}; leave one of them out")
        if options:
            weights = (options.get(name, 0.0) for name in ("activation_penalty", "change_penalty"))
            network.terms.append(partial(state_penalties, *weights))


EXTENSIONS.append(Regularisation())
