"""What our recurrent translation models share: an encoder in fairseq's clothes, and how a pair of sentences is read.

Sizes: B batch, L source length, E encoder width.
"""

from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any

from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from fairseq_llrnn.networks.cells import find_cell
from fairseq_llrnn.networks.recurrent import RecurrentEncoder
from fairseq_llrnn.plugin.models.extensions import check_sizes
from fairseq_llrnn.plugin.models.log_linear_decoder import EncoderOut, LogLinearModel, short_products
from fairseq_llrnn.plugin.models.options import LEXICAL_WARMUP, RecurrentDecoderConfig, dropouts
from fairseq_llrnn.plugin.models.recurrent_decoders import SourceDecoder
from fairseq_llrnn.plugin.models.source_side import SourceConfig, readable, source_embedding
from fairseq_llrnn.source_embedding import check_source_prior


@dataclass
class RecurrentTranslationConfig(SourceConfig, RecurrentDecoderConfig):
    """Options of all recurrent translation models."""

    lexical_warmup_updates: int = field(default=0, metadata=LEXICAL_WARMUP)


class SourceEncoder(FairseqEncoder):
    """A network that reads sources.

    Args:
        network: sources (B, L), padded on either side -> a state of each word (B, L, E), zero on padding, and a summary
            of each sentence; it has an `embedding`, and `pad`.
        max_positions: the longest source that fairseq may give.
    """

    network: Any

    def __init__(self, dictionary: Dictionary, network: nn.Module, max_positions: int, bf16_products: bool) -> None:
        super().__init__(dictionary)
        self.network = network
        self.longest = max_positions
        self.bf16_products = bf16_products

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> EncoderOut:
        """Read sources (B, L), padded on either side.

        Returns:
            encoder_out (L, B, E), encoder_padding_mask (B, L), summary (B, …) and src_tokens (B, L), each the only
            element of a list, as fairseq's encoders have them.
        """
        with short_products(self, src_tokens):
            states, summary = self.network(readable(src_tokens, self.dictionary, self.network.embedding))
        return {
            "encoder_out": [states.transpose(0, 1)],
            "encoder_padding_mask": [src_tokens.eq(self.network.pad)],
            "summary": [summary],
            "src_tokens": [src_tokens],
        }

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        batch_dimension = {"encoder_out": 1}
        return {
            name: [value.index_select(batch_dimension.get(name, 0), new_order) for value in values]
            for name, values in encoder_out.items()
        }

    def max_positions(self) -> int:
        return self.longest

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> dict[str, Tensor]:
        """Refuse weights that were trained beside another source prior."""
        check_source_prior(self.network.embedding, state_dict, f"{name}.")
        return state_dict


def recurrent_reader(
    args: Namespace | RecurrentTranslationConfig, task: FairseqTask, bidirectional: bool = False, reverse: bool = False
) -> RecurrentEncoder:
    """The network of a recurrent encoder, by --encoder-…. Raises OptionError for sizes below 1."""
    check_sizes(args, "encoder_embed_dim", "encoder_hidden_size", "encoder_layers")
    source = task.source_dictionary
    return RecurrentEncoder(
        len(source),
        source.pad(),
        args.encoder_embed_dim,
        args.encoder_hidden_size,
        args.encoder_layers,
        find_cell(args.cell).constant or args.cell,  # to choose what to compute is the decoder's
        bidirectional=bidirectional,
        reverse=reverse,
        **dropouts(args),
        embedding=source_embedding(args, task, args.encoder_embed_dim),
    )


class RecurrentTranslationModel(LogLinearModel, FairseqEncoderDecoderModel):
    """p(x | C, prefix) ∝ b(C, x) exp(a(K)ᵀφ(x)) over a recurrent decoder."""

    encoder: SourceEncoder
    decoder: SourceDecoder

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor
    ) -> tuple[Tensor, dict[str, Any]]:
        encoder_out = self.encoder(src_tokens, src_lengths)
        return self.decoder(prev_output_tokens, encoder_out=encoder_out)
