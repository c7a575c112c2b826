"""What our models are told of words that are read by their characters."""

from argparse import Namespace
from dataclasses import Field, dataclass, field, fields
from typing import Any

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from fairseq_llrnn.errors import OptionError, check_least
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


SIZES = [option for option in fields(CharacterSizes) if option.name in CharacterSizes.__annotations__]
INPUT_ONLY = [option for option in fields(CharacterConfig) if option.name == "character_mode"]


def character_options(args: Namespace | FairseqDataclass, size: int | None) -> CharacterOptions | None:
    """The sizes of the network over the input's characters; None: there is none, as in older checkpoints.

    Args:
        size: the width that the network behind it expects; None: any.

    Raises:
        OptionError: sizes out of range, or options without a network that they speak of.
    """
    return _options(args, size, "input_characters", INPUT_ONLY)


def source_character_options(args: Namespace | FairseqDataclass, size: int) -> CharacterOptions | None:
    """Those of the network over the source's characters, as `character_options`."""
    return _options(args, size, "source_characters", [])


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


def reads_features(args: Namespace | FairseqDataclass) -> bool:
    """Whether a recurrent network reads features ψ, alone or beside characters."""
    return getattr(args, "input_characters", NONE) == NONE or getattr(args, "character_mode", ONLY) == ADD


def check_tied(args: Namespace | FairseqDataclass) -> None:
    """Raise OptionError where the weights of features would be shared with an input that reads none."""
    if getattr(args, "tie_features", False) and not reads_features(args):
        raise OptionError(
            "--tie-features: expected a network that reads features, found --input-characters cnn, which reads "
            "characters only; give --character-mode add, or leave one of them out"
        )
