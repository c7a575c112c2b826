#!/usr/bin/env python3
"""Measure processor time and memory of the bound for many words, and the bound after some steps of training.

python many_words.py --text train.txt [--words 10000] [--orders 1 2] [--steps 10]
"""

from __future__ import annotations

import argparse
import resource
import time

import torch

from llrnn_research.markov_field.learning import Learner, Plan
from llrnn_research.markov_field.moments import count_moments
from llrnn_research.markov_field.objective import Objective
from llrnn_research.markov_field.potentials import Form
from llrnn_research.markov_field.vocabulary import words_of_text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", required=True, metavar="FILE")
    parser.add_argument("--words", type=int, default=10_000, metavar="V")
    parser.add_argument("--width", type=int, default=30, metavar="D")
    parser.add_argument("--orders", nargs="+", type=int, default=[1, 2], metavar="K")
    parser.add_argument("--steps", type=int, default=10, metavar="N")
    args = parser.parse_args()
    words = words_of_text([args.text], args.words)
    text = words.read([args.text])
    print("| K | kinds of tokens | s for the bound and its gradient | GiB at most | bound at first | after steps | s |")
    print("|---|---|---|---|---|---|---|")
    for order in sorted(args.orders):  # memory is that of the process so far
        form = Form("uw", order, torch.zeros(len(words.symbols), dtype=torch.float64), args.width)
        moments = count_moments(text.rows, text.lengths, words.separator, order, form.size)
        objective, seen = Objective(form, moments), moments.unary.clamp(min=1.0 / moments.tokens).log()
        parameters, delta = form.initial(1, seen), torch.zeros(order, form.size, dtype=torch.float64)
        first = objective.at(parameters, delta).bound
        begun = time.process_time()
        objective.at(parameters, delta)
        once = time.process_time() - begun
        begun = time.process_time()
        learner = Learner.begin(objective, Plan(iterations=args.steps), parameters)
        learner.run()
        climbed = time.process_time() - begun
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"| {order} | {form.size:,} | {once:.2f} | {memory:.1f} | {first:.3f} | "
            f"{learner.history[-1].bound:.3f} ({len(learner.history)}) | {climbed:.0f} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
