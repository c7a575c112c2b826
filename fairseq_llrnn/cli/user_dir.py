"""`llrnn user-dir`: the folder that fairseq's `--user-dir` takes, wherever the package is installed."""

import argparse
import os

import fairseq_llrnn

NAME = "user-dir"
HELP = "print the folder to give to fairseq's --user-dir"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace) -> int:
    # As the import system spells it: fairseq compares the two when the package is imported already.
    print(os.path.abspath(fairseq_llrnn.__path__[0]))
    return 0
