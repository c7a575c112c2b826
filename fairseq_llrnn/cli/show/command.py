"""`llrnn show`: a prior as a whole, or single words of it. Views show more.

A view is a module that a system, or another package, has for this command (registry.py):

    ASKED = "--tree FILE"                  the option that asks for it
    BESIDE = ("picture",)                  options that do nothing without it
    EXAMPLES = ("llrnn show --tree …",)
    def add_arguments(parser): …           that option, and what it needs
    def run(args) -> int: …                where the option is given
"""

import argparse
import json
from typing import Any

from fairseq_llrnn import registry
from fairseq_llrnn.errors import OptionError, refuse_idle

NAME = "show"
HELP = "look into a prior: its features, signatures and background, or those of a word"
VIEWS = registry.load_all("show")
EXAMPLES = (
    "llrnn show data-bin/prior",
    "llrnn show data-bin/prior le la --json",
    *(example for view in VIEWS for example in view.EXAMPLES),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    asked = parser.add_argument_group("what is shown")
    asked.add_argument("folder", nargs="?", metavar="PRIOR", help="directory that `llrnn prior` wrote")
    asked.add_argument("words", nargs="*", metavar="WORD", help="words to look up (default: a summary of the prior)")
    asked.add_argument(
        "--source", action="append", default=[], metavar="WORD",
        help="a word of the source language: its translations, best first (the prior needs --lexical-translation), and "
        "what it is evidence of (--evidence)",
    )  # fmt: skip
    for view in VIEWS:
        view.add_arguments(parser)
    results = parser.add_argument_group("results")
    results.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    views = {view.ASKED.split()[0]: view for view in VIEWS}
    asked = [option for option in views if getattr(args, option[2:].replace("-", "_")) not in (None, [])]
    if len(asked) > 1:
        raise OptionError(f"{asked[0]}: it says nothing of {asked[1]}; ask one after the other")
    if asked:
        status: int = views[asked[0]].run(args)
        return status
    for view in VIEWS:
        beside = {option: getattr(args, option) for option in view.BESIDE}
        refuse_idle(beside, f"it needs {view.ASKED}, found none; give both")
    if args.folder is None:
        others = "".join(f", or {view.ASKED}" for view in VIEWS)
        raise OptionError(f"expected PRIOR, the folder of a prior{others}, found none")
    from fairseq_llrnn.cli.show.prior_view import PriorView
    from fairseq_llrnn.cli.show.text import find_word, source_word_text, summary_text, word_text
    from fairseq_llrnn.prior.prior import Prior

    of_prior = PriorView.of(Prior.load(args.folder))
    if args.words or args.source:
        # all of them before the first is printed: an error must not come after half an answer
        shown = [of_prior.word(find_word(of_prior.prior, word, args.folder)) for word in args.words]
        translated = [of_prior.source_word(word, args.folder) for word in args.source]
        result: dict[str, Any] = {"prior": args.folder, "words": shown}
        if translated:
            result["translations"] = translated
        text = "\n\n".join([*(word_text(word) for word in shown), *(source_word_text(word) for word in translated)])
    else:
        result = {"prior": args.folder, **of_prior.summary()}
        text = summary_text(result)
    print(json.dumps(result, ensure_ascii=False) if args.json else text)
    return 0
