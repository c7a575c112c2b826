"""What experts add to the table of `llrnn explain`."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument_group(
        "how to read it with experts",
        "`experts`: of each, a × v. a is its gate, the same for all words; v is its value for "
        "this word. a·v counts among the word's features, as Expert:NAME.",
    )


def begin(args: argparse.Namespace) -> None:
    """Nothing more is to be done."""
