"""`llrnn user-dir`: print the folder for fairseq's `--user-dir`."""

import argparse
import os

import fairseq_llrnn

NAME = "user-dir"
HELP = "print the folder for fairseq's --user-dir"
EXAMPLES = (
    'fairseq-train data-bin --user-dir "$(llrnn user-dir)" --task llrnn_language_modeling --prior data-bin/prior '
    "--arch llrnn_lm --criterion log_linear --sample-break-mode eos --tokens-per-sample 512 --max-tokens 2048 "
    "--required-batch-size-multiple 1 --optimizer adam --lr 0.002 --max-epoch 30 --no-epoch-checkpoints "
    "--save-dir another",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments."""


def run(args: argparse.Namespace) -> int:
    # the spelling of the import system: fairseq compares the two if the package is imported already
    print(os.path.abspath(fairseq_llrnn.__path__[0]))
    return 0
