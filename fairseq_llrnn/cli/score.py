"""`llrnn score`: score a text with a language model: bits per word and per character, surprisals of words."""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fairseq_llrnn.cli.model_options import PARTS, add_places, need_fairseq, places_in, value_of
from fairseq_llrnn.cli.places import STDIN, check_text, text_lines
from fairseq_llrnn.cli.tables import note, plural, say_notes, warn
from fairseq_llrnn.errors import OptionError, check_least, check_unused_options, need_library
from fairseq_llrnn.evaluation.scoring_model import Surprisal, surprisals_of
from fairseq_llrnn.evaluation.texts import NATS, LineScore, TextScore, perplexity, sum_of
from fairseq_llrnn.evaluation.training_words import training_words, words_of_text
from fairseq_llrnn.features.subwords import CONVENTIONS, Convention
from fairseq_llrnn.features.text_check import TextCheck
from fairseq_llrnn.files.reading import is_of_transformers
from fairseq_llrnn.lexicon.language_check import unknown_remark

if TYPE_CHECKING:
    from fairseq_llrnn.evaluation.line_scorer import LineScorer
    from fairseq_llrnn.huggingface.scoring import CausalScorer

NAME = "score"
HELP = "score a text with a language model: bits per word and per character"
EXAMPLES = (
    "llrnn score --path checkpoints/checkpoint_best.pt test.txt",
    "llrnn score --path open/checkpoint_best.pt --open --json < test.txt",
    "llrnn score --prior data-bin/prior test.txt",
    "llrnn score --path checkpoints/checkpoint_best.pt --per-sentence < test.txt > scores.tsv",
    "llrnn score --path checkpoints/checkpoint_best.pt --per-word test.txt > surprisals.tsv",
)
COLUMNS = ("line", "log_p", "bits", "tokens", "unknown", "impossible", "sentence")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{HELP}. The text is tokenised, with one sentence per line."
    parser.add_argument("text", nargs="?", default=STDIN, metavar="TEXT", help="file to score (default, or -: stdin)")
    model = parser.add_argument_group("the model")
    model.add_argument(
        "--path", metavar="FILE",
        help="checkpoint of a language model, folder of `llrnn export`, or folder of transformers' save_pretrained "
        "(default: the background of --prior alone, without a network)",
    )  # fmt: skip
    add_places(model, translates=False)
    model.add_argument("--max-tokens", type=int, default=2048, metavar="N", help="tokens in a batch (default: 2048)")
    results = parser.add_argument_group("results")
    results.add_argument(
        "--open", action="store_true",
        help="score the spelling of unknown words: the exact probability of every string. The prior needs "
        "--open-vocabulary (default: score unknown words as <unk>)",
    )  # fmt: skip
    results.add_argument(
        "--per-sentence", action="store_true",
        help="print a table (TSV) with a row per line: line number, log p in nats, bits, tokens with the end, unknown "
        "words, the word of probability 0 if there is one (log p is then -inf), and the words. Sums go to stderr",
    )  # fmt: skip
    results.add_argument(
        "--per-word", action="store_true",
        help="print a table (TSV) with a row per word and per sentence end: number of the sentence, position, word, "
        "surprisal (-log p), is_seen (whether the training text has the word; empty without a training text) and "
        "is_unknown (whether the dictionary lacks it). Subword pieces are summed to words. Sums go to stderr",
    )  # fmt: skip
    results.add_argument("--unit", choices=tuple(NATS), help="unit of the surprisals of --per-word (default: bits)")
    results.add_argument(
        "--train-text", metavar="FILE",
        help="training text for --per-word (default: train.bin in the model's data folder, if it exists)",
    )  # fmt: skip
    results.add_argument(
        "--pieces", choices=tuple(CONVENTIONS),
        help="marks of subword pieces in the text of --per-word (default: those of the model's prior)",
    )  # fmt: skip
    results.add_argument("--json", action="store_true", help="print the sums as JSON")


