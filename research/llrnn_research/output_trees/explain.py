"""Help of `llrnn explain` for models with an output tree."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument_group(
        "output of a model with an output tree",
        "`choices`: the choices that lead to the word. `3 of 15 0.02→0.07` is the third of 15 children, with its "
        "probability in the background → in the model. Tree:1, Tree:2, … among its features are the scores of the "
        "nodes above the word, and the normaliser is the sum over these nodes.",
    )


def begin(args: argparse.Namespace) -> None:
    """Do nothing."""
