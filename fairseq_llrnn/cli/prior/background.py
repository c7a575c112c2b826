"""The options of `llrnn prior` about backgrounds that know the words before: n-grams, automata, caches."""

import argparse
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from fairseq_llrnn import defaults
from fairseq_llrnn.cli.prior import model as prior_model
from fairseq_llrnn.cli.prior.numbers import number_or_learned
from fairseq_llrnn.errors import OptionError

if TYPE_CHECKING:
    from fairseq_llrnn.prior.options import BackgroundOptions

NEEDS = {  # which backgrounds an option says something of, and how errors call them
    "ngram_text": (("ngram:N",), "--background ngram:N, whose n-grams are estimated here"),
    "folds": (("ngram:N",), "--background ngram:N, whose n-grams are estimated here"),
    "ngram_prune": (("ngram:N",), "--background ngram:N, whose n-grams are estimated here"),
    "ngram_weight": (("ngram:N", "ngram"), "--background ngram:…"),
    "on_zero": (("automaton",), "--background automaton:…"),
    "unknown_symbols": (("automaton",), "--background automaton:…"),
    "background_temperature": (
        ("ngram:N", "ngram", "automaton", "model"),
        "--background ngram:…, automaton:… or model:…",
    ),
    "cache_weight": (("cache",), "--background cache:N"),
    "cache_decay": (("cache",), "--background cache:N"),
    "background_data": (("model",), "--background model:FILE"),
    "background_prior": (("model",), "--background model:FILE"),
    "model_weight": (("model",), "--background model:FILE"),
    "smoothing": (("unigram",), "a unigram"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("backgrounds ngram:… and automaton:…")
    group.add_argument(
        "--ngram-text", nargs="+", metavar="FILE",
        help="text of ngram:N, over the unigram of --count-text (default: --count-text, which makes both)",
    )  # fmt: skip
    group.add_argument(
        "--ngram-weight", type=float, metavar="W",
        help="how much of its own say each history of an n-gram keeps beside the next shorter one, from 0 (the unigram "
        "alone) to 1 (default: 1)",
    )  # fmt: skip
    group.add_argument(
        "--background-temperature", type=float, metavar="T",
        help="flatten an automaton or a model: b to the power of 1/T; of n-grams, what they say beside the unigram "
        "(from 0.01 to 100; default: 1)",
    )  # fmt: skip
    group.add_argument(
        "--folds", type=int, metavar="K",
        help="of ngram:N: training sees each sentence with n-grams that were estimated without its fold, one of K; 0 "
        f"where the network is trained on another text (default: {defaults.FOLDS})",
    )  # fmt: skip
    group.add_argument(
        "--ngram-prune", type=int, nargs="+", metavar="C",
        help="of ngram:N: leave out n-grams of one word, two words, … that come no more than C times; `0 1 3`: pairs "
        "that come once, longer ones that come up to three times (default: none)",
    )  # fmt: skip
    group.add_argument(
        "--on-zero", choices=defaults.ON_ZERO,
        help="what to do with training sentences to which an automaton gives probability zero: an error, looked for in "
        "--count-text and again when training starts; skip them; or floor, which gives what it forbids "
        f"{defaults.AUTOMATON_FLOOR:g} of the unigram, so that nothing is impossible (default: {defaults.ON_ZERO[0]})",
    )  # fmt: skip
    group.add_argument(
        "--unknown-symbols", choices=("error", "drop"),
        help="symbols of an automaton that the dictionary lacks: an error, or drop what has them (default: error)",
    )  # fmt: skip
    group.add_argument(
        "--cache-weight", type=number_or_learned, metavar="W",
        help="of cache:N: share of the last N words, between 0 and 1, where the unigram has the rest; or `learned`, "
        f"with the decay (default: {defaults.CACHE_WEIGHT})",
    )  # fmt: skip
    group.add_argument(
        "--cache-decay", type=float, metavar="D",
        help="of cache:N: what a word counts beside the one that came after it, above 0 and up to 1 (default: "
        f"{defaults.CACHE_DECAY:g}; where it is learned, it begins at {defaults.LEARNED_CACHE_DECAY})",
    )  # fmt: skip


def background_options(args: argparse.Namespace) -> "BackgroundOptions":
    """How the backgrounds of --background are made.

    Raises:
        OptionError: a background that is none, options that need others, or exclude each other.
    """
    from fairseq_llrnn.prior.expression import Atom, atoms
    from fairseq_llrnn.prior.leaves import STATIC, is_order, kind_of, read_background
    from fairseq_llrnn.prior.options import BackgroundOptions

    expression = read_background(args.background or "unigram")
    written = [atom.text for atom in atoms(expression)]
    named = {"ngram:N" if is_order(text) else kind_of(text)[0] for text in written}
    by_unigram = {"automaton", "model", "cache"}  # which have it below
    if "unigram" in written or by_unigram & named or STATIC not in named and args.ngram_text:
        named.add("unigram")
    for name, (needed, how) in NEEDS.items():
        if getattr(args, name) is not None and not named.intersection(needed):
            _refuse(name, how, args.background)
    if args.background_temperature is not None and not isinstance(expression, Atom):
        raise OptionError(
            "--background-temperature: it is of a background by itself, found several; say it of each, as in "
            f"`{written[0]} at temperature 2`"
        )
    if "ngram:N" in named and not (args.count_text or args.ngram_text):
        first = next(text for text in written if is_order(text))
        raise OptionError(
            f"--background {first}: expected --count-text with the text that the {kind_of(first)[1]}-grams are "
            "estimated from, found none; add it, or give an ARPA file as ngram:FILE"
        )
    for path in args.ngram_text or ():
        if not os.path.isfile(path):
            raise OptionError(f"--ngram-text {path}: expected a file of text, found none there; check the spelling")
    learned = args.cache_weight == "learned"
    given = {
        "smoothing": args.smoothing,
        "pseudo_count": args.pseudo_count,
        "ngram_text": None if args.ngram_text is None else tuple(args.ngram_text),
        "ngram_weight": args.ngram_weight,
        "folds": args.folds,
        "ngram_prune": None if args.ngram_prune is None else tuple(args.ngram_prune),
        "temperature": args.background_temperature,
        "on_zero": args.on_zero,
        "unknown_symbols": args.unknown_symbols,
        "cache_weight": None if learned else args.cache_weight,
        "cache_decay": defaults.LEARNED_CACHE_DECAY if learned and args.cache_decay is None else args.cache_decay,
        "cache_learned": learned or None,
        "open_model": prior_model.opener(args) if "model" in named else None,
    }
    return replace(BackgroundOptions(), **{name: value for name, value in given.items() if value is not None})


def _refuse(name: str, needed: str, background: str | None) -> None:
    if name == "smoothing":
        raise OptionError(f"--smoothing: only a unigram is smoothed, found --background {background}; leave one out")
    raise OptionError(f"--{name.replace('_', '-')}: it needs {needed}; add that, or leave it out")
