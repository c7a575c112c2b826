"""llrnn_lbl: the log-bilinear language model that ends in a log-linear layer; defaults of Jernite 2018 (§3.5).

It sees the last few words only, and nothing of a search needs to be remembered but them.
"""

from argparse import Namespace
from dataclasses import dataclass, field

from fairseq.data import Dictionary
from fairseq.models import FairseqLanguageModel, register_model
from fairseq.tasks import FairseqTask
from torch import Tensor

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.networks.log_bilinear import LogBilinearNetwork
from fairseq_llrnn.plugin.announced import registered
from fairseq_llrnn.plugin.models.extensions import check_sizes
from fairseq_llrnn.plugin.models.log_linear_decoder import (
    EncoderOut,
    HiddenStates,
    IncrementalState,
    LogLinearDecoder,
    LogLinearModel,
)
from fairseq_llrnn.plugin.models.options import DecoderConfig, build_head, check_decoder, prior_of


@dataclass
class LLRNNLogBilinearConfig(DecoderConfig):
    """Options of llrnn_lbl."""

    decoder_embed_dim: int = field(default=200, metadata={"help": "width of the input embeddings"})
    decoder_hidden_size: int = field(default=200, metadata={"help": "width of the hidden states"})
    context_size: int = field(default=4, metadata={"help": "number of words that it sees"})


class LogBilinearDecoder(LogLinearDecoder):
    """Words by their features or characters -> a matrix for each distance -> log-linear output over signatures."""

    def __init__(
        self, dictionary: Dictionary, network: LogBilinearNetwork, head: LogLinearHead, bf16_products: bool
    ) -> None:
        """head: with embeddings."""
        super().__init__(dictionary, head, bf16_products)
        self.network = network

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> HiddenStates:
        if incremental_state is None:
            return HiddenStates(self.network(self.head.embed(previous)))
        table = self.input_rows(incremental_state)
        nearest = previous[:, -self.network.context :]
        return HiddenStates(self.network(self.head.embed(nearest, table))[:, -1:])


@registered(register_model, "llrnn_lbl", dataclass=LLRNNLogBilinearConfig)
class LLRNNLogBilinearModel(LogLinearModel, FairseqLanguageModel):
    """p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)) over a log-bilinear network (Mnih & Hinton 2007)."""

    decoder: LogBilinearDecoder

    @classmethod
    def build_model(cls, args: Namespace | LLRNNLogBilinearConfig, task: FairseqTask) -> "LLRNNLogBilinearModel":
        """Build from the options and the task's prior.

        Raises:
            OptionError: a task without a prior, values out of range, or options that exclude each other.
        """
        prior = prior_of(task, "llrnn_lbl", "llrnn_language_modeling")
        check_decoder(args, prior)
        check_sizes(args, "context_size")
        head = build_head(args, task)
        network = LogBilinearNetwork(head.embed_size, args.decoder_hidden_size, args.context_size, args.dropout)
        return cls(LogBilinearDecoder(task.dictionary, network, head, args.bf16_products))
