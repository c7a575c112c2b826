"""llrnn_rctm: the recurrent continuous translation models of Kalchbrenner & Blunsom 2013 with a log-linear layer.

Sizes: B batch, M vectors of a source, Q their width.

It is a recurrent language model with a vector of the source as further input at every word. With Elman's cell, h_i =
tanh(I e(f_i) + R h_{i−1} + S v_i + c). S is a part of the cell's matrix, whose input is [e(f_i); v_i].
"""

from argparse import Namespace
from dataclasses import dataclass, field, replace
from typing import Optional  # fairseq reads Optional[X] from its dataclasses, and not X | None

import torch
from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model
from fairseq.tasks import FairseqTask
from torch import Tensor

from fairseq_llrnn.errors import OptionError, check_unused_options
from fairseq_llrnn.networks.recurrent import all_cells
from fairseq_llrnn.plugin.models.extensions import check_sizes
from fairseq_llrnn.plugin.models.log_linear_decoder import EncoderOut, HiddenStates, IncrementalState, Term
from fairseq_llrnn.plugin.models.options import (
    CELL,
    build_head,
    build_network,
    check_decoder,
    dropouts,
    prior_of,
    source_embedding,
)
from fairseq_llrnn.plugin.models.recurrent_models import (
    RecurrentDecoder,
    RecurrentTranslationConfig,
    RecurrentTranslationModel,
    SourceEncoder,
)
from llrnn_research.translators.convolutional_source import ConvolutionalSource, log_prob

RATE = "length_rate"  # λ of the target's length, (B,)


class ConvolutionalEncoder(SourceEncoder):
    """An encoder with a summary of (B, M, Q), and with λ if there is a model of the length."""

    network: ConvolutionalSource

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> EncoderOut:
        out = super().forward(src_tokens, src_lengths)
        if self.network.length is None:
            return out
        return {**out, RATE: [self.network.length(src_tokens.ne(self.network.pad).sum(1))]}


class ConvolutionalDecoder(RecurrentDecoder):
    """A decoder with vector i of the source as further input at word i, and the last one for all later words."""

    attends = False

    def source_input(self, encoder_out: EncoderOut, positions: range) -> Tensor:
        vectors = encoder_out["summary"][0]  # shape: (B, M, Q)
        places = torch.tensor(positions, device=vectors.device).clamp_max(vectors.size(1) - 1)
        return vectors.index_select(1, places)

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> HiddenStates:
        """Return the states, and the loss −log p(target length) at the last word, in nats, to train the length model.
        """
        states = super().hidden(previous, encoder_out, incremental_state)
        if incremental_state is not None or encoder_out is None or RATE not in encoder_out:
            return states
        lengths = previous.ne(self.dictionary.pad()).sum(1)  # shape: (B,)
        last = torch.arange(previous.size(1), device=previous.device) == lengths.unsqueeze(1) - 1
        nats = -log_prob(encoder_out[RATE][0], lengths)
        return replace(states, terms=[*states.terms, Term("length", nats.unsqueeze(1) * last, in_loss=True)])


CSM, CGM = "csm", "cgm"
LAYERS = 2  # default of --cgm-layers


@dataclass
class LLRNNRCTMConfig(RecurrentTranslationConfig):
    """Options of llrnn_rctm."""

    encoder_embed_dim: int = field(
        default=256, metadata={"help": "width of the source embeddings, and of the vectors of the source"}
    )
    source_model: ChoiceEnum([CSM, CGM]) = field(  # type: ignore[valid-type]
        default=CSM,
        metadata={
            "help": "input from the source at each word; csm: a vector of the whole sentence (RCTM I); cgm: vectors of "
            "its n-grams, unfolded to one for each place in the target, with a Poisson model of the length (RCTM II)"
        },
    )
    cgm_layers: Optional[int] = field(
        default=None,
        metadata={
            "help": "layers of --source-model cgm and of its inverted counterpart: 1 for pairs of words, 2 for n = 4, "
            f"3 for n = 7 (default: {LAYERS})"
        },
    )
    cell: ChoiceEnum(list(all_cells())) = field(default="rnn", metadata=CELL)  # type: ignore[valid-type]
    decoder_layers: int = field(default=1, metadata={"help": "number of recurrent layers"})


@register_model("llrnn_rctm", dataclass=LLRNNRCTMConfig)
class LLRNNRCTMModel(RecurrentTranslationModel):
    """A recurrent language model with convolutions of the source as further input."""

    encoder: ConvolutionalEncoder
    decoder: ConvolutionalDecoder

    @classmethod
    def build_model(cls, args: Namespace | LLRNNRCTMConfig, task: FairseqTask) -> "LLRNNRCTMModel":
        """Build from the options and the task's prior.

        Raises:
            OptionError: a task without a prior, or contradictory options.
        """
        prior = prior_of(task, "llrnn_rctm", "llrnn_translation")
        check_decoder(args, prior)
        check_sizes(args, "encoder_embed_dim")
        source, target = task.source_dictionary, task.target_dictionary
        dropped = dropouts(args)
        reader = ConvolutionalSource(
            len(source),
            source.pad(),
            args.encoder_embed_dim,
            _layers(args),
            dropped["dropout_in"],
            dropped["variational"],
            source_embedding(args, task, args.encoder_embed_dim),
        )
        network = build_network(args, target, reader.output_size)
        head = build_head(args, task, reader.output_size)
        longest = task.cfg.max_target_positions
        decoder = ConvolutionalDecoder(target, network, head, longest, args.bf16_products)
        return cls(ConvolutionalEncoder(source, reader, task.cfg.max_source_positions, args.bf16_products), decoder)


def _layers(args: Namespace | LLRNNRCTMConfig) -> int | None:
    """Return the layers of the n-gram model, or None for a model of the whole sentence."""
    layers = getattr(args, "cgm_layers", None)
    if args.source_model == CGM:
        if layers is not None and not 1 <= layers <= 6:
            raise OptionError(f"--cgm-layers {layers}: expected a number from 1 (n = 2) to 6 (n = 22), e.g. {LAYERS}")
        return LAYERS if layers is None else layers
    check_unused_options(
        {"cgm_layers": layers},
        f"it needs --source-model cgm, found {args.source_model}, whose layers depend on the sentence; leave one of "
        "them out",
    )
    return None
