#!/usr/bin/env python3
"""Compare joint Markov random fields with hidden Markov taggers: accuracy on all words and on unknown words.

python tagging.py --train train.conllu --test dev.conllu [--orders 1 2] [--near 1 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from hidden_markov import HiddenMarkovTagger

from llrnn_research.markov_field.tagger_training import Sentence, TaggerOptions, learn, read_tagged


def accuracy(
    tag: Callable[[Sequence[str]], list[str]], sentences: Sequence[Sentence], known: set[str]
) -> tuple[float, float, int]:
    """Return the accuracy on all words and on unknown words in percent, and the number of the latter."""
    right, all_words, right_unknown, unknown = 0, 0, 0, 0
    for sentence in sentences:
        found = tag([word for word, _ in sentence])
        for (word, tag_of_word), guess in zip(sentence, found, strict=True):
            all_words += 1
            right += guess == tag_of_word
            if word not in known:
                unknown += 1
                right_unknown += guess == tag_of_word
    return 100 * right / max(1, all_words), 100 * right_unknown / max(1, unknown), unknown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--test", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--orders", nargs="+", type=int, default=[1, 2], metavar="K")
    parser.add_argument("--near", nargs="+", type=int, default=[1, 3], metavar="M")
    parser.add_argument("--rare", type=int, default=TaggerOptions.rare, metavar="N")
    parser.add_argument("--penalty", type=float, default=TaggerOptions.penalty, metavar="P")
    parser.add_argument("--iterations", type=int, default=TaggerOptions.iterations, metavar="N")
    help = "in the search, scores of pairs of tags count so many times (default: 1, as they were learned)"
    parser.add_argument("--pairs", type=float, default=1.0, metavar="S", help=help)
    parser.add_argument("--no-baselines", action="store_true", help="fields alone")
    args = parser.parse_args()
    train, test = read_tagged(args.train), read_tagged(args.test)
    known = {word for sentence in train for word, _ in sentence}
    print("| tagger | all words | unknown words | seconds of processor time to train |\n|---|---|---|---|")

    def row(name: str, make: Callable[[], Callable[[Sequence[str]], list[str]]]) -> None:
        begun = time.process_time()
        tag = make()
        seconds = time.process_time() - begun
        total, unknown, many = accuracy(tag, test, known)
        print(f"| {name} | {total:.2f} | {unknown:.2f} (of {many:,}) | {seconds:.1f} |", flush=True)

    def field(order: int, near: int) -> Callable[[Sequence[str]], list[str]]:
        tagger = learn(train, TaggerOptions((), order, near, args.rare, args.penalty, args.iterations))
        return replace(tagger, pairs=args.pairs * tagger.pairs).tag

    if not args.no_baselines:
        row("HMM, unknown words as words that come once", lambda: HiddenMarkovTagger(train, suffixes=False).tag)
        row("HMM, unknown words by suffix (TnT)", lambda: HiddenMarkovTagger(train).tag)
    for order in args.orders:
        for near in args.near:
            row(f"field, K = {order}, M = {near}", partial(field, order, near))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
