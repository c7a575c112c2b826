"""llrnn_encoder_decoder: the RNN encoder-decoder of Cho et al. 2014 with a log-linear output layer.

Sizes: B batch, T time, E encoder width, H width of the state, D embedding width, M maxout units, P functions of each, K
width of the head's input.

Its decoder uses the summary c of the source at every step, in the state and in the output. Each maxout unit is the
largest of a few linear functions of its input (Goodfellow et al. 2013). In `Maxout`, D is the width of this input.

    c   = tanh(V h_L)                                  h_L: the encoder's last state
    s₀  = tanh(V' c),   s_t = GRU(s_{t-1}, [e(y_{t-1}); c])
    m_t = maxout(O_s s_t + O_y e(y_{t-1}) + O_c c)
    p(y_t) ∝ b exp(φ(y_t)ᵀ W G m_t)                    G: K×M, W: one row of K weights per feature

W G is the output matrix as a product of two thin ones. The input matrix is factorised likewise, with embeddings of D
dimensions.

Other architectures of the literature, `seq2seq` and `rnnsearch`, are llrnn_lstm with other options.
"""

from argparse import Namespace
from dataclasses import dataclass, field

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model, register_model_architecture
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.networks.recurrent import RecurrentNetwork, all_cells, dropout
from fairseq_llrnn.plugin.models.extensions import check_sizes
from fairseq_llrnn.plugin.models.log_linear_decoder import EncoderOut, HiddenStates
from fairseq_llrnn.plugin.models.options import CELL, build_head, build_network, check_decoder, prior_of, set_defaults
from fairseq_llrnn.plugin.models.recurrent_models import (
    RecurrentDecoder,
    RecurrentTranslationConfig,
    RecurrentTranslationModel,
    SourceEncoder,
    recurrent_reader,
)


class Maxout(nn.Module):
    """A layer of maxout units: x (…, D) -> (…, M)."""

    def __init__(self, input_size: int, units: int, pieces: int = 2) -> None:
        """units: M. pieces: P."""
        super().__init__()
        self.units, self.pieces = units, pieces
        self.linear = nn.Linear(input_size, units * pieces)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.amax(self.linear(x).unflatten(-1, (self.units, self.pieces)), dim=-1)


class MaxoutDecoder(RecurrentDecoder):
    """A decoder with the summary of the source at every step, and a layer of maxout units before the head.

    Args:
        network: its input has D + E dimensions.
        head: with embeddings; its hidden width is K.
        encoder_size: E.
        state_size: H.
        units: M.
        max_positions: the longest target that fairseq may give.
    """

    attends = False

    def __init__(
        self,
        dictionary: Dictionary,
        network: RecurrentNetwork,
        head: LogLinearHead,
        encoder_size: int,
        state_size: int,
        units: int,
        max_positions: int,
        bf16_products: bool,
    ) -> None:
        super().__init__(dictionary, network, head, max_positions, bf16_products)
        self.state_shape = (network.num_states, len(network.layers), state_size)  # (G, R, H)
        self.context = nn.Linear(encoder_size, encoder_size)  # V
        self.bridge = nn.Linear(encoder_size, network.num_states * len(network.layers) * state_size)  # V'
        self.maxout = Maxout(state_size + head.embed_size + encoder_size, units)
        self.thin = nn.Linear(units, head.hidden_size, bias=False)  # G
        for layer in (self.context, self.bridge, self.thin):
            for parameter in layer.parameters():
                nn.init.uniform_(parameter, -0.1, 0.1)

    def summary(self, encoder_out: EncoderOut) -> Tensor:
        """Return c, (B, E)."""
        return torch.tanh(self.context(encoder_out["summary"][0]))

    def start(self, encoder_out: EncoderOut) -> Tensor:
        return torch.tanh(self.bridge(self.summary(encoder_out))).view(-1, *self.state_shape)

    def source_input(self, encoder_out: EncoderOut, positions: range) -> Tensor:
        return self.summary(encoder_out).unsqueeze(1).expand(-1, len(positions), -1)

    def output_states(self, hidden: Tensor, read: Tensor, encoder_out: EncoderOut) -> HiddenStates:
        units = self.maxout(torch.cat([hidden, read.to(hidden.dtype)], dim=-1))  # shape: (B, T, M)
        units = dropout(units, self.network.dropout_out, self.training, self.network.variational)
        return HiddenStates(self.thin(units))


@dataclass
class LLRNNEncoderDecoderConfig(RecurrentTranslationConfig):
    """Options of llrnn_encoder_decoder."""

    encoder_embed_dim: int = field(default=100, metadata={"help": "width of the source embeddings"})
    encoder_hidden_size: int = field(default=256, metadata={"help": "width of the encoder's layers and of the summary"})
    encoder_layers: int = field(default=1, metadata={"help": "number of the encoder's layers"})
    decoder_embed_dim: int = field(default=100, metadata={"help": "width of the input embeddings"})
    decoder_layers: int = field(default=1, metadata={"help": "number of recurrent layers"})
    cell: ChoiceEnum(list(all_cells())) = field(default="gru", metadata=CELL)  # type: ignore[valid-type]
    maxout_units: int = field(
        default=256,
        metadata={"help": "number of maxout units, of two functions each, between the state and the output"},
    )
    decoder_output_dim: int = field(
        default=100,
        metadata={
            "help": "width of the output's rows, which a matrix maps from the maxout units"
        },
    )


@register_model("llrnn_encoder_decoder", dataclass=LLRNNEncoderDecoderConfig)
class LLRNNEncoderDecoderModel(RecurrentTranslationModel):
    """A translation model whose decoder uses a summary of the source at every step."""

    decoder: MaxoutDecoder

    @classmethod
    def build_model(cls, args: Namespace | LLRNNEncoderDecoderConfig, task: FairseqTask) -> "LLRNNEncoderDecoderModel":
        """Build from the options and the task's prior.

        Raises:
            OptionError: a task without a prior, or contradictory options.
        """
        prior = prior_of(task, "llrnn_encoder_decoder", "llrnn_translation")
        check_decoder(args, prior, output="decoder_output_dim")
        check_sizes(args, "maxout_units")
        source, target = task.source_dictionary, task.target_dictionary
        reader = recurrent_reader(args, task)
        network = build_network(args, target, reader.output_size)
        head = build_head(args, task, reader.output_size, output="decoder_output_dim")
        decoder = MaxoutDecoder(
            target,
            network,
            head,
            reader.output_size,
            args.decoder_hidden_size,
            args.maxout_units,
            task.cfg.max_target_positions,
            args.bf16_products,
        )
        return cls(SourceEncoder(source, reader, task.cfg.max_source_positions, args.bf16_products), decoder)


@register_model_architecture("llrnn_lstm", "llrnn_seq2seq")
def seq2seq(args: Namespace) -> None:
    """Sutskever et al. 2014: four LSTM layers, reversed source, and one vector between the two sides."""
    set_defaults(args, cell="lstm", attention="none", reverse_source=True, encoder_layers=4, decoder_layers=4)


@register_model_architecture("llrnn_lstm", "llrnn_rnnsearch")
def rnnsearch(args: Namespace) -> None:
    """Bahdanau et al. 2015: GRUs, bidirectional encoder, additive attention."""
    set_defaults(args, cell="gru", attention="additive", encoder_bidirectional=True, decoder_layers=1)
