"""llrnn_transformer_lm: a language model over fairseq's Transformer decoder that ends in a log-linear layer.

The decoder is that of llrnn_transformer without an encoder. It reads words by their features, and positions by
sinusoids, without a maximum length. Sizes and defaults are those of fairseq's transformer_lm.
"""

from argparse import Namespace
from dataclasses import dataclass, field

from fairseq import utils
from fairseq.dataclass import ChoiceEnum
from fairseq.models import FairseqLanguageModel, register_model, register_model_architecture
from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from fairseq_llrnn.plugin.models.llrnn_transformer import (
    PaddedFeatureEmbedding,
    TransformerLogLinearDecoder,
    check_transformer,
)
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder, LogLinearModel
from fairseq_llrnn.plugin.models.options import HeadConfig, build_head, check_decoder, prior_of, set_defaults

WIDTH = "decoder_embed_dim"  # of the input, the hidden states, and the head


@dataclass
class LLRNNTransformerLMConfig(HeadConfig):
    """Options of llrnn_transformer_lm."""

    decoder_embed_dim: int = field(default=512, metadata={"help": "width of the embeddings and hidden states"})
    decoder_ffn_embed_dim: int = field(default=2048, metadata={"help": "width of the feed-forward layers"})
    decoder_layers: int = field(default=6, metadata={"help": "number of blocks"})
    decoder_attention_heads: int = field(default=8, metadata={"help": "number of attention heads"})
    decoder_normalize_before: bool = field(
        default=False, metadata={"help": "layer normalisation before each block and after the last one (pre-norm)"}
    )
    activation_fn: ChoiceEnum(utils.get_available_activation_fns()) = field(  # type: ignore[valid-type]
        default="relu", metadata={"help": "activation of the feed-forward layers"}
    )
    dropout: float = field(default=0.1, metadata={"help": "dropout on the input and after each block"})
    attention_dropout: float = field(default=0.0, metadata={"help": "dropout on attention weights"})
    activation_dropout: float = field(default=0.0, metadata={"help": "dropout inside the feed-forward layers"})


class TransformerLMDecoder(TransformerLogLinearDecoder):
    """A decoder without a maximum length."""

    max_positions = LogLinearDecoder.max_positions


@register_model("llrnn_transformer_lm", dataclass=LLRNNTransformerLMConfig)
class LLRNNTransformerLanguageModel(LogLinearModel, FairseqLanguageModel):
    """p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)) over fairseq's Transformer decoder (Vaswani et al. 2017)."""

    decoder: TransformerLMDecoder

    @classmethod
    def build_model(
        cls, args: Namespace | LLRNNTransformerLMConfig, task: FairseqTask
    ) -> "LLRNNTransformerLanguageModel":
        """Build the model from the options and the task's prior.

        Raises:
            OptionError: a task without a prior, values out of range, or options that exclude each other.
        """
        check_decoder(args, prior_of(task, "llrnn_transformer_lm", "llrnn_language_modeling"), WIDTH)
        check_transformer(args, "decoder")
        head, words = build_head(args, task, output=WIDTH, normalised=True), task.dictionary
        cfg = TransformerConfig(
            activation_fn=args.activation_fn,
            dropout=args.dropout,
            attention_dropout=args.attention_dropout,
            activation_dropout=args.activation_dropout,
        )
        for name in ("embed_dim", "ffn_embed_dim", "layers", "attention_heads", "normalize_before"):
            setattr(cfg.decoder, name, getattr(args, f"decoder_{name}"))
        cfg.decoder.output_dim = args.decoder_embed_dim
        read = PaddedFeatureEmbedding(head, head.embed_size, words.pad())
        body = TransformerDecoderBase(cfg, words, read, no_encoder_attn=True, output_projection=nn.Identity())
        return cls(TransformerLMDecoder(words, body, head, args.bf16_products))

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Add the factor of a character input, with which it was trained before checkpoints stored it."""
        super().upgrade_state_dict_named(state_dict, name)
        for key, value in self.state_dict().items():
            if key.endswith(".characters.scale"):
                state_dict.setdefault(key, value)


@register_model_architecture("llrnn_transformer_lm", "llrnn_transformer_lm_small")
def small(args: Namespace) -> None:
    """Set sizes for about a million words: two blocks, 256 wide."""
    set_defaults(args, decoder_embed_dim=256, decoder_ffn_embed_dim=1024, decoder_layers=2, decoder_attention_heads=4)


@register_model_architecture("llrnn_transformer_lm", "llrnn_transformer_lm_big")
def big(args: Namespace) -> None:
    """Set the sizes of fairseq's transformer_lm_big. Training is unstable without its pre-norm."""
    set_defaults(
        args,
        decoder_embed_dim=1024,
        decoder_ffn_embed_dim=4096,
        decoder_layers=12,
        decoder_attention_heads=16,
        decoder_normalize_before=True,
    )
