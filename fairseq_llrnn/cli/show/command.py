"""`llrnn show`: what a prior knows, as a whole or about single words. --neighbours and --tree ask a model."""

import argparse
import json
from typing import Any

from fairseq_llrnn.cli.show import neighbours as show_neighbours
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.systems.output_trees.views import show as show_tree

NAME = "show"
HELP = "look into a prior: its features, signatures and background, or what it knows about a word"
EXAMPLES = (
    "llrnn show data-bin/prior",
    "llrnn show data-bin/prior le la --json",
    "llrnn show --neighbours le --path checkpoints/checkpoint_best.pt",
    "llrnn show --tree with-a-tree/checkpoint_best.pt --picture tree.png",
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
    show_tree.add_arguments(parser)
    show_neighbours.add_arguments(parser)
    results = parser.add_argument_group("results")
    results.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    if show_tree.is_meant(args):
        return show_tree.run(args)
    if show_neighbours.is_meant(args):
        return show_neighbours.run(args)
    if args.folder is None:
        raise OptionError(
            "expected PRIOR, the folder of a prior, or --neighbours WORD with --path FILE, or --tree FILE, found none"
        )
    from fairseq_llrnn.cli.show.finding import find_word
    from fairseq_llrnn.cli.show.prior_view import PriorView
    from fairseq_llrnn.cli.show.source import source_word_text
    from fairseq_llrnn.cli.show.text import summary_text, word_text
    from fairseq_llrnn.prior.prior import Prior

    view = PriorView.of(Prior.load(args.folder))
    if args.words or args.source:
        # all of them before the first is printed: an error must not come after half an answer
        found = [view.word(find_word(view.prior, word, args.folder)) for word in args.words]
        asked = [view.source_word(word, args.folder) for word in args.source]
        result: dict[str, Any] = {"prior": args.folder, "words": found}
        if asked:
            result["translations"] = asked
        text = "\n\n".join([*(word_text(word) for word in found), *(source_word_text(word) for word in asked)])
    else:
        result = {"prior": args.folder, **view.summary()}
        text = summary_text(result)
    print(json.dumps(result, ensure_ascii=False) if args.json else text)
    return 0
