"""What our decoders are told on the command line, and what is built from it: heads, networks, encoders' embeddings.

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
    "help": "the network chooses how far n-grams or an automaton count, by a power of their masses that depends on its "
    "state and on the signature, and begins at 1"
}
LEXICAL_WARMUP = {
    "help": "in the first N updates, training hides the prior's lexical translations from some sentences, from all at "
    "first and from none after N, so that the network learns where to look (over pieces: a third of the updates)"
}
BF16_PRODUCTS = {
    "help": "train with bfloat16 products, also on a CPU (where fairseq's --bf16 does not run); weights, sums over "
    "the vocabulary and evaluation stay in float32, and so do products of a processor without AVX-512"
}
HIDDEN_SIZE = "decoder_hidden_size"  # the option that says how wide the head's input is, where no other does


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
            "help": "begin with a = 0: before the first update the model is its background, from which training then "
            "departs (for little text, or a background that is a good model already)"
        },
    )
    learn_background_temperature: bool = field(default=False, metadata=LEARN_TEMPERATURE)
    bf16_products: bool = field(default=False, metadata=BF16_PRODUCTS)


@dataclass
class DecoderConfig(HeadConfig):
    """Options of a decoder that reads words by features and has a head of its own."""

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
    """The prior of the task, which must be `right_task`. Raises OptionError for any other."""
    prior, kind = getattr(task, "prior", None), find_task(right_task)
    if not (isinstance(prior, Prior) and kind is not None and isinstance(task, kind)):
        raise OptionError(
            f"a model {arch} needs --task {right_task} --prior DIR, found the task {name_of_task(task)}; "
            f"{other_model()}"
        )
    return prior


def set_defaults(args: Namespace, **values: object) -> None:
    """Of a named architecture: values of the options that are not given."""
    for name, value in values.items():
        setattr(args, name, getattr(args, name, value))


def dropouts(args: Namespace | RecurrentDecoderConfig) -> dict[str, Any]:
    """What recurrent networks are told of dropout."""
    p, of_input = args.dropout, args.dropout_in
    return {
        "dropout_in": p if of_input is None else of_input, "dropout_between": p, "dropout_out": p,
        "variational": args.variational_dropout,
    }  # fmt: skip


def build_network(
    args: Namespace | RecurrentDecoderConfig, dictionary: Dictionary, beside: int = 0
) -> RecurrentNetwork:
    """The network of a recurrent decoder.

    Args:
        dictionary: of the words that it reads. beside: the width of what it reads beside each of them.
    """
    check_sizes(args, "decoder_layers")
    network = RecurrentNetwork(
        beside + read_by(args).size,
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
    beside: int | None = None,
    normalised: bool = False,
) -> LogLinearHead:
    """The head of such a decoder, with embeddings.

    Args:
        task: with its prior.
        source_size: the width of the encoder's states, if any. output: the option that says how wide its input is.
        beside: the width of what the model can hand over beside its hidden states; None: nothing.
        normalised: whether hidden states, and embeddings times the root of their width, are to have unit variance.
    """
    scale = 1.0 if normalised else None
    head = LogLinearHead(
        task.prior,
        getattr(args, output),
        embedding=read_by(args, args.decoder_embed_dim**-0.5 if normalised else None),
        source_size=source_size,
        initial_scale=0.0 if getattr(args, "start_at_background", False) else scale,
        **parts_of_head(args, task, beside),
    )
    warm_up_lexicon(args, head)
    return head


def read_by(args: Namespace | DecoderConfig, row_rms: float | None = None) -> InputOf:
    """What such a decoder reads words by: their features, or what an extension says. row_rms: of FeatureInput."""
    features = FeatureInput(args.decoder_embed_dim, args.tie_features, row_rms)
    return input_of(args, features) or features


def parts_of_head(args: Namespace | FairseqDataclass, task: Any, beside: int | None = None) -> dict[str, Any]:
    """What options say of a head's classes, masses and normaliser: arguments of LogLinearHead.

    Args:
        task, beside: as of `build_head`.
    """
    arguments = all_head_arguments(args, task, beside)
    if getattr(args, "learn_background_temperature", False):
        from fairseq_llrnn.output.learned_temperature import learned_temperature

        check_single_maker(arguments, {"class_weights": learned_temperature})
        arguments["class_weights"] = learned_temperature
    return arguments


def warm_up_lexicon(args: Namespace | FairseqDataclass, head: LogLinearHead) -> None:
    """Do what --lexical-warmup-updates says, which old checkpoints lack.

    Raises:
        OptionError: a number below 0, or a background without lexical translations.
    """
    updates = getattr(args, "lexical_warmup_updates", 0)
    if updates < 0:
        raise OptionError(
            f"--lexical-warmup-updates {updates}: expected 0 or a number of updates, e.g. a third of the training's"
        )
    if not updates:
        return
    from fairseq_llrnn.backgrounds.lexical import LexicalBackground

    lexicon = next((part for part in head.background.modules() if isinstance(part, LexicalBackground)), None)
    if lexicon is None:
        raise OptionError(
            f"--lexical-warmup-updates {updates}: expected a prior with lexical translations, found one without; "
            "build it with `llrnn prior --lexical-translation`, or leave the option out"
        )
    lexicon.warm_up(updates)


def check_decoder(args: Namespace | DecoderConfig, prior: Prior, output: str = HIDDEN_SIZE) -> None:
    """Raise OptionError for values out of range and options that exclude each other. output: as of `build_head`."""
    check_sizes(args, *(name for name in ("decoder_embed_dim", HIDDEN_SIZE, output) if hasattr(args, name)))
    check_dropouts(args, "dropout", "dropout_in")
    if not args.tie_features:
        return
    if getattr(args, "start_at_background", False):
        raise OptionError(
            "--start-at-background: the feature weights of the output begin with zeros, and with --tie-features those "
            "of the input would as well; leave out one of them"
        )
    check_tied(args, prior, output)


def check_tied(args: Namespace | DecoderConfig, prior: Prior, output: str) -> None:
    """Raise OptionError where φ and ψ cannot share weights: other widths, or other features."""
    width = getattr(args, output)
    if args.decoder_embed_dim != width:
        raise OptionError(
            f"--tie-features: expected equal --decoder-embed-dim and --{output.replace('_', '-')}, found "
            f"{args.decoder_embed_dim} and {width}; make them equal"
        )
    if prior.input.features.names != prior.output.features.names:
        raise OptionError(
            "--tie-features: expected the same features in input and output, but the prior was built with other "
            "input_features; build it without them, or do not tie"
        )


@dataclass
@takes(SOURCE)
class SourceConfig(FairseqDataclass):
    """Options of models with an encoder."""


def source_embedding(args: Namespace | FairseqDataclass, task: Any, size: int) -> nn.Module | None:
    """The embedding of the encoder, by --source-prior and extensions; None: a table with a row per word.

    Args:
        size: the width of its vectors.
    """
    by_extension = [extension.source_embedding(args, task, size) for extension in EXTENSIONS]
    embeddings = [embedding for embedding in by_extension if embedding is not None]
    if len(embeddings) > 1:
        raise OptionError("expected one option for the embedding of the encoder, found several; leave one out")
    beside = embeddings[0] if embeddings else None
    prior = getattr(task, "source_prior", None)
    return beside if prior is None else SourceEmbedding(prior, size, beside)
