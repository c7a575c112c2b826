"""The options of `llrnn prior` about another trained model as the background."""

import argparse
import logging
import sys
from collections import Counter
from pathlib import Path

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.prior.model_files import ModelFiles
from fairseq_llrnn.prior.parts.model import ModelPart
from fairseq_llrnn.prior.prior import Prior

KIND = "model:"
NAMES = ("background_data", "background_prior", "model_weight")
# what is made of single words, and would have no say
BESIDE = (("--lexical-translation", "lexical_translation"), ("--unsupported", "unsupported"))
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


def is_given(args: argparse.Namespace) -> bool:
    """Whether --background names a model."""
    return args.background is not None and args.background.startswith(KIND)


def files(args: argparse.Namespace) -> list[str]:
    """The checkpoint, if there is one."""
    return [args.background.removeprefix(KIND)] if is_given(args) else []


def model_files(args: argparse.Namespace) -> ModelFiles | None:
    """The files of the model; None for another background.

    Raises:
        OptionError: options that have no say or do not go together, or no file. DataError: no language model.
    """
    if not is_given(args):
        for name in NAMES:
            if getattr(args, name) is not None:
                raise OptionError(
                    f"--{name.replace('_', '-')}: it has no say without --background model:FILE; add that, or leave it "
                    "out"
                )
        return None
    checkpoint = args.background.removeprefix(KIND)
    if not Path(checkpoint).is_file():
        raise OptionError(
            f"--background {args.background}: expected a checkpoint behind the colon, found none there; give the .pt "
            "file that training wrote"
        )
    for option, name in BESIDE:
        if getattr(args, name):
            raise OptionError(
                f"--background {args.background}: what the model says of words by their context does not go with "
                f"{option}, which is about single words; leave one of them out"
            )
    weight = 1.0 if args.model_weight is None else args.model_weight
    if not 0.0 < weight <= 1.0:
        raise OptionError(f"--model-weight {weight}: expected a number above 0 and up to 1")
    temperature = 1.0 if args.background_temperature is None else args.background_temperature
    if not 0.0 < temperature < float("inf"):
        raise OptionError(f"--background-temperature {temperature}: expected a number above 0")
    logging.getLogger("fairseq").setLevel(logging.WARNING)  # before it is imported: it reports while it does
    from fairseq_llrnn.plugin.compat.loading import Places
    from fairseq_llrnn.plugin.models.frozen_lm import find_model_files

    places = Places(args.background_data, args.background_prior, prefix="background-")
    return find_model_files(checkpoint, places, weight, temperature)


def add_model(prior: Prior, words: WordList, files: ModelFiles) -> tuple[Prior, Counter[str]]:
    """The prior with this model as its background, and what a user should know about it; a warning on stderr.

    Raises:
        LLRNNError: a model that cannot be built, or knows no word of the dictionary.
    """
    from fairseq_llrnn.plugin.models.frozen_lm import build_general_model

    shared = build_general_model(files, prior.symbols, prior.allowed).shared
    ordinary = int((~words.specials).sum())
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
    return prior.with_part(ModelPart(files)), Counter({note: count for note, count in counts.items() if count})
