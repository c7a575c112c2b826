"""Language models that end in a log-linear layer: llrnn_lbl, a log-bilinear one, and llrnn_lm, a recurrent one.

Sizes: B batch, T time, D input width, H hidden width, C words of the context.

The log-bilinear network sees only the last C words, each through the matrix of its distance, without a nonlinearity. A
search needs no other state. Source: Mnih & Hinton 2007; Jernite 2018, section 3.2 (the representation of a context);
its §3.5 has the defaults of llrnn_lbl.

    h_t = Σ_k R_k u_{t−k},    k = 1 … C        u: vectors of the words; words before the first one are zeros

The defaults of llrnn_lm are the sizes of Dymetman & Xiao 2016 (§5.2).
"""

from argparse import Namespace
from dataclasses import dataclass, field

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqLanguageModel, register_model, register_model_architecture
from fairseq.tasks import FairseqTask
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.networks.recurrent import dropout
from fairseq_llrnn.plugin.models.extensions import check_sizes
from fairseq_llrnn.plugin.models.log_linear_decoder import (
    EncoderOut,
    HiddenStates,
    IncrementalState,
    LogLinearDecoder,
    LogLinearModel,
)
from fairseq_llrnn.plugin.models.options import (
    DecoderConfig,
    RecurrentDecoderConfig,
    build_head,
    build_network,
    check_decoder,
    prior_of,
    set_defaults,
)
from fairseq_llrnn.plugin.models.recurrent_models import RecurrentDecoder, WindowDecoder


class LogBilinearNetwork(nn.Module):
    """The matrices of the distances.

    Args:
        input_size: D. hidden_size: H. context: C.
        dropout: on the input and on the output.
    """

    def __init__(self, input_size: int, hidden_size: int, context: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.context, self.dropout = context, dropout
        self.matrices = nn.Parameter(torch.empty(context, hidden_size, input_size))  # R_1 of the last word, R_2, …
        bound = (3.0 / (context * input_size)) ** 0.5  # states have the variance of the words' vectors
        nn.init.uniform_(self.matrices, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Map the vectors of the preceding words, (B, T, D), the last one nearest, to hidden states (B, T, H)."""
        x = dropout(x, self.dropout, self.training, False)
        hidden_size = self.matrices.size(1)
        products = functional.linear(x, self.matrices.flatten(0, 1))  # shape: (B, T, C·H)
        time = x.size(1)
        hidden = products[..., :hidden_size]
        for k, farther in enumerate(products.split(hidden_size, -1)[1:], start=1):
            hidden = hidden + functional.pad(farther, (0, 0, k, 0))[:, :time]
        return dropout(hidden, self.dropout, self.training, False)


@dataclass
class LLRNNLogBilinearConfig(DecoderConfig):
    """Options of llrnn_lbl."""

    decoder_embed_dim: int = field(default=200, metadata={"help": "width of the input embeddings"})
    decoder_hidden_size: int = field(default=200, metadata={"help": "width of the hidden states"})
    context_size: int = field(default=4, metadata={"help": "number of preceding words that the network reads"})


class LogBilinearDecoder(LogLinearDecoder):
    """Words by their features or characters -> a matrix for each distance -> log-linear output over signatures."""

    def __init__(
        self, dictionary: Dictionary, network: LogBilinearNetwork, head: LogLinearHead, bf16_products: bool
    ) -> None:
        """head: it needs embeddings."""
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


@register_model("llrnn_lbl", dataclass=LLRNNLogBilinearConfig)
class LLRNNLogBilinearModel(LogLinearModel, FairseqLanguageModel):
    """p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)) over a log-bilinear network (Mnih & Hinton 2007)."""

    decoder: LogBilinearDecoder

    @classmethod
    def build_model(cls, args: Namespace | LLRNNLogBilinearConfig, task: FairseqTask) -> "LLRNNLogBilinearModel":
        """Build the model from the options and the task's prior.

        Raises:
            OptionError: a task without a prior, values out of range, or options that exclude each other.
        """
        check_decoder(args, prior_of(task, "llrnn_lbl", "llrnn_language_modeling"))
        check_sizes(args, "context_size")
        head = build_head(args, task)
        network = LogBilinearNetwork(head.embed_size, args.decoder_hidden_size, args.context_size, args.dropout)
        return cls(LogBilinearDecoder(task.dictionary, network, head, args.bf16_products))


@dataclass
class LLRNNLanguageModelConfig(RecurrentDecoderConfig):
    """Options of llrnn_lm."""

    context_window: int = field(
        default=0, metadata={"help": "read only the last N words, e.g. 8 as in the paper (default 0: the whole prefix)"}
    )


WIDEST_WINDOW = 1000  # words read again for every position


@register_model("llrnn_lm", dataclass=LLRNNLanguageModelConfig)
class LLRNNLanguageModel(LogLinearModel, FairseqLanguageModel):
    """p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)) over a recurrent network (Dymetman & Xiao 2016)."""

    decoder: RecurrentDecoder | WindowDecoder

    @classmethod
    def build_model(cls, args: Namespace | LLRNNLanguageModelConfig, task: FairseqTask) -> "LLRNNLanguageModel":
        """Build the model from the options and the task's prior.

        Raises:
            OptionError: a task without a prior, or options that exclude each other.
        """
        check_decoder(args, prior_of(task, "llrnn_lm", "llrnn_language_modeling"))
        if not 0 <= args.context_window <= WIDEST_WINDOW:
            raise OptionError(
                f"--context-window {args.context_window}: expected 0 (no limit) or a number of words up to "
                f"{WIDEST_WINDOW:,}"
            )
        network = build_network(args, task.dictionary)
        if network.varies and args.context_window:
            raise OptionError(
                f"--context-window {args.context_window}: not supported with --cell {args.cell}, whose state keeps "
                "values of earlier words; remove it"
            )
        head, window = build_head(args, task), args.context_window
        if window:
            return cls(WindowDecoder(task.dictionary, network, head, window, args.bf16_products))
        return cls(RecurrentDecoder(task.dictionary, network, head, None, args.bf16_products))


@register_model_architecture("llrnn_lm", "llrnn_lm_small")
def small(args: Namespace) -> None:
    """Set sizes for fewer than 100,000 words: tied and regularised as in Merity et al. 2018
    (docs/results/small-texts.md).

    One of the two widths sets the other one. Different widths cannot be tied.
    """
    width = getattr(args, "decoder_hidden_size", getattr(args, "decoder_embed_dim", 256))
    set_defaults(
        args, decoder_hidden_size=width, decoder_embed_dim=width, decoder_layers=2, dropout=0.4,
        variational_dropout=True, weight_drop=0.5, activation_penalty=2.0, change_penalty=1.0,
    )  # fmt: skip
    starts_at_background = getattr(args, "start_at_background", False)
    set_defaults(args, tie_features=args.decoder_embed_dim == args.decoder_hidden_size and not starts_at_background)
