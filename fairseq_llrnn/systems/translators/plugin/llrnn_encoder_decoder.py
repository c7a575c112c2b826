"""llrnn_encoder_decoder: the RNN encoder-decoder of Cho et al. 2014 that ends in a log-linear layer."""

from argparse import Namespace
from dataclasses import dataclass, field

from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model
from fairseq.tasks import FairseqTask

from fairseq_llrnn.networks.cells import all_cells
from fairseq_llrnn.plugin.announced import registered
from fairseq_llrnn.plugin.models.extensions import check_sizes
from fairseq_llrnn.plugin.models.options import (
    CELL,
    build_head,
    build_network,
    check_decoder,
    prior_of,
)
from fairseq_llrnn.plugin.models.recurrent_models import (
    RecurrentTranslationConfig,
    RecurrentTranslationModel,
    SourceEncoder,
    recurrent_reader,
)
from fairseq_llrnn.systems.translators.plugin.maxout_decoder import MaxoutDecoder


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
            "help": "width of the output's rows: the output matrix is the product of these and of one that has as many "
            "rows as there are maxout units"
        },
    )


@registered(register_model, "llrnn_encoder_decoder", dataclass=LLRNNEncoderDecoderConfig)
class LLRNNEncoderDecoderModel(RecurrentTranslationModel):
    """A summary of the source, of which the decoder reads at every step."""

    decoder: MaxoutDecoder

    @classmethod
    def build_model(cls, args: Namespace | LLRNNEncoderDecoderConfig, task: FairseqTask) -> "LLRNNEncoderDecoderModel":
        """Build from the options and the task's prior.

        Raises:
            OptionError: a task without a prior, or options that exclude each other.
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
