"""The options of `llrnn prior` about words outside the dictionary: an open vocabulary."""

import argparse
from collections import Counter

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.features.lexicon import Lexicon
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.open_vocabulary.classes import LEAST_TYPES
from fairseq_llrnn.open_vocabulary.vocabulary import KIND
from fairseq_llrnn.prior.open_vocabulary import FLOOR, add_open_vocabulary
from fairseq_llrnn.prior.prior import Prior

NAMES = ("open_vocabulary", "open_floor", "open_types")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("open vocabulary: words outside the dictionary")
    group.add_argument(
        "--open-vocabulary", choices=(KIND,),
        help="every string has a probability: <unk> becomes classes of unknown words, learned from the rare words of "
        "--count-text (or of --dict), each with features and a distribution over all strings of characters",
    )  # fmt: skip
    group.add_argument(
        "--open-floor", type=int, metavar="N",
        help=f"words that occur at most N times are rare, and in part trained as unknown ones (default: {FLOOR})",
    )  # fmt: skip
    group.add_argument(
        "--open-types", type=int, metavar="N",
        help=f"rare words with equal features that make a class of their own (default: {LEAST_TYPES})",
    )  # fmt: skip


def check(args: argparse.Namespace) -> None:
    """Raise OptionError for numbers that make no sense, and options that do not go together."""
    for name in NAMES[1:]:
        value, option = getattr(args, name), "--" + name.replace("_", "-")
        if value is None:
            continue
        if args.open_vocabulary is None:
            raise OptionError(f"{option}: it has no say without --open-vocabulary; add that, or leave it out")
        if value < 1:
            raise OptionError(f"{option} {value}: expected a number of at least 1")
    if args.open_vocabulary is not None and args.pieces is not None:
        raise OptionError(
            f"--open-vocabulary: it is of whole words, found --pieces {args.pieces} beside it; preprocess words, or "
            "leave one of them out"
        )


def open_vocabulary(args: argparse.Namespace, prior: Prior, words: WordList, lexicon: Lexicon) -> Prior:
    """The prior with an open vocabulary, where one is asked for."""
    if args.open_vocabulary is None:
        return prior
    floor = FLOOR if args.open_floor is None else args.open_floor
    least = LEAST_TYPES if args.open_types is None else args.open_types
    return add_open_vocabulary(prior, words, _counts(args, words), lexicon, floor, least)


def _counts(args: argparse.Namespace, words: WordList) -> Counter[str]:
    """How often each word occurs, those outside the dictionary as well, where there is a text."""
    if args.count_text:
        return Counter(word for path in args.count_text for _, line in iter_lines(path) for word in line.split())
    ordinary = zip(words.symbols, words.counts.tolist(), words.specials, strict=True)
    return Counter({symbol: count for symbol, count, special in ordinary if not special})
