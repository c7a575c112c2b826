#!/usr/bin/env python3
"""Compare two ways to write a copied string over pieces: as its slot, or piece by piece.

    python scripts/two_ways_to_write.py --path checkpoint.pt --source test.pieces.en --target test.pieces.fr

For the sentences whose target has such strings, in nats per sentence: the sequence with slots, the one in pieces (for
all of its strings, the two extremes), and the ratio of the latter to the sum of both probabilities. Texts are in
pieces, as in training.
"""

import argparse
import logging
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # if the package is not installed
logging.getLogger("fairseq").setLevel(logging.WARNING)  # before the import, which logs

from fairseq_llrnn.errors import DataError, LLRNNError  # noqa: E402
from fairseq_llrnn.files.text_lines import check_as_long, iter_lines  # noqa: E402


def measure(path: str, source: str, target: str) -> str:
    """Return the report. Raises DataError for texts of different lengths, or without a string of two ways."""
    from fairseq_llrnn.plugin.compat.loading import encode
    from fairseq_llrnn.plugin.scoring.sentences import load_scorer

    texts = [[line for _, line in iter_lines(place)] for place in (source, target)]
    check_as_long(source, target, *map(len, texts))
    scorer = load_scorer(path, 4000)
    task, retokenize = scorer.task, getattr(scorer.task, "retokenize", lambda _, tokens: tokens)
    pairs = []
    for pair in zip(*texts, strict=True):
        read, tokens = (encode(d, line.split()) for d, line in zip(_dictionaries(task), pair, strict=True))
        if len(retokenize(read, tokens)) < len(tokens):
            pairs.append(pair)
    if not pairs:
        raise DataError(f"{target}: expected strings of several pieces that the source offers, found none")
    sources, targets = map(list, zip(*pairs, strict=True))
    slots = scorer.score(sources, targets)
    task.retokenize = lambda _, tokens: tokens
    pieces = scorer.score(sources, targets)
    shares = [1 / (1 + math.exp(min(s - p, 700.0))) for s, p in zip(slots, pieces, strict=True)]
    rows = [
        ("sentences", f"{len(pairs):,}"),
        ("… of which pieces are more probable", f"{sum(share > 0.5 for share in shares):,}"),
        ("nats with slots", f"{-sum(slots) / len(pairs):.2f}"),
        ("nats in pieces", f"{-sum(pieces) / len(pairs):.2f}"),
        ("share of the way in pieces, mean", f"{sum(shares) / len(pairs):.2e}"),
    ]
    return "\n".join(f"{name:<36} {value:>10}" for name, value in rows)


def _dictionaries(task: object) -> tuple[object, object]:
    return task.source_dictionary, task.target_dictionary  # type: ignore[attr-defined]


def main() -> int:
    parser = argparse.ArgumentParser(description="Evidence over pieces: a slot, or its pieces one by one.")
    parser.add_argument("--path", required=True, help="checkpoint of a translation model with evidence over pieces")
    parser.add_argument("--source", required=True, help="sentences in pieces")
    parser.add_argument("--target", required=True, help="their translations in pieces")
    args = parser.parse_args()
    try:
        print(measure(args.path, args.source, args.target))
    except LLRNNError as error:
        print(f"two_ways_to_write: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
