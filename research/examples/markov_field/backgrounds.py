#!/usr/bin/env python3
"""Perplexity of a text under backgrounds over a field's words: the field from left to right, n-grams, mixtures.

    python backgrounds.py --text train.txt --test test.txt --field DIR [EXPRESSION …]

`FIELD` in an expression stands for `mrf:DIR`.
"""

from __future__ import annotations

import argparse
import math

import torch

from fairseq_llrnn.backgrounds.background import BoundBackground
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.ngrams.ngrams import Sentences, read_sentences
from fairseq_llrnn.prior.building import build
from fairseq_llrnn.prior.recipe import Recipe
from llrnn_research.markov_field.model import MarkovField

EXPRESSIONS = ("unigram", "ngram(2, folds=0)", "ngram(3, folds=0)", "FIELD", "0.5 FIELD plus 0.5 ngram(2, folds=0)",
               "0.5 FIELD plus 0.5 ngram(3, folds=0)")
END = SPECIALS.index("</s>")
ROWS = 64  # sentences at a time


def log_prob(background: BoundBackground, sentences: Sentences) -> float:
    """Return the log-probability of all sentences and their ends, in nats."""
    ends = sentences.lengths.cumsum()
    order = sentences.lengths.argsort()
    total = 0.0
    for begin in range(0, len(order), ROWS):
        rows = [
            sentences.tokens[ends[i] - sentences.lengths[i] : ends[i]].tolist() for i in order[begin : begin + ROWS]
        ]
        width = max(map(len, rows)) + 1
        previous = torch.tensor([[END, *row] + [END] * (width - 1 - len(row)) for row in rows])
        targets = torch.tensor([[*row, END] + [END] * (width - 1 - len(row)) for row in rows])
        state = background.start(len(rows))
        for place in range(width):
            if place:
                state = background.advance(state, previous[:, place])
            weights = background.log_weights(state).expand(len(rows), -1)
            found = weights.log_softmax(1).gather(1, targets[:, place : place + 1]).squeeze(1)
            total += float(found[[place <= len(row) for row in rows]].double().sum())
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--field", required=True, metavar="DIR")
    parser.add_argument("--text", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--test", nargs="+", required=True, metavar="FILE")
    parser.add_argument("expression", nargs="*", default=EXPRESSIONS)
    args = parser.parse_args()
    words = MarkovField.load(args.field).words.symbols
    symbols = [*SPECIALS, *(word for word in words if word not in SPECIALS)]
    print("| background | perplexity |\n|---|---|")
    for expression in args.expression:
        named = expression.replace("FIELD", f"mrf:{args.field}")
        options = Recipe(text=args.text, top_words=0, background=named)
        built = build(symbols, options)
        test = read_sentences(args.test, built.words, 1)
        test = test.chosen(test.lengths > 0)
        with torch.no_grad():
            nats = log_prob(built.prior.background().bind(), test)
        print(f"| {expression} | {math.exp(-nats / int(test.lengths.sum() + len(test))):.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
