#!/usr/bin/env python3
"""Measure the processor time of the bound over the signatures of a prior, and over its words.

python signatures.py --text train.txt [--words 10000] [--width 20]
"""

from __future__ import annotations

import argparse
import time

import torch

from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.recipe import Recipe
from llrnn_research.markov_field.moments import count_moments
from llrnn_research.markov_field.objective import Objective
from llrnn_research.markov_field.potentials import Form
from llrnn_research.markov_field.vocabulary import words_of_prior, words_of_text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", required=True, metavar="FILE")
    parser.add_argument("--words", type=int, default=10_000, metavar="V")
    parser.add_argument("--top-words", type=int, default=500, metavar="M", help="words with an identity")
    parser.add_argument("--width", type=int, default=20, metavar="D")
    args = parser.parse_args()
    words = words_of_text([args.text], args.words)
    symbols = [*SPECIALS, *(word for word in words.symbols if word not in SPECIALS)]
    prior = build_prior(symbols, Recipe(text=args.text, top_words=args.top_words, shapes=True, suffixes=20))
    of_prior, class_weights, features = words_of_prior(prior, "the prior")
    offset = torch.zeros(len(words.symbols), dtype=torch.float64)
    print("| kinds of tokens | seconds of processor time |\n|---|---|")
    for known, form in (
        (of_prior, Form("uw", 1, class_weights, args.width, features)),
        (words, Form("uw", 1, offset, args.width)),
    ):
        text = known.read([args.text])
        objective = Objective(form, count_moments(text.rows, text.lengths, known.separator, 1, form.size))
        parameters, delta = form.initial(), torch.zeros(1, form.size, dtype=torch.float64)
        objective.at(parameters, delta)  # the first one is slower
        begun = time.process_time()
        objective.at(parameters, delta)
        print(f"| {form.size:,} | {time.process_time() - begun:.3f} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
