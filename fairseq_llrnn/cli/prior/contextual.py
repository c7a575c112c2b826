"""The options of `llrnn prior` about backgrounds that know the words before: n-grams and automata."""

import argparse
from dataclasses import replace
from pathlib import Path

from fairseq_llrnn.cli.prior import model as prior_model
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.prior.parts.automaton import FLOOR, ON_ZERO
from fairseq_llrnn.prior.sequence_background import ContextualSettings, parse_background

NAMES = (
    *("ngram_text", "ngram_weight", "background_temperature", "folds"),
    *("on_zero", "unknown_symbols", "copy_source_words"),
)


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
        "(default: 1)",
    )  # fmt: skip
    group.add_argument(
        "--folds", type=int, metavar="K",
        help="of ngram:N: training sees each sentence with n-grams that were estimated without its fold, one of K; 0 "
        f"where the network is trained on another text (default: {ContextualSettings.folds})",
    )  # fmt: skip
    group.add_argument(
        "--on-zero", choices=ON_ZERO,
        help="what to do with training sentences to which an automaton gives probability zero: an error, looked for in "
        "--count-text and again when training starts; skip them; or floor, which gives what it forbids "
        f"{FLOOR:g} of the unigram, so that nothing is impossible (default: {ON_ZERO[0]})",
    )  # fmt: skip
    group.add_argument(
        "--copy-source-words", action="store_true", default=None,
        help="of automaton:FILE.words, words spelled in characters: a translation may also hold the words of its own "
        "source, which is spelled with the same separators (--source-dict)",
    )  # fmt: skip
    group.add_argument(
        "--unknown-symbols", choices=("error", "drop"),
        help="symbols of an automaton that the dictionary lacks: an error, or drop what has them (default: error)",
    )  # fmt: skip


def contextual_settings(args: argparse.Namespace) -> ContextualSettings | None:
    """None for a background that is the same everywhere.

    Raises:
        OptionError: options that have no say or do not go together.
    """
    parsed = None if args.background is None else parse_background(args.background)
    if parsed is None:
        others = tuple(name for name in NAMES if name != "background_temperature")
        _refuse_alone(args, others, "--background ngram:… or automaton:…")
        if not prior_model.is_given(args):
            _refuse_alone(args, ("background_temperature",), "--background ngram:…, automaton:… or model:…")
        return None
    kind, source = parsed
    settings = ContextualSettings(kind, source)
    if settings.order is None and not Path(source).is_file():
        raise OptionError(
            f"--background {args.background}: expected the path of a file behind the colon, found none there; check "
            "the spelling"
        )
    if kind == "ngram":
        _refuse_alone(args, ("on_zero", "unknown_symbols", "copy_source_words"), "--background automaton:…")
        if settings.order is None:
            _refuse_alone(args, ("ngram_text", "folds"), "--background ngram:N, whose n-grams are estimated here")
        elif not (args.count_text or args.ngram_text):
            raise OptionError(
                f"--background {args.background}: expected --count-text with the text that the {source}-grams are "
                "estimated from, found none; add it, or give an ARPA file as ngram:FILE"
            )
        for path in args.ngram_text or ():
            if not Path(path).is_file():
                raise OptionError(f"--ngram-text {path}: expected a file of text, found none there; check the spelling")
    else:
        _refuse_alone(args, ("ngram_text", "ngram_weight", "folds"), "--background ngram:…")
        if not source.endswith(".words"):
            _refuse_alone(args, ("copy_source_words",), "--background automaton:FILE.words")
    for option, name in (("--lexical-translation", "lexical_translation"), ("--unsupported", "unsupported")):
        if getattr(args, name):
            raise OptionError(
                f"--background {args.background}: it knows the words before, and does not go with {option}, whose "
                "background is made of single words; leave one of them out"
            )
    given = {
        "weight": args.ngram_weight,
        "temperature": args.background_temperature,
        "folds": args.folds,
        "on_zero": args.on_zero,
        "unknown_symbols": args.unknown_symbols,
        "copies": args.copy_source_words,
        "texts": None if args.ngram_text is None else tuple(args.ngram_text),
    }
    return replace(settings, **{name: value for name, value in given.items() if value is not None})


def files(args: argparse.Namespace) -> list[str]:
    """The files that the background is read from."""
    settings = contextual_settings(args)
    if settings is None:
        return []
    return list(settings.texts) if settings.order is not None else [settings.source]


def _refuse_alone(args: argparse.Namespace, names: tuple[str, ...], needed: str) -> None:
    for name in names:
        if getattr(args, name) is not None:
            raise OptionError(
                f"--{name.replace('_', '-')}: it has no say without {needed}; add that, or leave it out"
            )