def run(args: argparse.Namespace) -> int:
    check_least("--max-tokens", args.max_tokens, 1)
    _check_tables(args)
    check_text(args.text)
    if args.train_text is not None:
        check_text(args.train_text)
    scorer = _load(args)
    if args.open and not scorer.has_open_vocabulary:
        if args.path is not None and is_of_transformers(args.path):
            raise OptionError(
                f"--open needs a model of llrnn train, {args.path} is one of transformers, which spells no unknown "
                "words; remove --open"
            )
        build = "build it" if args.path is None else "train it again with a prior"
        raise OptionError(
            f"--open needs an open vocabulary, {args.path or args.prior} has none; {build} of `llrnn prior "
            "--open-vocabulary characters`, or remove --open"
        )
    check = TextCheck(scorer.vocabulary or ())
    lines = scorer.lines(text_lines(args.text), args.open)
    if scorer.vocabulary is not None:
        lines = _checked(lines, check)
    convention = CONVENTIONS.get(args.pieces or scorer.pieces or "")
    print_line: Callable[[LineScore, str], None] | None = None
    if args.per_sentence:
        print(*COLUMNS, sep="\t")
        print_line = _print_sentence
    elif args.per_word:
        print_line = _word_table(args, scorer.dictionaries, convention)
    without_score: list[int] = []
    if print_line is not None:
        lines = _printed(lines, print_line, without_score)
    total, unscored = sum_of(lines, convention), len(without_score)
    _print_notes(args, total, unscored, check, scorer.has_open_vocabulary)
    facts = {**total.facts(), **({} if print_line is None else {"unscored_lines": unscored}), "open": args.open}
    prior_line = [] if scorer.prior is None else [f"prior  {scorer.prior}"]
    print(
        json.dumps({**facts, "prior": scorer.prior}, ensure_ascii=False)
        if args.json
        else "\n".join([as_table(total, args.open), *prior_line]),
        file=sys.stdout if print_line is None else sys.stderr,
    )
    return 0


def _load(args: argparse.Namespace) -> "LineScorer | CausalScorer":
    """Load the model of --path, of fairseq or of transformers, or the background of --prior."""
    if args.path is None:
        if args.prior is None:
            raise OptionError("expected --path MODEL, or --prior PRIOR to score by its background alone, found neither")
        check_unused_options(
            {part: value_of(args, "", part) for part in PARTS if part != "prior"},
            "it needs a model, and there is no --path; add --path, or remove this option",
        )
        from fairseq_llrnn.evaluation.prior_scorer import PriorScorer
        from fairseq_llrnn.prior.prior import Prior

        return PriorScorer(Prior.load(args.prior), args.max_tokens)
    if not is_of_transformers(args.path):
        need_fairseq()
        from fairseq_llrnn.plugin.scoring.text_bits import load_text_scorer

        return load_text_scorer(args.path, args.max_tokens, places_in(args))
    check_unused_options(
        {part: value_of(args, "", part) for part in PARTS},
        f"it needs a model of fairseq, but {args.path} is one of transformers; remove this option",
    )
    need_library(args.path, "transformers", "hf")
    from fairseq_llrnn.huggingface.loading import load_scorer

    scorer = load_scorer(args.path, args.max_tokens)
    if scorer.translates:
        raise OptionError(
            f"{args.path}: expected a language model, found a translation model; score translations in Python: "
            "fairseq_llrnn.load(folder).score(lines, source=sources)"
        )
    return cast("CausalScorer", scorer)


def _checked(lines: Iterable[LineScore], check: TextCheck) -> Iterator[LineScore]:
    """Yield the lines unchanged, and add their words to `check`."""
    for line in lines:
        check.add((word, 1) for word in line.words)
        yield line


def _check_tables(args: argparse.Namespace) -> None:
    if args.per_word and args.per_sentence:
        raise OptionError("--per-word and --per-sentence exclude each other; remove one of them")
    for option in ("unit", "train_text"):
        if getattr(args, option) is not None and not args.per_word:
            raise OptionError(f"--{option.replace('_', '-')} needs --per-word; add --per-word, or remove the option")


