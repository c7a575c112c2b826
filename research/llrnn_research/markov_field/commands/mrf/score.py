"""`llrnn mrf score`: score a text by a Markov random field."""

import argparse
import json
import math
from typing import TYPE_CHECKING

from fairseq_llrnn.cli.places import STDIN, text_lines
from fairseq_llrnn.cli.tables import note, plural
from fairseq_llrnn.errors import DataError, check_unused_options

if TYPE_CHECKING:
    from llrnn_research.markov_field.model import MarkovField

NAME = "mrf score"
HELP = "score a text by a Markov random field: a bound on its likelihood, p(word | neighbours), left to right"
EXAMPLES = (
    "llrnn mrf score --model field < test.txt",
    "llrnn mrf score --model field --per-word < test.txt > words.tsv",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{HELP}; the text comes on stdin, a sentence a line, words between blanks"
    model = parser.add_argument_group("the model")
    model.add_argument("--model", required=True, metavar="DIR", help="a field of `llrnn mrf train --text`")
    result = parser.add_argument_group("results")
    result.add_argument(
        "--per-word", action="store_true",
        help="print a tab-separated table instead of sums: line, place, word, log p(word | neighbours) in nats",
    )  # fmt: skip
    result.add_argument("--json", action="store_true", help="print the sums as JSON")


def run(args: argparse.Namespace) -> int:
    from llrnn_research.markov_field.model import MarkovField, bits

    if args.per_word:
        advice = "--per-word prints a tab-separated table; remove --per-word or --json"
        check_unused_options({"json": args.json or None}, advice)
    model = MarkovField.load(args.model)
    sentences = [line.split() for line in text_lines(STDIN)]
    if not any(sentences):
        raise DataError("expected a text on stdin, a sentence a line, found no words; give a tokenised text")
    if empty := sum(not sentence for sentence in sentences):
        note(f"{plural(empty, 'line')} without words, which are left out")
    if args.per_word:
        _print_words(model, sentences)
        return 0
    score = model.score(model.words.text_of(sentences))
    facts = {
        "sentences": score.sentences,
        "words": score.words,
        "unknown_words": score.unknown,
        "tokens": score.tokens,
        "bound_nats_per_token": score.bound / score.tokens,
        "bound_bits_per_word": bits(score.bound, score.words),
        "conditional_bits_per_word": bits(score.conditionals, score.words),
        "left_to_right_bits_per_word": bits(score.left_to_right, score.words),
        "left_to_right_perplexity": math.exp(-score.left_to_right / (score.words + score.sentences)),
    }
    if args.json:
        print(json.dumps(facts))
        return 0
    rows = [
        ("sentences", f"{score.sentences:,}"),
        ("words", f"{score.words:,}"),
        ("  unknown", f"{score.unknown:,}"),
        ("bits per word, at most (the bound)", f"{facts['bound_bits_per_word']:.4f}"),
        ("bits per word, given neighbours", f"{facts['conditional_bits_per_word']:.4f}"),
        ("bits per word, left to right", f"{facts['left_to_right_bits_per_word']:.4f}"),
        ("perplexity, left to right, with ends", f"{facts['left_to_right_perplexity']:.2f}"),
    ]
    width = max(len(name) for name, _ in rows)
    print("\n".join(f"{name:<{width}}  {value:>12}" for name, value in rows))
    return 0


def _print_words(model: "MarkovField", sentences: list[list[str]]) -> None:
    values = iter(model.conditionals(model.words.text_of(sentences)).tolist())
    print("line", "place", "word", "log_p", sep="\t")
    for line, sentence in enumerate(sentences, 1):
        for place, word in enumerate(sentence, 1):
            print(line, place, word, f"{next(values):.6f}", sep="\t")
