"""`llrnn score`: how well a language model predicts a text, in bits per word and per character."""

import argparse
import json
from typing import TYPE_CHECKING

from fairseq_llrnn.cli.model_options import add_places
from fairseq_llrnn.cli.stdin import stdin_lines
from fairseq_llrnn.cli.tables import note
from fairseq_llrnn.cli.with_fairseq import need_fairseq
from fairseq_llrnn.errors import OptionError

if TYPE_CHECKING:
    from fairseq_llrnn.evaluation.text_bits import TextScore

NAME = "score"
HELP = "bits per word and per character of a text under a language model"
EXAMPLES = (
    "llrnn score --path checkpoint_best.pt < test.txt",
    "llrnn score --path open.pt --open --json < test.txt",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{HELP}; the text comes on stdin, a sentence a line, words between blanks"
    model = parser.add_argument_group("the model")
    model.add_argument("--path", required=True, metavar="FILE", help="checkpoint of a language model")
    add_places(model)
    model.add_argument("--max-tokens", type=int, default=2048, metavar="N", help="tokens in a batch (default: 2048)")
    results = parser.add_argument_group("results")
    results.add_argument(
        "--open", action="store_true",
        help="spell unknown words: the exact probability of every string (with a prior of --open-vocabulary); without "
        "this, an unknown word is no more than <unk>",
    )  # fmt: skip
    results.add_argument("--json", action="store_true", help="print the figures as JSON")


def run(args: argparse.Namespace) -> int:
    if args.max_tokens < 1:
        raise OptionError(f"--max-tokens {args.max_tokens}: expected a number of at least 1")
    need_fairseq()
    from fairseq_llrnn.plugin.compat.loading import Places
    from fairseq_llrnn.plugin.scoring.text import load_text_scorer

    scorer = load_text_scorer(args.path, args.max_tokens, Places(args.data, args.prior, args.expert))
    if args.open and not scorer.opened:
        raise OptionError(
            f"--open: expected a model with an open vocabulary, found none in {args.path}; build its prior with `llrnn "
            "prior --open-vocabulary characters` and train it again, or leave --open out"
        )
    scorer.opened = args.open
    total = scorer.score(stdin_lines())
    if not total.sentences:
        raise OptionError("expected a text, found none on stdin; give one sentence a line")
    if total.unknown_words and not args.open:
        note("unknown words are scored as <unk>, whatever they are: these bits are fewer than those of the text")
    if args.json:
        print(json.dumps({**total.facts(), "open": args.open}, ensure_ascii=False))
    else:
        print(as_table(total, args.open))
    return 0


def as_table(total: "TextScore", is_open: bool) -> str:
    """The sums and what they are per word and per character."""
    facts = total.facts()
    rows = [
        ("sentences", f"{total.sentences:,}"),
        ("words", f"{total.words:,}"),
        ("  outside the dictionary", f"{total.unknown_words:,}"),
        ("characters, with blanks and line ends", f"{total.characters:,}"),
        ("bits", f"{total.bits:,.1f}"),
        ("  words of the dictionary", f"{total.known_bits:,.1f}"),
        ("  that an unknown word comes", f"{total.unknown_bits:,.1f}"),
        *([("  which one it is", f"{total.spelling_bits:,.1f}")] if is_open else []),
        ("  line ends", f"{total.end_bits:,.1f}"),
        ("bits per word", f"{facts['bits_per_word']:.4f}"),
        ("bits per character", f"{facts['bits_per_character']:.4f}"),
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value:>14}" for name, value in rows)
