#!/usr/bin/env python3
"""Measure the perplexity of an n-gram background on the text that it was estimated from: seen, held out and new text.

    python scripts/bench/bench_ngram_held_out.py --dict data-bin/dict.txt --train train.txt --valid valid.txt
        [--orders 1 2 3 4] [--folds 10]

Texts are tokenised, one sentence per line. Perplexity is per word, with </s>, and with words outside the dictionary as
<unk>.

    seen      the training text by the model estimated from all of it: the background of a training without folds
    held out  every training sentence by the model without its fold: the background of a training with folds
    new       the validation text by the model of all of the training text: the background after training

A background is suitable for training if the second is near the third. Order 1 is the unigram, which has no folds. The
last line is one JSON object.
"""

import argparse
import json
import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed

from measuring import clock

from fairseq_llrnn.automata.automaton import END, Automaton
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.ngrams.background import DEFAULT_FOLDS, ngram_from_text
from fairseq_llrnn.ngrams.folds import folds_of
from fairseq_llrnn.ngrams.ngrams import Sentences, read_sentences


def perplexity(automaton: Automaton, log_root: np.ndarray, sentences: Sentences, starts: np.ndarray) -> float:
    """Return the perplexity of sentences that begin in the states `starts` (n,), all read together, word by word."""
    size = np.int64(automaton.num_symbols)
    keys = np.append(automaton.keys, np.iinfo(np.int64).max)  # behind all, so that what is not found has a place
    begins = np.concatenate([[0], sentences.lengths.cumsum()])
    total, states = 0.0, starts.copy()
    for t in range(int(sentences.lengths.max()) + 1):
        alive = np.flatnonzero(sentences.lengths >= t)
        inside = sentences.lengths[alive] > t
        tokens = np.full(len(alive), END)
        tokens[inside] = sentences.tokens[begins[alive[inside]] + t]
        reached = states[alive]
        block = reached // automaton.block_size * automaton.block_size
        open_ = np.arange(len(alive))
        while len(open_):
            at_root = reached[open_] < 0
            rooted = open_[at_root]
            total += float(log_root[tokens[rooted]].sum())
            states[alive[rooted]] = automaton.root_next[tokens[rooted]] + block[rooted]
            open_ = open_[~at_root]
            sought = reached[open_] * size + tokens[open_]
            arcs = np.searchsorted(keys, sought)
            hit = keys[arcs] == sought
            total += float(automaton.log_weights[arcs[hit]].sum())
            states[alive[open_[hit]]] = automaton.nexts[arcs[hit]]
            open_ = open_[~hit]
            total += float(automaton.back_off[reached[open_]].sum())
            reached[open_] = automaton.fail[reached[open_]]
    return math.exp(-total / (len(sentences.tokens) + len(sentences)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dict", required=True, metavar="FILE", help="dict.txt of fairseq-preprocess")
    parser.add_argument("--train", required=True, nargs="+", metavar="FILE", help="the text to estimate from")
    parser.add_argument("--valid", required=True, nargs="+", metavar="FILE", help="another text")
    parser.add_argument("--orders", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--folds", type=int, default=DEFAULT_FOLDS)
    args = parser.parse_args()
    words = load_dictionary(args.dict)
    train, valid = read_sentences(args.train, words), read_sentences(args.valid, words)
    fold_of = folds_of(train, args.folds)
    print(f"{len(train):,} sentences, {len(train.tokens):,} words; {args.folds} folds")
    print("order      seen  held out       new    states      arcs   seconds")
    result = {}
    for order in args.orders:
        started = clock()
        found = ngram_from_text(train, words, order, args.folds)
        seconds = clock() - started
        automaton, root = found.automaton, found.log_weights
        first = automaton.starts[0]
        held_out = automaton.starts[1 + fold_of] if len(automaton.starts) > 1 else np.full(len(train), first)
        row = {
            "seen": perplexity(automaton, root, train, np.full(len(train), first)),
            "held_out": perplexity(automaton, root, train, held_out),
            "new": perplexity(automaton, root, valid, np.full(len(valid), first)),
        }
        values = "".join(f"{value:10.1f}" for value in row.values())
        print(f"{order:5}{values}{automaton.num_states:10,}{automaton.num_arcs:10,}{seconds:10.1f}")
        result[order] = {name: round(value, 2) for name, value in row.items()}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
