"""What the system adds to our models: options of words that are read by their characters, and what reads them so.

    presets.py       named architectures that are llrnn_lm with these options
    word_vectors.py  the head of a trained model, for questions about what it reads
"""

from argparse import Namespace
from dataclasses import Field, dataclass, field
from typing import Any, ClassVar, cast

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import register_model_architecture
from torch import nn

from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.head.embedding import FeatureInput, InputOf
from fairseq_llrnn.plugin.announced import announce
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS, INPUT, SOURCE, Args, Extension, own_options
from fairseq_llrnn.systems.characters.network import MOST_LAYERS, SMALL, CharacterOptions, parse_filters, written

NONE, CNN = "none", "cnn"
ONLY, ADD = "only", "add"
MLP = "mlp"
READERS = ("input_characters", "source_characters")  # options that ask for a network over characters


@dataclass
class CharacterSizes(FairseqDataclass):
    """Options of every network that reads characters, on either side; the defaults are the thesis' small model."""

    character_embed_dim: int = field(default=15, metadata={"help": "width of a character's embedding"})
    character_filters: str = field(
        default=written(SMALL), metadata={"help": "widths of the convolutions, and how many filters each width has"}
    )
    highway_layers: str = field(
        default="1",
        metadata={"help": "number of highway layers behind the convolutions; `mlp`: one plain layer in their place"},
    )


@dataclass
class CharacterConfig(CharacterSizes):
    """Options of a model whose input may be read by characters."""

    input_characters: ChoiceEnum([NONE, CNN]) = field(  # type: ignore[valid-type]
        default=NONE,
        metadata={"help": "`cnn`: the network reads words by their characters (convolutions and highway layers)"},
    )
    character_mode: ChoiceEnum([ONLY, ADD]) = field(  # type: ignore[valid-type]
        default=ONLY,
        metadata={"help": "`only`: characters take the place of the features ψ; `add`: both are read, and added"},
    )


@dataclass
class SourceCharacterConfig(CharacterSizes):
    """Options of a model whose source may be read by characters."""

    source_characters: ChoiceEnum([NONE, CNN]) = field(  # type: ignore[valid-type]
        default=NONE,
        metadata={
            "help": "`cnn`: the encoder reads source words by their characters, also those that its dictionary lacks; "
            "beside --source-prior, both are read, and added; --character-embed-dim, --character-filters and "
            "--highway-layers are its sizes, too"
        },
    )


SIZES = own_options(CharacterSizes)
INPUT_ONLY = [option for option in own_options(CharacterConfig) if option.name == "character_mode"]


class Characters(Extension):
    """Words that are read by their characters, on either side."""

    options: ClassVar = {INPUT: CharacterConfig, SOURCE: SourceCharacterConfig}
    modules: ClassVar = {"characters": "--input-characters: expected cnn"}

    def embedding(self, args: Args, features: InputOf | None, size: int | None) -> InputOf | None:
        """Options of sizes hold for the source as well. Older checkpoints lack them."""
        options = _options(args, size, "input_characters", INPUT_ONLY)
        if options is None:
            return None
        add = getattr(args, "character_mode", ONLY) == ADD
        if add and features is None:
            raise OptionError(
                "--character-mode add: expected --feature-input beside it, found none; give it, so that features are "
                "read"
            )
        if not add and getattr(args, "feature_input", False):
            raise OptionError(
                "--feature-input: expected --character-mode add beside --input-characters, which reads characters "
                "only; give it, or leave --feature-input out"
            )
        if not add and getattr(args, "tie_features", False):
            raise OptionError(
                "--tie-features: expected a network that reads features, found --input-characters cnn, which reads "
                "characters only; give --character-mode add, or leave one of them out"
            )
        from fairseq_llrnn.systems.characters.input import CharacterInput

        return CharacterInput(options, cast("FeatureInput | None", features) if add else None)

    def source_embedding(self, args: Args, task: Any, size: int) -> nn.Module | None:
        options = _options(args, size, "source_characters", [])
        if options is None:
            return None
        both = getattr(args, "input_characters", NONE) == CNN
        from fairseq_llrnn.systems.characters.embedding import CharacterEmbedding
        from fairseq_llrnn.systems.characters.source import SourceCharacters

        kind = SourceCharacters if both else CharacterEmbedding
        return kind(task.source_words, options, task.source_dictionary.pad())


def _options(
    args: Namespace | FairseqDataclass, size: int | None, reader: str, own: list[Field[Any]]
) -> CharacterOptions | None:
    """reader: the option that says whether there is the network. own: options that speak of it alone."""
    if getattr(args, reader, NONE) == NONE:
        _refuse_idle(args, own, [reader])
        _refuse_idle(args, SIZES, [name for name in READERS if hasattr(args, name)])
        return None
    given: dict[str, Any] = {option.name: getattr(args, option.name, option.default) for option in SIZES}
    width, layers = given["character_embed_dim"], str(given["highway_layers"])
    check_least("--character-embed-dim", width, 1)
    if layers != MLP and not (layers.isdecimal() and len(layers) < 4 and int(layers) <= MOST_LAYERS):
        raise OptionError(f"--highway-layers {layers}: expected a number from 0 to {MOST_LAYERS}, or {MLP}")
    filters = parse_filters(given["character_filters"])
    return CharacterOptions(width, filters, 0 if layers == MLP else int(layers), layers == MLP, size)


def _refuse_idle(args: Namespace | FairseqDataclass, options: list[Field[Any]], readers: list[str]) -> None:
    """Raise OptionError where options are given and none of the networks that they speak of is there."""
    if any(getattr(args, reader, NONE) != NONE for reader in readers):
        return
    for option in options:
        value = getattr(args, option.name, option.default)
        if value != option.default:
            wanted = " or ".join(f"--{reader.replace('_', '-')} {CNN}" for reader in readers)
            raise OptionError(
                f"--{option.name.replace('_', '-')} {value}: expected {wanted} beside it, found none; give "
                f"{'one' if len(readers) > 1 else 'it'}, or leave this option out"
            )


EXTENSIONS.append(Characters())
announce(register_model_architecture, f"{__name__}.presets", "llrnn_lm_char_small", "llrnn_lm_char_large")
