"""NEXT by a rule without learning: the candidate that shares most with the context is next.

    shared_words.py --data DIR [--split test]

A shared word has more weight the fewer sentences of the split contain it (the logarithm). The sum is divided by the
root of the candidate's length. DIR is the output of `llrnn discourse`.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from fairseq_llrnn.errors import DataError, one_line_errors
from llrnn_research.discourse.data import CONTEXT, Split, load_split


def accuracy(split: Split) -> float:
    """Return the fraction of NEXT examples that the rule answers. Of equal candidates, it takes the first."""
    examples = split.examples["next"]
    words = [frozenset(split.sentence(number).tolist()) for number in range(len(split.ends))]
    counts = np.bincount([word for sentence in words for word in sentence], minlength=1)
    weight = np.log(len(words) / np.maximum(counts, 1))
    lengths = split.lengths()
    right = 0
    for row in examples:
        context = frozenset().union(*(words[number] for number in row[:CONTEXT]))
        scores = [weight[list(context & words[i])].sum() / np.sqrt(lengths[i]) for i in row[CONTEXT:-1]]
        right += int(np.argmax(scores) == row[-1])
    return right / len(examples)


def show(data: Path, name: str) -> int:
    split = load_split(data, name)
    if not len(split.examples["next"]):
        raise DataError(f"{data}: expected NEXT examples in {name}, found none; choose another --split")
    print(f"NEXT by shared words: {accuracy(split):.1%} of {len(split.examples['next']):,}")
    return 0


@one_line_errors("shared_words.py")
def main() -> int:
    parser = argparse.ArgumentParser(description="NEXT by shared words")
    parser.add_argument("--data", type=Path, required=True, help="what `llrnn discourse` wrote")
    parser.add_argument("--split", default="test", help="(default: test)")
    args = parser.parse_args()
    return show(args.data, args.split)


if __name__ == "__main__":
    sys.exit(main())
