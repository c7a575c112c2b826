"""`llrnn dynamic-evaluation`: score a text with a language model that learns from the text scored so far.

The loss of each group of sentences is computed before the step on it (updates.py). Dropout is off.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Sequence
from itertools import chain, product
from typing import NamedTuple

from fairseq_llrnn.cli.model_options import add_places, need_fairseq, places_in
from fairseq_llrnn.cli.places import STDIN, check_text, text_lines
from fairseq_llrnn.cli.tables import note, plural, warn
from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.features.text_check import TextCheck

NAME = "dynamic-evaluation"
HELP = "loss of a text under a language model that learns from the text scored so far"
EXAMPLES = (
    "llrnn dynamic-evaluation valid.txt --path checkpoints/checkpoint_best.pt",
    "llrnn dynamic-evaluation test.txt --path checkpoints/checkpoint_best.pt --rate 3e-4 --decay 0 --json",
)
RATES = [1e-4, 3e-4, 1e-3]
DECAYS = [0.0, 1e-3]
LARGEST_RATE = 1e3
LARGEST_NATS = 700.0  # whose perplexity is finite


class Trial(NamedTuple):
    """The loss of a text with a pair of rate and decay."""

    rate: float
    decay: float
    nats: float  # per token, including ends of sentences; ∞ if the steps diverged

    @property
    def perplexity(self) -> float:
        return math.exp(self.nats) if self.nats < LARGEST_NATS else math.inf

    def facts(self) -> dict[str, float | None]:
        """Return the values for JSON, with None for ∞."""
        values = {**self._asdict(), "perplexity": self.perplexity}
        return {name: value if math.isfinite(value) else None for name, value in values.items()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{HELP} (Krause et al. 2018): after each group of sentences, do a gradient step on it, with decay towards "
        "the weights of the checkpoint; the text has a sentence a line, words separated by blanks"
    )
    parser.add_argument("text", nargs="?", default=STDIN, metavar="TEXT", help="a file; - or nothing: stdin")
    model = parser.add_argument_group("the model")
    model.add_argument("--path", required=True, metavar="FILE", help="checkpoint of --task llrnn_language_modeling")
    add_places(model, translates=False)
    steps = parser.add_argument_group("the steps (with several rates and decays, each pair is tried)")
    steps.add_argument(
        "--rate", nargs="+", type=_number, default=RATES, metavar="ETA",
        help=f"size η of a step (default: {_listed(RATES)})",
    )  # fmt: skip
    steps.add_argument(
        "--decay", nargs="+", type=_number, default=DECAYS, metavar="LAMBDA",
        help=f"λ: share of the difference from the checkpoint removed at each step (default: {_listed(DECAYS)})",
    )  # fmt: skip
    steps.add_argument("--sentences", type=int, default=1, metavar="N", help="sentences of a group (default: 1)")
    steps.add_argument("--max-tokens", type=int, default=2048, metavar="N", help="tokens of a group (default: 2048)")
    statistics = parser.add_argument_group("mean squares of gradients in training")
    statistics.add_argument(
        "--subset", default="train", metavar="NAME", help="part of the data folder used for gradients (default: train)"
    )
    statistics.add_argument(
        "--groups", type=int, default=500, metavar="N",
        help="number of random groups of its sentences (or of its blocks, for models of blocks) (default: 500)",
    )  # fmt: skip
    statistics.add_argument(
        "--epsilon", type=float, default=1e-3, metavar="E",
        help="added to the roots of the mean squares (default: 0.001)",
    )  # fmt: skip
    results = parser.add_argument_group("results")
    results.add_argument("--json", action="store_true", help="print the losses as JSON")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        message = f"expected a number, found {text!r}; give the name of a text before the options"
        raise argparse.ArgumentTypeError(message) from None


def _listed(numbers: Sequence[float]) -> str:
    return " ".join(f"{number:g}" for number in numbers)


def run(args: argparse.Namespace) -> int:
    _check(args)
    check_text(args.text)
    need_fairseq()
    from fairseq_llrnn.evaluation.texts import sum_of
    from fairseq_llrnn.plugin.scoring.text_bits import load_text_scorer
    from fairseq_llrnn.plugin.tasks.language_modeling import LLRNNLanguageModelingTask
    from llrnn_research.dynamic_evaluation.evaluation import scored_groups, training_squares
    from llrnn_research.dynamic_evaluation.updates import Updates

    scorer = load_text_scorer(args.path, args.max_tokens, places_in(args))
    if not isinstance(scorer.task, LLRNNLanguageModelingTask):
        raise OptionError(
            f"--path {args.path}: expected a model of --task llrnn_language_modeling, found one of another task; score "
            "the text by `llrnn score`"
        )
    groups = list(scorer.batches(text_lines(args.text), args.sentences))
    if not groups:
        place = " on stdin" if args.text == STDIN else f" in {args.text}"
        raise OptionError(f"expected a text, found none{place}; write one sentence per line")
    check = TextCheck(scorer.word_index)
    check.add((word, 1) for group in groups for line in group for word in line.words)
    name, file = ("stdin", None) if args.text == STDIN else (args.text, args.text)
    if (advice := check.advice(name, file)) is not None:
        warn(advice)
    weights = [weight for weight in scorer.model.parameters() if weight.requires_grad]
    squares = training_squares(scorer, weights, args.subset, args.groups, args.sentences)
    updates = Updates(weights, squares, args.epsilon)
    static = sum_of(chain.from_iterable(scored_groups(scorer, groups, updates, 0.0, 0.0)))
    tokens = static.words + static.sentences
    trials = [Trial(0.0, 0.0, static.bits * math.log(2) / tokens)]
    for rate, decay in product(args.rate, args.decay):
        lines = chain.from_iterable(scored_groups(scorer, groups, updates, rate, decay))
        trials.append(Trial(rate, decay, -math.fsum(line.log_prob for line in lines) / tokens))
    if static.unknown_words:
        note(f"{plural(static.unknown_words, 'unknown word')} scored as <unk>")
    _print(args, trials, tokens, scorer.prior)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Raise OptionError for numbers out of range."""
    for option, values, most in (("--rate", args.rate, LARGEST_RATE), ("--decay", args.decay, 1.0)):
        for value in values:
            if not 0.0 <= value <= most:  # NaN is not
                raise OptionError(f"{option} {value:g}: expected a number from 0 to {most:g}")
    for option in ("sentences", "max_tokens", "groups"):
        check_least(f"--{option.replace('_', '-')}", getattr(args, option), 1)
    if not 0.0 < args.epsilon <= 1.0:
        raise OptionError(f"--epsilon {args.epsilon:g}: expected a number above 0, at most 1")
    if ":" in args.path and not os.path.exists(args.path):
        raise OptionError(
            f"--path {args.path}: expected one checkpoint, found {args.path.count(':') + 1}; dynamic evaluation adapts "
            "one model"
        )


def _print(args: argparse.Namespace, trials: Sequence[Trial], tokens: int, prior: str | None) -> None:
    """Print the losses of the static model, which is the first trial, and of each pair."""
    best = min(trials, key=lambda trial: trial.nats)
    if args.json:
        facts = {"sentences": args.sentences, "tokens": tokens, "static": trials[0].facts()}
        pairs = [trial.facts() for trial in trials[1:]]
        print(json.dumps({**facts, "pairs": pairs, "best": best.facts(), "prior": prior}))
        return
    print(f"{'rate':>10}  {'decay':>10}  {'nats':>10}  {'perplexity':>10}")
    for trial in trials:
        pair = ("static", "") if trial is trials[0] else (f"{trial.rate:g}", f"{trial.decay:g}")
        perplexity = f"{trial.perplexity:{'.2f' if trial.perplexity < 1e6 else '.1e'}}"
        loss = ("diverged", "") if trial.nats == math.inf else (f"{trial.nats:.4f}", perplexity)
        print("  ".join(f"{text:>10}" for text in (*pair, *loss)) + ("  best" if trial is best else ""))
    print(f"tokens  {tokens:,}, with the ends of sentences")
    if prior is not None:
        print(f"prior  {prior}")
