"""llrnn_lstm: a recurrent encoder-decoder with attention that ends in a log-linear layer."""

from argparse import Namespace
from dataclasses import dataclass, field

from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model, register_model_architecture
from fairseq.tasks import FairseqTask

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.networks.recurrent import ATTENTIONS, GlobalAttention
from fairseq_llrnn.plugin.models.options import build_head, build_network, check_decoder, prior_of, set_defaults
from fairseq_llrnn.plugin.models.recurrent_models import (
    AttentionDecoder,
    RecurrentTranslationConfig,
    RecurrentTranslationModel,
    SourceEncoder,
    recurrent_reader,
)


@dataclass
class LLRNNLSTMConfig(RecurrentTranslationConfig):
    """Options of llrnn_lstm."""

    encoder_embed_dim: int = field(default=256, metadata={"help": "width of the source embeddings"})
    encoder_hidden_size: int = field(default=256, metadata={"help": "width of the encoder's layers, per direction"})
    encoder_layers: int = field(default=1, metadata={"help": "number of the encoder's layers"})
    encoder_bidirectional: bool = field(default=False, metadata={"help": "read the source in both directions"})
    attention: ChoiceEnum([*ATTENTIONS, "none"]) = field(  # type: ignore[valid-type]
        default="general", metadata={"help": "attention score of a decoder state and the source; `none`: no attention"}
    )
    reverse_source: bool = field(
        default=False, metadata={"help": "read the source from its end (Sutskever et al. 2014)"}
    )
    context_every_step: bool = field(
        default=False,
        metadata={"help": "let the decoder read the summary of the source with every word (Cho et al. 2014)"},
    )


@register_model("llrnn_lstm", dataclass=LLRNNLSTMConfig)
class LLRNNLSTMModel(RecurrentTranslationModel):
    """p(x | C, prefix) ∝ b(C, x) exp(a(K)ᵀφ(x)) over a recurrent encoder-decoder."""

    @classmethod
    def build_model(cls, args: Namespace | LLRNNLSTMConfig, task: FairseqTask) -> "LLRNNLSTMModel":
        """Build the model from the options and the task's prior.

        Raises:
            OptionError: a task without a prior, or options that exclude each other.
        """
        check_decoder(args, prior_of(task, "llrnn_lstm", "llrnn_translation"))
        source, target = task.source_dictionary, task.target_dictionary
        reader = recurrent_reader(args, task, args.encoder_bidirectional, args.reverse_source)
        context_size = reader.output_size if args.context_every_step else 0
        network = build_network(args, target, context_size)
        head = build_head(args, task, reader.output_size)
        decoder = AttentionDecoder(
            target,
            network,
            head,
            reader.output_size,
            _attention(args, reader.output_size),
            args.context_every_step,
            task.cfg.max_target_positions,
            args.bf16_products,
        )
        encoder = SourceEncoder(source, reader, task.cfg.max_source_positions, args.bf16_products)
        return cls(encoder, decoder)


def _attention(args: Namespace | LLRNNLSTMConfig, source_size: int) -> GlobalAttention | None:
    if args.attention == "none":
        return None
    if args.attention == "dot" and source_size != args.decoder_hidden_size:
        raise OptionError(
            f"--attention dot needs --decoder-hidden-size {source_size}, the width of the encoder's output, found "
            f"{args.decoder_hidden_size}; make them equal, or use --attention general"
        )
    return GlobalAttention(args.attention, args.decoder_hidden_size, source_size)


@register_model_architecture("llrnn_lstm", "llrnn_lstm_multi30k")
def multi30k(args: Namespace) -> None:
    """Set sizes for tens of thousands of short sentences, such as Multi30k."""
    set_defaults(args, encoder_bidirectional=True, decoder_layers=1, decoder_hidden_size=256, dropout=0.4)


@register_model_architecture("llrnn_lstm", "llrnn_lstm_iwslt")
def iwslt(args: Namespace) -> None:
    """Set sizes for hundreds of thousands of sentences, such as IWSLT."""
    set_defaults(
        args,
        encoder_embed_dim=512,
        encoder_hidden_size=256,
        encoder_layers=2,
        encoder_bidirectional=True,
        decoder_embed_dim=512,
        decoder_hidden_size=512,
        decoder_layers=2,
        dropout=0.3,
    )
