"""The options of `llrnn prior` about another trained model as the background."""

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairseq_llrnn.cli.with_fairseq import need_fairseq
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.numbers import is_temperature, said_of_temperatures

if TYPE_CHECKING:
    from fairseq_llrnn.prior.model_files import SharedWords
    from fairseq_llrnn.prior.options import OpenModel
    from fairseq_llrnn.prior.parts import ModelPart
    from fairseq_llrnn.prior.prior import Prior

FEW = 0.5  # of the words known to the model: below, it is probably one of another kind of text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("background model:FILE, another trained model")
    group.add_argument(
        "--background-data", metavar="DIR", help="its data folder (default: the one that it was trained with)"
    )
    group.add_argument(
        "--background-prior", metavar="DIR", help="its prior, if it is one of ours (default: that of its training)"
    )
    group.add_argument(
        "--model-weight", type=float, metavar="W",
        help="how much of the background is the model's, above 0 and up to 1; the rest is the unigram of --count-text, "
        "so that words which the model hardly believes in stay possible (default: 1)",
    )  # fmt: skip


def opener(args: argparse.Namespace) -> "OpenModel":
    """What reads the models that --background names.

    Raises:
        OptionError: numbers out of range.
    """
    weight = 1.0 if args.model_weight is None else args.model_weight
    if not 0.0 < weight <= 1.0:
        raise OptionError(f"--model-weight {weight}: expected a number above 0 and up to 1")
    temperature = 1.0 if args.background_temperature is None else args.background_temperature
    if not is_temperature(temperature):
        raise OptionError(f"--background-temperature {temperature}: expected {said_of_temperatures()}")
    need_fairseq()
    from fairseq_llrnn.plugin.compat.loading import Places
    from fairseq_llrnn.plugin.models.frozen_lm import build_general_model, find_model_files
    from fairseq_llrnn.prior.parts import ModelPart

    places = Places(args.background_data, args.background_prior, prefix="background-")

    def open_model(checkpoint: str, prior: "Prior") -> "tuple[ModelPart, Mapping[str, int]]":
        files = find_model_files(checkpoint, places, weight, temperature)
        return ModelPart(files), _notes(build_general_model(files, prior.symbols, prior.allowed).shared)

    return open_model


def _notes(shared: "SharedWords") -> dict[str, int]:
    """What a user should know about the words of a model; a warning on stderr."""
    ordinary = shared.known + shared.lacking
    if shared.known < FEW * ordinary:
        print(
            f"warning: the background's model knows {shared.known:,} of the {ordinary:,} words of --dict, and "
            f"{shared.dropped:,} others: is it one of the same language and tokenisation?",
            file=sys.stderr,
        )
    counts = {
        "words that the background's model lacks: they share what it says of <unk>": shared.lacking,
        "words of the background's model that --dict lacks: they are dropped": shared.dropped,
    }
    return {note: count for note, count in counts.items() if count}
