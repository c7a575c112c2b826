"""Sentences to which an automaton gives probability zero: training on one would have an infinite loss.

Sizes: n sentences, N pairs of a state and a token, V words.
"""

from __future__ import annotations

import numpy as np

from fairseq_llrnn.automata.automaton import END, NOTHING, ROOT, Automaton
from fairseq_llrnn.ngrams.sentences import Sentences

POSSIBLE = -1


def step(automaton: Automaton, log_weights: np.ndarray, states: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """The states (N,) after `tokens` (N,); −1 where the background gives a token no weight.

    Args:
        log_weights: log b₀, (V,), where failing ends in ROOT.
    """
    here, after = states.copy(), np.full(len(states), -1, dtype=np.int64)
    while (here >= 0).any():
        on = np.flatnonzero(here >= 0)
        arcs, has_arc = automaton.find(here[on], tokens[on])
        after[on[has_arc]] = automaton.nexts[arcs[has_arc]]
        here[on] = np.where(has_arc, NOTHING, automaton.fail[here[on]])
    rooted = (here == ROOT) & np.isfinite(log_weights[tokens])
    block = np.where(tokens == END, 0, states // automaton.block_size * automaton.block_size)
    after[rooted] = (automaton.root_next[tokens] + block)[rooted]
    return after


def first_impossible(automaton: Automaton, log_weights: np.ndarray, sentences: Sentences) -> np.ndarray:
    """Where each sentence meets its first word without weight: (n,) places from 0, that of </s> being its length.

    POSSIBLE for a sentence that has some probability.
    """
    places = np.full(len(sentences), POSSIBLE, dtype=np.int64)
    if (automaton.chain_end == ROOT).all() and np.isfinite(log_weights[np.append(sentences.tokens, END)]).all():
        return places
    begins = sentences.lengths.cumsum() - sentences.lengths
    going, states = np.arange(len(sentences)), np.full(len(sentences), automaton.starts[0])
    padded = np.append(sentences.tokens, END)
    for place in range(int(sentences.lengths.max(initial=0)) + 1):
        ends = sentences.lengths[going] == place
        tokens = np.where(ends, END, padded[np.minimum(begins[going] + place, len(sentences.tokens))])
        after = step(automaton, log_weights, states, tokens)
        places[going[after < 0]] = place
        on = (after >= 0) & ~ends
        going, states = going[on], after[on]
    return places
