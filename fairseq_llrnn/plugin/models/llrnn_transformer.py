"""llrnn_transformer: fairseq's Transformer that ends in a log-linear layer.

fairseq's encoder and decoder are unchanged, except that the encoder's output has the source, and that embeddings may be
composed.
"""

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, field
from typing import Any

from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import (
    DEFAULT_MAX_SOURCE_POSITIONS,
    DEFAULT_MAX_TARGET_POSITIONS,
    TransformerConfig,
    TransformerDecoderBase,
    TransformerEncoderBase,
    TransformerModel,
    base_architecture,
    transformer_iwslt_de_en,
)
from torch import Tensor, nn

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.head.inputs import FeatureInput
from fairseq_llrnn.plugin.models.extensions import (
    HEAD,
    INPUT,
    SOURCE,
    Args,
    check_dropouts,
    check_sizes,
    input_of,
    takes,
)
from fairseq_llrnn.plugin.models.log_linear_decoder import (
    EncoderOut,
    HiddenStates,
    IncrementalState,
    LogLinearDecoder,
    LogLinearTranslationModel,
    encoder_input_ids,
    short_products,
)
from fairseq_llrnn.plugin.models.options import (
    BF16_PRODUCTS,
    LEARN_TEMPERATURE,
    LEXICAL_WARMUP,
    check_tied,
    head_options,
    prior_of,
    set_defaults,
    source_embedding,
    warm_up_lexicon,
)
from fairseq_llrnn.source_embedding import check_source_prior


class SourceKeepingEncoder(TransformerEncoderBase):
    """fairseq's encoder, with the source in its output for the background."""

    bf16_products = False

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
        token_embeddings: Tensor | None = None,
    ) -> EncoderOut:
        with short_products(self, src_tokens):
            read = encoder_input_ids(src_tokens, self.dictionary, self.embed_tokens)
            encoder_out = super().forward(read, src_lengths, return_all_hiddens, token_embeddings)
        encoder_out["src_tokens"] = [src_tokens]
        return encoder_out

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> dict[str, Tensor]:
        """Check the weights like fairseq. Raises an error for weights that were trained with another source prior."""
        check_source_prior(self.embed_tokens, state_dict, f"{name}.")
        return super().upgrade_state_dict_named(state_dict, name)


class TransformerLogLinearDecoder(LogLinearDecoder):
    """fairseq's decoder as the body, with a log-linear output."""

    def __init__(
        self,
        dictionary: Dictionary,
        body: TransformerDecoderBase,
        head: LogLinearHead,
        bf16_products: bool,
    ) -> None:
        super().__init__(dictionary, head, bf16_products)
        self.body = body
        self.attends = body.layers[-1].encoder_attn is not None

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> HiddenStates:
        embedding = self.body.embed_tokens
        if isinstance(embedding, PaddedFeatureEmbedding):
            embedding.table = self.input_rows(incremental_state)
        begin = previous.size(1)  # only the last position
        if incremental_state is not None and (search := self.search(incremental_state)).network is None:
            search.network, begin = previous[:, :0], 1  # fairseq's layers need one step per position of a prefix
        for end in range(begin, previous.size(1) + 1):
            hidden, extra = self.body.extract_features(previous[:, :end], encoder_out, incremental_state)
        return HiddenStates(hidden, extra["attn"][0])

    def max_positions(self) -> int:
        return self.body.max_positions()


class PaddedFeatureEmbedding(nn.Module):
    """The head's embeddings in place of the table of words that fairseq's decoder expects. Padding is the zero vector.

    `table` has the composed rows in a search. The decoder above sets it.
    """

    table: Tensor | None

    def __init__(self, head: LogLinearHead, embedding_dim: int, padding_idx: int) -> None:
        super().__init__()
        self._embed = head.embed  # the method only: the head is a submodule of the decoder
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx

    def forward(self, tokens: Tensor) -> Tensor:
        return self._embed(tokens, self.table) * tokens.ne(self.padding_idx).unsqueeze(-1)


# options of fairseq for an output matrix with a row per word, which composed rows do not have; and lists of layers,
# which fairseq reads wrongly
REFUSED = {
    "share_decoder_input_output_embed": "use --tie-features with --feature-input to share feature weights",
    "share_all_embeddings": "use --tie-features with --feature-input to share the target's feature weights",
    "merge_src_tgt_embed": "build joint dictionaries with fairseq-preprocess --joined-dictionary",
    "adaptive_softmax_cutoff": "the log-linear layer replaces the softmax",
    "tie_adaptive_weights": "the log-linear layer replaces the softmax",
    "tie_adaptive_proj": "the log-linear layer replaces the softmax",
    "encoder_layers_to_keep": "train a model with fewer --encoder-layers",
    "decoder_layers_to_keep": "train a model with fewer --decoder-layers",
}


@dataclass
@takes(HEAD, INPUT, SOURCE)
class LLRNNTransformerConfig(FairseqDataclass):
    """Options in addition to those of fairseq's Transformer."""

    feature_input: bool = field(
        default=False,
        metadata={"help": "the decoder reads words by their features (ψ) instead of a table of words"},
    )
    tie_features: bool = field(
        default=False,
        metadata={"help": "one table of feature weights for input (ψ) and output (φ); needs --feature-input"},
    )
    bf16_products: bool = field(default=False, metadata=BF16_PRODUCTS)
    learn_background_temperature: bool = field(default=False, metadata=LEARN_TEMPERATURE)
    lexical_warmup_updates: int = field(default=0, metadata=LEXICAL_WARMUP)


