"""`llrnn mrf tag`: tag a text."""

import argparse

from fairseq_llrnn.cli.places import STDIN, text_lines
from fairseq_llrnn.cli.tables import note, plural, printable

NAME = "mrf tag"
HELP = "tag a text by a Markov random field of words and tags"
EXAMPLES = ("llrnn mrf tag --model tagger < test.txt > test.tags",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{HELP}; the text comes on stdin, a sentence a line, words between blanks"
    model = parser.add_argument_group("the model")
    model.add_argument("--model", required=True, metavar="DIR", help="a tagger of `llrnn mrf train --conllu`")


def run(args: argparse.Namespace) -> int:
    """Print a line for each word, `word<TAB>tag`, and an empty line after each sentence."""
    from llrnn_research.markov_field.tagger_training import Tagger

    tagger, empty = Tagger.load(args.model), 0
    for line in text_lines(STDIN):
        words = line.split()
        empty += not words
        for word, tag in zip(words, tagger.tag(words), strict=True):
            print(printable(word), tag, sep="\t")
        print()
    if empty:
        note(f"{plural(empty, 'line')} without words, which have no tags")
    return 0
