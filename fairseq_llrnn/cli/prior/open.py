"""The options of `llrnn prior` about words outside the dictionary: an open vocabulary."""

import argparse
from typing import TYPE_CHECKING

from fairseq_llrnn.cli.prior.alone import refuse_alone
from fairseq_llrnn.defaults import OPEN_FLOOR
from fairseq_llrnn.errors import check_least
from fairseq_llrnn.open_vocabulary.classes import LEAST_TYPES
from fairseq_llrnn.open_vocabulary.vocabulary import KINDS, NEURAL

if TYPE_CHECKING:
    from fairseq_llrnn.prior.recipe import OpenOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("open vocabulary: words outside the dictionary")
    group.add_argument(
        "--open-vocabulary", choices=KINDS,
        help="every string has a probability: <unk> becomes classes of unknown words, learned from the rare words of "
        "--count-text (or of --dict), each with features and a distribution over all strings: of "
        "character n-grams (`characters`), and of a network that knows the context as well, and is trained with the "
        "model (`neural`)",
    )  # fmt: skip
    group.add_argument(
        "--open-floor", type=int, metavar="N",
        help=f"words that occur at most N times are rare, and in part trained as unknown ones (default: {OPEN_FLOOR})",
    )  # fmt: skip
    group.add_argument(
        "--open-types", type=int, metavar="N",
        help=f"rare words with equal features that make a class of their own (default: {LEAST_TYPES})",
    )  # fmt: skip


def open_options(args: argparse.Namespace) -> "OpenOptions | None":
    """None where no open vocabulary is asked for. Raises OptionError for numbers and options that make no sense."""
    if args.open_vocabulary is None:
        refuse_alone(args, ("open_floor", "open_types"), "--open-vocabulary")
        return None
    check_least("--open-floor", args.open_floor, 1)
    check_least("--open-types", args.open_types, 1)
    floor = OPEN_FLOOR if args.open_floor is None else args.open_floor
    types = LEAST_TYPES if args.open_types is None else args.open_types
    from fairseq_llrnn.prior.recipe import OpenOptions

    return OpenOptions(floor, types, args.open_vocabulary == NEURAL)