@register_model("llrnn_transformer")
class LLRNNTransformerModel(LogLinearTranslationModel, TransformerModel):
    """p(x | C, prefix) ∝ b(C, x) exp(a(K)ᵀφ(x)) over fairseq's Transformer."""

    decoder: TransformerLogLinearDecoder

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        super().add_args(parser)
        gen_parser_from_dataclass(parser, LLRNNTransformerConfig())

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> "LLRNNTransformerModel":
        """Build the model from the options and the task's prior.

        Raises:
            OptionError: a task without a prior, options that exclude each other, or options of fairseq's output.
        """
        prior = prior_of(task, "llrnn_transformer", "llrnn_translation")
        base_architecture(args)
        set_defaults(args, feature_input=False, tie_features=False, bf16_products=False)  # older checkpoints lack some
        for name, advice in REFUSED.items():
            if getattr(args, name, None):
                raise OptionError(f"--{name.replace('_', '-')}: not supported by llrnn_transformer; {advice}")
        for side in ("encoder", "decoder"):
            check_transformer(args, side)
        cfg = _configuration(args)
        if args.tie_features and not args.feature_input:
            raise OptionError("--tie-features needs --feature-input; add it, or remove --tie-features")
        if args.tie_features:
            check_tied(args, prior, "decoder_output_dim")
        width = cfg.decoder.embed_dim
        features = FeatureInput(width, args.tie_features, input_rms(cfg, width)) if args.feature_input else None
        reads = input_of(args, features, width, input_rms(cfg, width))
        if reads is not None and args.decoder_embed_path:
            raise OptionError(
                "--decoder-embed-path needs a decoder that reads a table of words; remove --decoder-embed-path or "
                f"{reads.option}"
            )
        source, target = task.source_dictionary, task.target_dictionary
        head = LogLinearHead(
            prior,
            cfg.decoder.output_dim,
            embedding=reads,
            source_size=cfg.encoder.embed_dim,
            **head_options(args, task),
        )
        warm_up_lexicon(args, head)
        read: nn.Module
        if reads is not None:
            read = PaddedFeatureEmbedding(head, width, target.pad())
        else:
            read = cls.build_embedding(args, target, width, cfg.decoder.embed_path)
        composed_source = source_embedding(args, task, cfg.encoder.embed_dim, input_rms(cfg, cfg.encoder.embed_dim))
        if composed_source is not None and args.encoder_embed_path:
            raise OptionError(
                "--encoder-embed-path needs an encoder that reads a table of words; remove --encoder-embed-path, or "
                "the option that replaces the table, such as --source-prior"
            )
        written: nn.Module = composed_source or cls.build_embedding(
            args, source, cfg.encoder.embed_dim, cfg.encoder.embed_path
        )
        body = TransformerDecoderBase(
            cfg, target, read, no_encoder_attn=cfg.no_cross_attention, output_projection=nn.Identity()
        )
        encoder = SourceKeepingEncoder(cfg, source, written)
        encoder.bf16_products = args.bf16_products
        decoder = TransformerLogLinearDecoder(target, body, head, args.bf16_products)
        return cls(args, encoder, decoder)


def check_transformer(args: Args, side: str) -> None:
    """Raise OptionError for invalid sizes and probabilities. side: "encoder" or "decoder"."""
    check_sizes(args, *(f"{side}_{name}" for name in ("embed_dim", "ffn_embed_dim", "layers", "attention_heads")))
    width, heads = getattr(args, f"{side}_embed_dim"), getattr(args, f"{side}_attention_heads")
    if width % heads:
        raise OptionError(
            f"--{side}-embed-dim {width}: expected a multiple of --{side}-attention-heads {heads}; change one"
        )
    dropouts = "dropout", "attention_dropout", "activation_dropout", "relu_dropout", f"{side}_layerdrop"
    check_dropouts(args, *dropouts)


def input_rms(cfg: TransformerConfig, width: int) -> float | None:
    """Return the initial root mean square of the elements of an input that fairseq multiplies by the root of its width,
    or None if it does not.
    """
    return None if cfg.no_scale_embedding else float(width**-0.5)


def _configuration(args: Namespace) -> TransformerConfig:
    """Return fairseq's structure of its options, completed like in its own `build_model`."""
    for name, default in (
        ("max_source_positions", DEFAULT_MAX_SOURCE_POSITIONS),
        ("max_target_positions", DEFAULT_MAX_TARGET_POSITIONS),
    ):
        if getattr(args, name, None) is None:
            setattr(args, name, default)
    for name in ("decoder_input_dim", "decoder_output_dim"):  # strings in fairseq, with references to other options
        setattr(args, name, int(getattr(args, name)))
    return TransformerConfig.from_namespace(args)


register_model_architecture("llrnn_transformer", "llrnn_transformer")(base_architecture)
# for hundreds of thousands of sentences
register_model_architecture("llrnn_transformer", "llrnn_transformer_iwslt")(transformer_iwslt_de_en)


@register_model_architecture("llrnn_transformer", "llrnn_transformer_multi30k")
def multi30k(args: Namespace) -> None:
    """Set sizes for tens of thousands of short sentences, such as Multi30k (Wu et al. 2021, Transformer-tiny)."""
    for side in ("encoder", "decoder"):
        sizes = {"embed_dim": 128, "ffn_embed_dim": 256, "layers": 4, "attention_heads": 4}
        set_defaults(args, **{f"{side}_{name}": value for name, value in sizes.items()})
    set_defaults(args, dropout=0.3)
    base_architecture(args)
