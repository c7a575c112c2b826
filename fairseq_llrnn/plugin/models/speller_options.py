"""Options of our models for the network that spells unknown words."""

from argparse import Namespace
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Optional  # fairseq reads Optional[X] from its dataclasses, and not X | None

from fairseq.dataclass import FairseqDataclass

from fairseq_llrnn.open_vocabulary.speller_sizes import SpellerSizes
from fairseq_llrnn.plugin.models.extensions import HEAD, Extension, check_dropouts, check_sizes


@dataclass
class SpellerConfig(FairseqDataclass):
    """Options of the speller, one for each field of SpellerSizes. None, as in old checkpoints: the default size."""

    speller_embed_dim: Optional[int] = field(
        default=None,
        metadata={
            "help": "width of the characters and classes of the network that spells unknown words, with a prior of "
            f"--open-vocabulary neural (default: {SpellerSizes.embed_dim})"
        },
    )
    speller_hidden_size: Optional[int] = field(
        default=None, metadata={"help": f"width of its LSTM (default: {SpellerSizes.hidden_size})"}
    )
    speller_dropout: Optional[float] = field(
        default=None,
        metadata={"help": f"dropout on the input and output of its LSTM (default: {SpellerSizes.dropout})"},
    )


def speller_sizes(args: Namespace | FairseqDataclass) -> SpellerSizes | None:
    """Return the given sizes, or None without any.

    Raises:
        OptionError: a size below 1, or a dropout that is not a probability below 1.
    """
    all_sizes = {size.name: getattr(args, f"speller_{size.name}", None) for size in fields(SpellerSizes)}
    sizes = {name: value for name, value in all_sizes.items() if value is not None}
    check_sizes(args, *(f"speller_{name}" for name in sizes if name != "dropout"))
    check_dropouts(args, "speller_dropout")
    return SpellerSizes(**sizes) if sizes else None


class SpellerExtension(Extension):
    """Heads with a network that spells open words."""

    options: ClassVar = {HEAD: SpellerConfig}

    def head_arguments(self, args: Namespace | FairseqDataclass, task: Any) -> dict[str, Any]:
        sizes = speller_sizes(args)
        if sizes is None:
            return {}
        from fairseq_llrnn.prior.parts.open_vocabulary import open_words

        return {"classes": [open_words(sizes)]}