def _word_table(
    args: argparse.Namespace, dictionaries: Sequence[Path], convention: Convention | None
) -> Callable[[LineScore, str], None]:
    """Print the header of the table of words, and return the function that prints the rows of a line.

    Args:
        dictionaries: dictionaries in the model's data folder, perhaps none.
    """
    training = None
    if args.train_text is not None:
        training = words_of_text(args.train_text, convention)
    elif dictionaries:
        training = training_words(dictionaries[0], convention)
    if training is None:
        note("no training text found, so that is_seen is empty; pass the text with --train-text FILE")
    print(*Surprisal._fields, sep="\t")

    def print_words(line: LineScore, problem: str) -> None:
        if line.too_long_for is None:  # otherwise no word of the line has a score
            for row in surprisals_of(line, args.unit or "bits", training, convention):
                print(row.to_tsv())

    return print_words


def _print_sentence(line: LineScore, problem: str) -> None:
    nats = line.log_prob
    values = f"{nats:.6f}", f"{-nats / math.log(2):.6f}", len(line.words) + 1, sum(line.unknown), problem
    print(line.number, *values, " ".join(line.words), sep="\t")


def _print_notes(
    args: argparse.Namespace, total: TextScore, unscored: int, check: TextCheck, can_open: bool
) -> None:
    """Print notes on unknown words and on lines without a score. Raises OptionError if the text has no lines."""
    name, file = ("stdin", None) if args.text == STDIN else (args.text, args.text)
    if not total.sentences + unscored:
        raise OptionError(
            f"expected a text, found none{' on' if file is None else ' in'} {name}; write one sentence per line"
        )
    advice = check.advice(name, file)
    if advice is not None:
        warn(advice)
    say_notes(unknown_remark(name, check.unknown, check.words, args.open, check.explains_most(), can_open))
    if total.empty_lines:
        note(f"{plural(total.empty_lines, 'line')} without words; only the sentence end of each is scored")
    if unscored:
        note(f"{plural(unscored, 'line')} without a score are not in the sums")


def _printed(
    lines: Iterable[LineScore], print_line: Callable[[LineScore, str], None], without_score: list[int]
) -> Iterator[LineScore]:
    """Print the rows of each line, and yield the lines with a score. The numbers of others go to `without_score`."""
    for line in lines:
        problem = ""
        if line.too_long_for is not None:
            problem = f"more than {line.too_long_for} words"
        elif (place := line.impossible) is not None:
            problem = f"word {place + 1}: {line.word(place)}"
        print_line(line, problem)
        if problem:
            without_score.append(line.number)
        else:
            yield line


def as_table(total: TextScore, is_open: bool) -> str:
    """Return the sums, and the bits per word and per character, as a table."""
    facts = total.facts()
    rows = [
        ("sentences", f"{total.sentences:,}"),
        ("words", f"{total.words:,}"),
        ("  outside the dictionary", f"{total.unknown_words:,}"),
        ("characters, with blanks and line ends", f"{total.characters:,}"),
        ("bits", f"{total.bits:,.1f}"),
        ("  words of the dictionary", f"{total.known_bits:,.1f}"),
        ("  unknown words, as <unk>", f"{total.unknown_bits:,.1f}"),
        *([("  their spelling", f"{total.spelling_bits:,.1f}")] if is_open else []),
        ("  line ends", f"{total.end_bits:,.1f}"),
    ]
    per_unit = {unit: facts[f"bits_per_{unit}"] for unit in ("word", "character")}
    rows += [(f"bits per {unit}", f"{per:.4f}") for unit, per in per_unit.items() if per is not None]
    if total.unknown_words and not is_open:  # <unk> has no characters
        rows[-1] = ("bits per character", "not defined")
    if not is_open and total.sentences:
        rows.append(("bits per token, the loss of eval-lm", f"{facts['bits_per_token']:.4f}"))
        rows.append(("perplexity of tokens", f"{perplexity(facts['bits_per_token']):,.2f}"))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value:>14}" for name, value in rows)
