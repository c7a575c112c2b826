"""llrnn_lm: a recurrent language model that ends in a log-linear layer, whose defaults are the paper's sizes (§5.2)."""

from argparse import Namespace
from dataclasses import dataclass, field

from fairseq.models import FairseqLanguageModel, register_model
from fairseq.tasks import FairseqTask

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.announced import registered
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearModel
from fairseq_llrnn.plugin.models.options import (
    RecurrentDecoderConfig,
    build_head,
    build_network,
    check_decoder,
    prior_of,
)
from fairseq_llrnn.plugin.models.recurrent_models import RecurrentDecoder


@dataclass
class LLRNNLanguageModelConfig(RecurrentDecoderConfig):
    """Options of llrnn_lm."""

    context_window: int = field(
        default=0, metadata={"help": "see only this many words back, as the paper's 8 (default 0: the whole prefix)"}
    )


WIDEST_WINDOW = 1000  # every position is read with as many words


@registered(register_model, "llrnn_lm", dataclass=LLRNNLanguageModelConfig)
class LLRNNLanguageModel(LogLinearModel, FairseqLanguageModel):
    """p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)) over a recurrent network (Dymetman & Xiao 2016)."""

    decoder: RecurrentDecoder

    @classmethod
    def build_model(cls, args: Namespace | LLRNNLanguageModelConfig, task: FairseqTask) -> "LLRNNLanguageModel":
        """Build from the options and the task's prior.

        Raises:
            OptionError: a task without a prior, or options that exclude each other.
        """
        prior = prior_of(task, "llrnn_lm", "llrnn_language_modeling")
        check_decoder(args, prior)
        if not 0 <= args.context_window <= WIDEST_WINDOW:
            raise OptionError(
                f"--context-window {args.context_window}: expected 0 (no limit) or a number of words up to "
                f"{WIDEST_WINDOW:,}"
            )
        network = build_network(args, task.dictionary)
        if network.varies and args.context_window:
            raise OptionError(
                f"--context-window {args.context_window}: not supported with --cell {args.cell}, whose state carries "
                "on what a word does not change; leave it out"
            )
        head = build_head(args, task)
        window, reduced = args.context_window, args.bf16_products
        return cls(RecurrentDecoder(task.dictionary, network, head, window, reduced))
