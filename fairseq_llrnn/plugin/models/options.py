"""Command-line options of our decoders, and what is built from them: heads, networks, encoders' embeddings.

The embedding of an encoder is a table with a row per word, features of a source prior, or that of an extension.
"""

from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any, Optional  # fairseq reads Optional[X] from its dataclasses, and not X | None

from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.tasks import FairseqTask
from torch import nn

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.head.inputs import FeatureInput, InputOf
from fairseq_llrnn.networks.recurrent import RecurrentNetwork, all_cells
from fairseq_llrnn.plugin.compat.option_checks import other_model
from fairseq_llrnn.plugin.models.extensions import (
    EXTENSIONS,
    HEAD,
    INPUT,
    RECURRENT,
    SOURCE,
    all_head_arguments,
    check_dropouts,
    check_single_maker,
    check_sizes,
    input_of,
    takes,
)
from fairseq_llrnn.plugin.names import find_task, name_of_task
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.source_embedding import SourceEmbedding

OF_CELLS = (f"; {name}: {cell.about}" for name, cell in all_cells().items() if cell.about)
CELL = {"help": "".join(["kind of recurrent cell", *OF_CELLS])}
LEARN_TEMPERATURE = {
    "help": "learn the influence of n-grams, an automaton or a cache: a power of their class weights that depends on "
    "the network's state and on the signature, initially 1"
}
LEXICAL_WARMUP = {
    "help": "hide the prior's lexical translations from some training sentences: from all at first, from none after N "
    "updates, so that the network learns to attend (over pieces, use a third of the updates)"
}
BF16_PRODUCTS = {
    "help": "train with bfloat16 products, also on a CPU (where fairseq's --bf16 does not run). Weights, sums over "
    "the vocabulary and evaluation stay in float32, and so do products on a processor without AVX-512"
}
HIDDEN_SIZE = "decoder_hidden_size"  # the default option for the width of the head's input


@dataclass
@takes(HEAD, INPUT)
class HeadConfig(FairseqDataclass):
    """Options of a head that also reads words by features."""

    tie_features: bool = field(
        default=False, metadata={"help": "one table of feature weights for input (ψ) and output (φ)"}
    )
    start_at_background: bool = field(
        default=False,
        metadata={
            "help": "start with a = 0: before the first update the model equals its background (for little text, or a "
            "background that is a good model already)"
        },
    )
    learn_background_temperature: bool = field(default=False, metadata=LEARN_TEMPERATURE)
    bf16_products: bool = field(default=False, metadata=BF16_PRODUCTS)


@dataclass
class DecoderConfig(HeadConfig):
    """Options of a decoder that reads words by features and has its own head."""

    decoder_embed_dim: int = field(default=256, metadata={"help": "width of the input embeddings"})
    decoder_hidden_size: int = field(default=256, metadata={"help": "width of the hidden states"})
    dropout: float = field(default=0.0, metadata={"help": "dropout on input and output"})


@dataclass
@takes(RECURRENT)
class RecurrentDecoderConfig(DecoderConfig):
    """Options of a recurrent decoder."""

    cell: ChoiceEnum(list(all_cells())) = field(  # type: ignore[valid-type]
        default="lstm", metadata=CELL
    )
    decoder_hidden_size: int = field(default=256, metadata={"help": "width of the recurrent layers"})
    decoder_layers: int = field(default=2, metadata={"help": "number of recurrent layers"})
    dropout: float = field(default=0.0, metadata={"help": "dropout on input, between layers and on output"})
    dropout_in: Optional[float] = field(default=None, metadata={"help": "dropout on the input (default: --dropout)"})
    variational_dropout: bool = field(
        default=False, metadata={"help": "one dropout mask for all time steps of a sequence"}
    )
    layer_norm: bool = field(default=False, metadata={"help": "layer normalisation after each recurrent layer"})


def prior_of(task: FairseqTask, arch: str, right_task: str) -> Prior:
    """Return the prior of a task, which must be `right_task`. Raises OptionError for any other task."""
    prior, kind = getattr(task, "prior", None), find_task(right_task)
    if not (isinstance(prior, Prior) and kind is not None and isinstance(task, kind)):
        raise OptionError(
            f"a model {arch} needs --task {right_task} --prior DIR, found the task {name_of_task(task)}; "
            f"{other_model()}"
        )
    return prior


def set_defaults(args: Namespace, **values: object) -> None:
    """Set the options of a named architecture that the user did not set."""
    for name, value in values.items():
        setattr(args, name, getattr(args, name, value))


def dropouts(args: Namespace | RecurrentDecoderConfig) -> dict[str, Any]:
    """Return the dropout arguments of recurrent networks."""
    p, p_in = args.dropout, args.dropout_in
    return {
        "dropout_in": p if p_in is None else p_in, "dropout_between": p, "dropout_out": p,
        "variational": args.variational_dropout,
    }  # fmt: skip


