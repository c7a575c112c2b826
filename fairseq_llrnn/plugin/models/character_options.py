"""What our models are told of words that are read by their characters."""

from argparse import Namespace
from dataclasses import dataclass, field, fields
from typing import Any

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.networks.characters import MOST_LAYERS, SMALL, CharacterOptions, parse_filters, written

NONE, CNN = "none", "cnn"
ONLY, ADD = "only", "add"
MLP = "mlp"


@dataclass
class CharacterConfig(FairseqDataclass):
    """Options of a network that reads characters; the defaults are the thesis' small model."""

    input_characters: ChoiceEnum([NONE, CNN]) = field(  # type: ignore[valid-type]
        default=NONE,
        metadata={"help": "`cnn`: the network reads words by their characters (convolutions and highway layers)"},
    )
    character_mode: ChoiceEnum([ONLY, ADD]) = field(  # type: ignore[valid-type]
        default=ONLY,
        metadata={"help": "`only`: characters take the place of the features ψ; `add`: both are read, and added"},
    )
    character_embed_dim: int = field(default=15, metadata={"help": "width of a character's embedding"})
    character_filters: str = field(
        default=written(SMALL), metadata={"help": "widths of the convolutions, and how many filters each width has"}
    )
    highway_layers: str = field(
        default="1",
        metadata={"help": "number of highway layers behind the convolutions; `mlp`: one plain layer in their place"},
    )


OPTIONS = [option for option in fields(CharacterConfig) if option.name in CharacterConfig.__annotations__]


def character_options(args: Namespace | FairseqDataclass, size: int | None) -> CharacterOptions | None:
    """The sizes of the network over characters; None: there is none, as in older checkpoints, which lack the options.

    Args:
        size: the width that the network behind it expects; None: any.

    Raises:
        OptionError: sizes out of range, or without --input-characters.
    """
    given: dict[str, Any] = {option.name: getattr(args, option.name, option.default) for option in OPTIONS}
    if given["input_characters"] == NONE:
        for option in OPTIONS:
            if given[option.name] != option.default:
                raise OptionError(
                    f"--{option.name.replace('_', '-')} {given[option.name]}: expected --input-characters cnn beside "
                    "it, found none; give it, or leave this option out"
                )
        return None
    width, layers = given["character_embed_dim"], str(given["highway_layers"])
    check_least("--character-embed-dim", width, 1)
    if layers != MLP and not (layers.isdecimal() and len(layers) < 4 and int(layers) <= MOST_LAYERS):
        raise OptionError(f"--highway-layers {layers}: expected a number from 0 to {MOST_LAYERS}, or {MLP}")
    filters = parse_filters(given["character_filters"])
    return CharacterOptions(width, filters, 0 if layers == MLP else int(layers), layers == MLP, size)


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
