"""Options of our models for words represented by their characters.

    presets.py  named architectures: llrnn_lm with these options
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import nn

from fairseq_llrnn.errors import OptionError, check_least, check_unused_options
from fairseq_llrnn.head.inputs import FeatureInput, InputOf
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS, INPUT, SOURCE, Args, Extension, non_default_options
from fairseq_llrnn.plugin.names import announce
from fairseq_llrnn.systems.characters.network import MOST_LAYERS, SMALL, CharacterOptions, format_filters, parse_filters

NONE, CNN = "none", "cnn"
ONLY, ADD = "only", "add"
READERS = ("input_characters", "source_characters")  # options that select a network over characters
ALONE = "it needs {}; add {}, or leave this option out"  # for its other options


@dataclass
class CharacterSizes(FairseqDataclass):
    """Options of every network over characters, on either side. The defaults are the thesis' small model."""

    character_embed_dim: int = field(default=15, metadata={"help": "width of a character's embedding"})
    character_filters: str = field(
        default=format_filters(SMALL), metadata={"help": "widths of the convolutions, each with its number of filters"}
    )
    highway_layers: str = field(default="1", metadata={"help": "number of highway layers after the convolutions"})


@dataclass
class CharacterConfig(CharacterSizes):
    """Options of a model with character input."""

    input_characters: ChoiceEnum([NONE, CNN]) = field(  # type: ignore[valid-type]
        default=NONE,
        metadata={"help": "`cnn`: represent input words by their characters (convolutions and highway layers)"},
    )
    character_mode: ChoiceEnum([ONLY, ADD]) = field(  # type: ignore[valid-type]
        default=ONLY,
        metadata={"help": "`only`: characters replace the features ψ; `add`: the vectors of both are added"},
    )


@dataclass
class SourceCharacterConfig(CharacterSizes):
    """Options of a model with character input on the source side."""

    source_characters: ChoiceEnum([NONE, CNN]) = field(  # type: ignore[valid-type]
        default=NONE,
        metadata={
            "help": "`cnn`: represent source words by their characters, including unknown words; with --source-prior, "
            "the vectors of both are added; sizes: --character-embed-dim, --character-filters and --highway-layers"
        },
    )


class Characters(Extension):
    """Words represented by their characters, on either side."""

    options: ClassVar = {INPUT: CharacterConfig, SOURCE: SourceCharacterConfig}
    modules: ClassVar = {"characters": "--input-characters: expected cnn"}

    def embedding(
        self, args: Args, features: InputOf | None, size: int | None, row_rms: float | None
    ) -> InputOf | None:
        """Return the input by characters. Older checkpoints lack options of sizes, which also apply to the source."""
        options = _options(args, size, "input_characters")
        if options is None:
            mode = non_default_options(args, CharacterConfig).get("character_mode")
            check_unused_options({"character_mode": mode}, ALONE.format("--input-characters cnn", "it"))
            return None
        add = getattr(args, "character_mode", ONLY) == ADD
        if add and features is None:
            raise OptionError("--character-mode add: it needs --feature-input; add it, or leave this option out")
        if not add and getattr(args, "feature_input", False):
            raise OptionError(
                "--feature-input: with --input-characters it needs --character-mode add; add it, or leave "
                "--feature-input out"
            )
        if not add and getattr(args, "tie_features", False):
            raise OptionError(
                "--tie-features: with --input-characters cnn it needs --character-mode add, because the input has no "
                "features; add it, or leave one of them out"
            )
        from fairseq_llrnn.systems.characters.input import CharacterInput

        return CharacterInput(options, cast("FeatureInput | None", features) if add else None, row_rms or 1.0)

    def source_embedding(self, args: Args, task: Any, size: int, row_rms: float | None) -> nn.Module | None:
        options = _options(args, size, "source_characters")
        if options is None:
            return None
        from fairseq_llrnn.systems.characters.network import CharacterEmbedding

        return CharacterEmbedding(task.source_words, options, task.source_dictionary.pad(), row_rms or 1.0)


def _options(args: Args, size: int | None, reader: str) -> CharacterOptions | None:
    """Return the options of a network over characters, or None. reader: the option that selects the network."""
    options = non_default_options(args, CharacterSizes)
    if getattr(args, reader, NONE) == NONE:
        readers = [name for name in READERS if hasattr(args, name)]
        if all(getattr(args, name) == NONE for name in readers):
            wanted = " or ".join(f"--{name.replace('_', '-')} {CNN}" for name in readers)
            check_unused_options(options, ALONE.format(wanted, "one" if len(readers) > 1 else "it"))
        return None
    sizes = CharacterSizes(**options)
    width, layers = sizes.character_embed_dim, str(sizes.highway_layers)
    check_least("--character-embed-dim", width, 1)
    if not (layers.isdecimal() and len(layers) < 4 and int(layers) <= MOST_LAYERS):
        raise OptionError(f"--highway-layers {layers}: expected a number from 0 to {MOST_LAYERS}")
    filters = parse_filters(sizes.character_filters)
    return CharacterOptions(width, filters, int(layers), size)


EXTENSIONS.append(Characters())
announce(f"{__name__}.presets")
