"""llrnn_lm: a recurrent language model that ends in a log-linear layer, whose defaults are the paper's sizes (§5.2)."""

from argparse import Namespace
from dataclasses import dataclass, field
from typing import Optional  # the host reads Optional[X] from its dataclasses, and not X | None

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import FairseqLanguageModel, register_model
from fairseq.tasks import FairseqTask
from omegaconf import II

from fairseq_llrnn.core.composition import FeatureEmbedding
from fairseq_llrnn.core.log_linear import FORMULAS, LogLinearOutput
from fairseq_llrnn.core.network import CELLS, RecurrentNetwork
from fairseq_llrnn.core.prior import Prior
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.recurrent_decoder import RecurrentDecoder


@dataclass
class LLRNNLanguageModelConfig(FairseqDataclass):
    """Options of llrnn_lm."""

    cell: ChoiceEnum(sorted(CELLS)) = field(  # type: ignore[valid-type]
        default="lstm", metadata={"help": "kind of recurrent cell"}
    )
    decoder_embed_dim: int = field(default=256, metadata={"help": "width of the input embeddings"})
    decoder_hidden_size: int = field(default=256, metadata={"help": "width of the recurrent layers"})
    decoder_layers: int = field(default=2, metadata={"help": "number of recurrent layers"})
    dropout: float = field(default=0.0, metadata={"help": "dropout on input, between layers and on output"})
    dropout_in: Optional[float] = field(default=None, metadata={"help": "dropout on the input (default: --dropout)"})
    dropout_between: Optional[float] = field(
        default=None, metadata={"help": "dropout between layers (default: --dropout)"}
    )
    dropout_out: Optional[float] = field(default=None, metadata={"help": "dropout on the output (default: --dropout)"})
    variational_dropout: bool = field(
        default=False, metadata={"help": "one dropout mask for all time steps of a sequence"}
    )
    layer_norm: bool = field(default=False, metadata={"help": "layer normalisation after each recurrent layer"})
    tie_features: bool = field(
        default=False, metadata={"help": "one table of feature weights for input (ψ) and output (φ)"}
    )
    context_window: int = field(
        default=0, metadata={"help": "see only this many words back, as the paper's 8 (default 0: the whole prefix)"}
    )
    output_formula: ChoiceEnum(FORMULAS) = field(  # type: ignore[valid-type]
        default="signature", metadata={"help": "`plain` computes every word of the vocabulary: slow, to check"}
    )
    bf16_products: bool = field(
        default=False,
        metadata={
            "help": "train with bfloat16 products, also on a CPU (where the host's --bf16 does not run); weights, sums "
            "over the vocabulary and evaluation stay in float32"
        },
    )
    tokens_per_sample: int = II("task.tokens_per_sample")


@register_model("llrnn_lm", dataclass=LLRNNLanguageModelConfig)
class LLRNNLanguageModel(FairseqLanguageModel):
    """p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)) over a recurrent network (Dymetman & Xiao 2016)."""

    decoder: RecurrentDecoder

    @classmethod
    def build_model(cls, args: Namespace | LLRNNLanguageModelConfig, task: FairseqTask) -> "LLRNNLanguageModel":
        """Build from the options and the task's prior.

        Raises:
            OptionError: a task without a prior, or options that exclude each other.
        """
        prior = getattr(task, "prior", None)
        if not isinstance(prior, Prior):
            raise OptionError(
                "--arch llrnn_lm: expected a task that loads a prior; use --task llrnn_language_modeling --prior DIR"
            )
        _check(args, prior)
        network = RecurrentNetwork(
            args.decoder_embed_dim,
            args.decoder_hidden_size,
            args.decoder_layers,
            args.cell,
            dropout_in=args.dropout if args.dropout_in is None else args.dropout_in,
            dropout_between=args.dropout if args.dropout_between is None else args.dropout_between,
            dropout_out=args.dropout if args.dropout_out is None else args.dropout_out,
            variational=args.variational_dropout,
            layer_norm=args.layer_norm,
        )
        output = LogLinearOutput(
            prior.output.features,
            torch.from_numpy(prior.output.class_of.copy()),
            args.decoder_hidden_size,
            args.output_formula,
        )
        embedding = FeatureEmbedding(
            prior.input.features,
            torch.from_numpy(prior.input.class_of.copy()),
            args.decoder_embed_dim,
            output.weight if args.tie_features else None,
        )
        decoder = RecurrentDecoder(
            task.dictionary, prior, network, embedding, output, args.context_window, args.bf16_products
        )
        return cls(decoder)


def _check(args: Namespace | LLRNNLanguageModelConfig, prior: Prior) -> None:
    for name in ("decoder_embed_dim", "decoder_hidden_size", "decoder_layers"):
        if getattr(args, name) < 1:
            raise OptionError(f"--{name.replace('_', '-')} {getattr(args, name)}: expected a number of at least 1")
    for name in ("dropout", "dropout_in", "dropout_between", "dropout_out"):
        probability = getattr(args, name)
        if probability is not None and not 0.0 <= probability < 1.0:
            raise OptionError(f"--{name.replace('_', '-')} {probability}: expected a probability from 0 to below 1")
    if args.context_window < 0:
        raise OptionError(f"--context-window {args.context_window}: expected 0 (no limit) or a number of words")
    if not args.tie_features:
        return
    if args.decoder_embed_dim != args.decoder_hidden_size:
        raise OptionError(
            "--tie-features: expected equal --decoder-embed-dim and --decoder-hidden-size, found "
            f"{args.decoder_embed_dim} and {args.decoder_hidden_size}; make them equal"
        )
    if prior.input.features.names != prior.output.features.names:
        raise OptionError(
            "--tie-features: expected the same features in input and output, but the prior was built with other "
            "--input-features; build it without them, or do not tie"
        )
