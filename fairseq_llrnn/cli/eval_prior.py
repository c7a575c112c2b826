"""`llrnn eval-lm` without --path: the figures of the background of --prior alone. It needs no fairseq."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np

from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.evaluation.tally import Tally
from fairseq_llrnn.evaluation.texts import perplexity, sum_of
from fairseq_llrnn.evaluation.training_words import training_words
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.files.binary_text import missing_split, read_binary_text


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionError(
            f"without --path, expected DATA --prior PRIOR, and perhaps --gen-subset and --max-tokens: {message}; "
            "correct this, or name a model with --path"
        )


def run(arguments: Sequence[str]) -> int:
    """Print the loss and the perplexity of a text of DATA, sentence by sentence."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("data")
    parser.add_argument("--prior", required=True)
    parser.add_argument("--gen-subset", default="test")
    parser.add_argument("--max-tokens", type=int, default=2048)
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args(arguments)
    check_least("--max-tokens", args.max_tokens, 1)
    from fairseq_llrnn.evaluation.prior_scorer import PriorScorer
    from fairseq_llrnn.prior.prior import Prior

    data = Path(args.data.split(os.pathsep)[0])
    symbols = load_dictionary(data / "dict.txt").symbols
    prior = Prior.load(args.prior)
    prior.check_dictionary(symbols, str(data / "dict.txt"))
    if not (data / f"{args.gen_subset}.idx").is_file():
        raise OptionError(missing_split(args.gen_subset, str(data)))
    tokens, lengths = read_binary_text(data / args.gen_subset, len(symbols))
    scorer = PriorScorer(prior, args.max_tokens)
    sentences = [sentence.tolist() for sentence in np.split(tokens, np.cumsum(lengths)[:-1])]
    lines = [*scorer.lines(" ".join(symbols[token] for token in sentence[:-1]) for sentence in sentences)]
    facts = sum_of(lines).facts()
    tally = Tally(
        symbols,
        CONVENTIONS.get(scorer.pieces or ""),
        training_words(data / "dict.txt", None) if scorer.pieces is None else None,
    )
    for sentence, line in zip(sentences, lines, strict=True):
        tally.add(sentence, line.log_probs)
    print(f"Loss (base 2): {facts['bits_per_token']:.4f}, Perplexity: {perplexity(facts['bits_per_token']):.2f}")
    print(*tally.lines(), f"prior {scorer.prior}", sep="\n")
    return 0
