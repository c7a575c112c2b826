"""`llrnn score`: how well a language model predicts a text, in bits per word and per character."""

import argparse
import json
import math
import sys
from collections.abc import Iterable

from fairseq_llrnn.cli.model_options import add_places, need_fairseq, places_in
from fairseq_llrnn.cli.places import STDIN, check_text, text_lines
from fairseq_llrnn.cli.tables import many, note
from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.evaluation.texts import CapitalWords, LineScore, TextScore, sum_of

NAME = "score"
HELP = "bits per word and per character of a text under a language model"
EXAMPLES = (
    "llrnn score --path checkpoints/checkpoint_best.pt test.txt",
    "llrnn score --path open/checkpoint_best.pt --open --json < test.txt",
    "llrnn score --path checkpoints/checkpoint_best.pt --per-sentence < test.txt > scores.tsv",
)
COLUMNS = ("line", "log_p", "bits", "tokens", "unknown", "impossible", "sentence")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{HELP}; the text has a sentence a line, and words between blanks"
    parser.add_argument("text", nargs="?", default=STDIN, metavar="TEXT", help="a file; - or nothing: stdin")
    model = parser.add_argument_group("the model")
    model.add_argument("--path", required=True, metavar="FILE", help="checkpoint of a language model")
    add_places(model, translates=False)
    model.add_argument("--max-tokens", type=int, default=2048, metavar="N", help="tokens in a batch (default: 2048)")
    results = parser.add_argument_group("results")
    results.add_argument(
        "--open", action="store_true",
        help="spell unknown words: the exact probability of every string (with a prior of --open-vocabulary); without "
        "this, every unknown word is scored as <unk>",
    )  # fmt: skip
    results.add_argument(
        "--per-sentence", action="store_true",
        help="a table with tabs, a row a line: its number, log p in nats, bits, tokens with the end, unknown words, "
        "the word that has no probability (log p is then -inf), and its words; the sums come last, on stderr",
    )  # fmt: skip
    results.add_argument("--json", action="store_true", help="print the sums as JSON")


def run(args: argparse.Namespace) -> int:
    check_least("--max-tokens", args.max_tokens, 1)
    check_text(args.text)
    need_fairseq()
    from fairseq_llrnn.plugin.scoring.text import load_text_scorer

    scorer = load_text_scorer(args.path, args.max_tokens, places_in(args))
    if args.open and not scorer.opened:
        raise OptionError(
            f"--open: expected a model with an open vocabulary, found none in {args.path}; build its prior with `llrnn "
            "prior --open-vocabulary characters` and train it again, or leave --open out"
        )
    scorer.opened = args.open
    capitals = CapitalWords(scorer.dictionary.symbols)
    status = _print(args, capitals.watch(scorer.lines(text_lines(args.text))), args.open, scorer.prior)
    if capitals.count:
        note(
            f"{many(capitals.count, 'unknown word')} with capitals, such as {capitals.example!r}, which the model "
            "knows in lower case only: lower-case the text, as the training text was"
        )
    return status


def _print(args: argparse.Namespace, lines: Iterable[LineScore], is_open: bool, prior: str | None) -> int:
    total, unscored = _print_sentences(lines) if args.per_sentence else (sum_of(lines), 0)
    if not total.sentences + unscored:
        where = " on stdin" if args.text == STDIN else f" in {args.text}"
        raise OptionError(f"expected a text, found none{where}; give one sentence a line")
    if total.unknown_words and not is_open:
        note("unknown words are scored as <unk>, whatever they are: these bits are fewer than those of the text")
    if total.empty_lines:
        note(f"{many(total.empty_lines, 'line')} without words; the end of each is scored")
    if unscored:
        note(f"{many(unscored, 'line')} without a score, which the sums leave out")
    facts = {**total.facts(), **({"unscored_lines": unscored} if args.per_sentence else {}), "open": is_open}
    named = [] if prior is None else [f"prior  {prior}"]
    print(
        json.dumps({**facts, "prior": prior}, ensure_ascii=False)
        if args.json
        else "\n".join([as_table(total, is_open), *named]),
        file=sys.stderr if args.per_sentence else sys.stdout,
    )
    return 0


def _print_sentences(lines: Iterable[LineScore]) -> tuple[TextScore, int]:
    """A row for each line; returns the sums, and how many lines have no score."""
    total, unscored = TextScore(), 0
    print(*COLUMNS, sep="\t")
    for line in lines:
        problem = ""
        if line.too_long_for is not None:
            problem = f"more than {line.too_long_for} words"
        elif (place := line.impossible) is not None:
            problem = f"word {place + 1}: {line.word(place)}"
        nats = line.log_prob
        values = f"{nats:.6f}", f"{-nats / math.log(2):.6f}", len(line.words) + 1, sum(line.unknown), problem
        print(line.number, *values, " ".join(line.words), sep="\t")
        if problem:
            unscored += 1
        else:
            total.add(line)
    return total, unscored


def as_table(total: TextScore, is_open: bool) -> str:
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
    ]
    per_unit = {unit: facts[f"bits_per_{unit}"] for unit in ("word", "character")}
    rows += [(f"bits per {unit}", f"{per:.4f}") for unit, per in per_unit.items() if per is not None]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value:>14}" for name, value in rows)
