"""Slow and obvious n-gram models, as dictionaries of words, and models with holes, for the tests of core/ngram."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from fairseq_llrnn.automata.automaton import ROOT, Automaton
from fairseq_llrnn.features.dictionary import SPECIALS, WordList
from fairseq_llrnn.ngrams.ngrams import NGrams

Gram = tuple[str, ...]
Table = Mapping[Gram, tuple[float, float]]  # natural log p and back-off weight


def word_list(text: str) -> WordList:
    """A dictionary of these words, the first one the most frequent."""
    words = text.split()
    return WordList((*SPECIALS, *words), np.array([0] * 4 + [len(words) - i for i in range(len(words))]))


def thinned(model: NGrams, rng: np.random.Generator) -> NGrams:
    """Without some n-grams of order ≥ 2 that no other goes on from: suffixes of others may be among them."""
    goes_on = np.zeros(len(model), dtype=bool)
    goes_on[model.histories[model.starts[1] :]] = True
    kept = goes_on | (rng.random(len(model)) < 0.5)
    kept[: model.starts[1]] = True
    return model.only(kept)


def orders_of(model: NGrams) -> np.ndarray:
    """(E,) how many words an n-gram has."""
    return np.repeat(np.arange(1, model.order + 1), np.diff(model.starts))


def table_of(model: NGrams) -> Table:
    """The n-grams of a model, spelled."""
    orders = orders_of(model)
    return {
        tuple(model.words[w] for w in model.spelled(np.array([e]), int(orders[e]))[0]): (
            float(model.log_probs[e]),
            float(model.back_offs[e]),
        )
        for e in range(len(model))
    }


def log_prob(table: Table, history: Gram, word: str) -> float:
    """log p(w | h) by the definition of a back-off model."""
    if (*history, word) in table:
        return table[*history, word][0]
    assert history, word
    return table.get(history, (0.0, 0.0))[1] + log_prob(table, history[1:], word)


def automaton_log_prob(automaton: Automaton, log_root: np.ndarray, state: int, token: int) -> tuple[float, int]:
    """log b(q, x) and the next state, by the definition."""
    total = 0.0
    while state != ROOT:
        arcs = automaton.row(state)
        if token in arcs:
            weight, after = arcs[token]
            return total + weight, after
        total += float(automaton.back_off[state])
        state = int(automaton.fail[state])
    return total + float(log_root[token]), int(automaton.root_next[token])


def kneser_ney(
    sentences: Sequence[Sequence[str]], predictable: Sequence[str], order: int, prune: Sequence[int] = (),
    unigrams: Mapping[str, float] | None = None,
) -> dict[Gram, float]:  # fmt: skip
    """p(w | h) of every n-gram that is kept, by Chen & Goodman's formulas, word by word."""
    raw: dict[Gram, int] = defaultdict(int)
    for sentence in sentences:
        text = ("<s>", *sentence, "</s>")
        for begin, end in itertools.combinations(range(len(text) + 1), 2):
            if end - begin <= order:
                raw[text[begin:end]] += 1
    before: dict[Gram, set[str]] = defaultdict(set)
    for gram in raw:
        before[gram[1:]].add(gram[0])
    adjusted = {
        gram: count if len(gram) == order or gram[0] == "<s>" else len(before[gram])
        for gram, count in raw.items()
        if gram != ("<s>",)
    }
    discount: dict[int, list[float]] = {}
    for n in range(1, order + 1):
        n_of = [sum(len(g) == n and a == i for g, a in adjusted.items()) for i in range(5)]
        discount[n] = [0.5, 1.0, 1.5]
        if all(n_of[1:4]):
            y = n_of[1] / (n_of[1] + 2 * n_of[2])
            found = [i - (i + 1) * y * n_of[i + 1] / n_of[i] for i in (1, 2, 3)]
            if all(0 < d <= i for i, d in enumerate(found, 1)):
                discount[n] = found

    def kept(gram: Gram) -> bool:
        return len(gram) == 1 or not prune or raw[gram] > prune[min(len(gram), len(prune)) - 1]

    def parts(gram: Gram) -> tuple[float, float]:
        """What is left of an n-gram's count, and what is taken away."""
        count = adjusted[gram]
        left = max(count - discount[len(gram)][min(count, 3) - 1], 0.0) if kept(gram) else 0.0
        return left, count - left

    followers: dict[Gram, list[Gram]] = defaultdict(list)
    for gram in adjusted:
        followers[gram[:-1]].append(gram)

    def probability(gram: Gram) -> float:
        history = gram[:-1]
        if not history and unigrams is not None:
            return unigrams[gram[0]]
        lower = probability(gram[1:]) if history else 1.0 / len(predictable)
        grams = followers[history]
        if not grams:
            return lower
        total = sum(adjusted[g] for g in grams)
        freed = sum(parts(g)[1] for g in grams)
        own = parts(gram)[0] if gram in adjusted else 0.0
        return own / total + freed / total * lower

    grams = [g for g in adjusted if len(g) > 1 and kept(g)] + [(w,) for w in predictable]
    return {gram: probability(gram) for gram in grams}


def histories(words: Sequence[str], longest: int) -> list[Gram]:
    """All histories of up to so many words, those that begin a sentence too."""
    inner = [h for n in range(longest + 1) for h in itertools.product(words, repeat=n)]
    return inner + [("<s>", *h) for h in inner if len(h) < longest]


def total(table: Table, history: Gram, words: Sequence[str]) -> float:
    return math.fsum(math.exp(log_prob(table, history, word)) for word in words)