def build_network(
    args: Namespace | RecurrentDecoderConfig, dictionary: Dictionary, extra_size: int = 0
) -> RecurrentNetwork:
    """Build the network of a recurrent decoder.

    Args:
        dictionary: of the words that it reads.
        extra_size: width of the further input at each position.
    """
    check_sizes(args, "decoder_layers")
    network = RecurrentNetwork(
        extra_size + input_embedding(args).size,
        args.decoder_hidden_size,
        args.decoder_layers,
        args.cell,
        **dropouts(args),
        layer_norm=args.layer_norm,
    )
    for extension in EXTENSIONS:
        extension.set_up_network(args, network, dictionary)
    return network


def build_head(
    args: Namespace | DecoderConfig,
    task: Any,
    source_size: int | None = None,
    output: str = HIDDEN_SIZE,
    normalised: bool = False,
) -> LogLinearHead:
    """Build the head of such a decoder, with embeddings.

    Args:
        task: it has a prior.
        source_size: width of the encoder's states, if any.
        output: the option with the width of the head's input.
        normalised: whether hidden states, and embeddings times the root of their width, have unit variance at the
            start.
    """
    scale = 1.0 if normalised else None
    head = LogLinearHead(
        task.prior,
        getattr(args, output),
        embedding=input_embedding(args, args.decoder_embed_dim**-0.5 if normalised else None),
        source_size=source_size,
        initial_scale=0.0 if getattr(args, "start_at_background", False) else scale,
        **head_options(args, task),
    )
    warm_up_lexicon(args, head)
    return head


def input_embedding(args: Namespace | DecoderConfig, row_rms: float | None = None) -> InputOf:
    """Return the embedding of such a decoder: features, or that of an extension. row_rms: as for FeatureInput."""
    features = FeatureInput(args.decoder_embed_dim, args.tie_features, row_rms)
    return input_of(args, features, row_rms=row_rms) or features


def head_options(args: Namespace | FairseqDataclass, task: Any) -> dict[str, Any]:
    """Return arguments of LogLinearHead from the options: classes, class weights and normaliser."""
    arguments = all_head_arguments(args, task)
    if getattr(args, "learn_background_temperature", False):
        from fairseq_llrnn.output.learned_temperature import learned_temperature

        check_single_maker(arguments, {"mass_change": learned_temperature})
        arguments["mass_change"] = learned_temperature
    return arguments


def warm_up_lexicon(args: Namespace | FairseqDataclass, head: LogLinearHead) -> None:
    """Apply --lexical-warmup-updates, which old checkpoints lack.

    Raises:
        OptionError: a number below 0, or a background without lexical translations.
    """
    updates = getattr(args, "lexical_warmup_updates", 0)
    if updates < 0:
        raise OptionError(
            f"--lexical-warmup-updates {updates}: expected 0 or a number of updates, e.g. a third of all updates"
        )
    if not updates:
        return
    from fairseq_llrnn.backgrounds.lexical_background import LexicalBackground

    lexicon = next((part for part in head.background.modules() if isinstance(part, LexicalBackground)), None)
    if lexicon is None:
        raise OptionError(
            f"--lexical-warmup-updates {updates}: expected a prior with lexical translations, found one without; "
            "build it with `llrnn prior --lexical-translation`, or remove the option"
        )
    lexicon.warm_up(updates)


def check_decoder(args: Namespace | DecoderConfig, prior: Prior, output: str = HIDDEN_SIZE) -> None:
    """Raise OptionError for values out of range and options that exclude each other. output: as for `build_head`."""
    check_sizes(args, *(name for name in ("decoder_embed_dim", HIDDEN_SIZE, output) if hasattr(args, name)))
    check_dropouts(args, "dropout", "dropout_in")
    if not args.tie_features:
        return
    if getattr(args, "start_at_background", False):
        raise OptionError(
            "--start-at-background and --tie-features exclude each other: the feature weights of the input would "
            "start at zero, too; remove one of them"
        )
    check_tied(args, prior, output)


def check_tied(args: Namespace | DecoderConfig, prior: Prior, output: str) -> None:
    """Raise OptionError if φ and ψ cannot share weights: their widths or features differ."""
    width = getattr(args, output)
    if args.decoder_embed_dim != width:
        raise OptionError(
            f"--tie-features: expected equal --decoder-embed-dim and --{output.replace('_', '-')}, found "
            f"{args.decoder_embed_dim} and {width}; make them equal"
        )
    if prior.input.features.names != prior.output.features.names:
        raise OptionError(
            "--tie-features needs the same features in input and output, but the prior was built with other "
            "input_features; build it without them, or remove --tie-features"
        )


@dataclass
@takes(SOURCE)
class SourceConfig(FairseqDataclass):
    """Options of models with an encoder."""


def source_embedding(
    args: Namespace | FairseqDataclass, task: Any, size: int, row_rms: float | None = None
) -> nn.Module | None:
    """Return the embedding of the encoder, from --source-prior and extensions, or None for a table.

    Args:
        size: width of its vectors. row_rms: as for `Extension.embedding`.
    """
    by_extension = [extension.source_embedding(args, task, size, row_rms) for extension in EXTENSIONS]
    embeddings = [embedding for embedding in by_extension if embedding is not None]
    if len(embeddings) > 1:
        raise OptionError("expected one option for the embedding of the encoder, found several; remove all but one")
    embedding = embeddings[0] if embeddings else None
    prior = getattr(task, "source_prior", None)
    return embedding if prior is None else SourceEmbedding(prior, size, embedding, row_rms)
