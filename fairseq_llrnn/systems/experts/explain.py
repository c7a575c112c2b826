"""Help of `llrnn explain` for models with experts."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument_group(
        "output of a model with experts",
        "`experts`: a × v of each expert. a is its gate, equal for all words, and v its value for this word. a·v is "
        "among the word's features, as Expert:NAME.",
    )


def begin(args: argparse.Namespace) -> None:
    """Do nothing."""
