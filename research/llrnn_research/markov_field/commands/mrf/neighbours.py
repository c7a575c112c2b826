"""`llrnn mrf neighbours`: print the words with the most similar rows."""

import argparse
from typing import TYPE_CHECKING

from fairseq_llrnn.cli.tables import printable
from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.features.dictionary import EOS, UNK

if TYPE_CHECKING:
    from llrnn_research.markov_field.model import MarkovField

NAME = "mrf neighbours"
HELP = "the nearest words of words, by the rows of a Markov random field's potentials"
EXAMPLES = ("llrnn mrf neighbours --model field --number 5 la",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    model = parser.add_argument_group("the model")
    model.add_argument(
        "--model", required=True, metavar="DIR", help="a field of `llrnn mrf train --text`, with a form of low rank"
    )
    query = parser.add_argument_group("the query")
    query.add_argument("word", nargs="+", help="words of the field")
    query.add_argument("--number", type=int, default=10, metavar="N", help="neighbours per word (default: 10)")


def run(args: argparse.Namespace) -> int:
    from llrnn_research.markov_field.model import MarkovField

    check_least("--number", args.number, 1)
    model = MarkovField.load(args.model)
    words = model.words
    missing = [word for word in args.word if word not in words.index or words.row_of[words.index[word]] < 0]
    if missing:
        raise OptionError(f"expected words of the field, found {missing[0]!r}; give other words")
    for word in args.word:
        print(word, *map(printable, nearest(model, word, args.number)), sep="\t")
    return 0


def nearest(model: "MarkovField", word: str, number: int) -> list[str]:
    """Return the words with the nearest rows, beginning with those of the same signature."""
    rows, words, neighbours = model.embeddings(), model.words, list[str]()
    likeness = rows @ rows[words.row_of[words.index[word]]]
    for kind in likeness.argsort(descending=True).tolist():
        members = (words.symbols[i] for i in (words.row_of == kind).nonzero()[0])
        neighbours += [other for other in members if other not in (word, EOS, UNK)]
        if len(neighbours) >= number:
            break
    return neighbours[:number]
