"""What an output tree adds to the table of `llrnn explain`."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument_group(
        "how to read it with an output tree",
        "`choices`: those that lead to the word, as `3 of 15 0.02→0.07`: the third of 15 children, with its "
        "probability by the background → by the model; Tree:1, Tree:2, … among its features are the scores of those "
        "above the word, and the normaliser is that of these nodes.",
    )


def begin(args: argparse.Namespace) -> None:
    """Nothing more is to be done."""
