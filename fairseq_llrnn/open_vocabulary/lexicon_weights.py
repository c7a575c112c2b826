"""Estimate a spelling lexicon (spelling_lexicon.py): the shares of its lists, and a power of their counts.

Sizes: n rare words, K lists, O classes, V words of the dictionary.

A word that occurs once is a held-out word: the next text has unknown words of the same frequencies (Good-Turing). So
λ maximises its probability among the strings that are no *other* word of the dictionary, by EM:

    Σ_w log [ λ'_0 P_o^{−k}(w | w ∉ V∖w)  +  Σ_k λ'_ko P_k(w | w ∉ V∖w) ]

The character n-grams are those without the word's part of the rare words (classes.py). A class with few words has
nearly the shares of all classes together: STRENGTH words count for these.

P_k is proportional to count^τ. A word that is frequent elsewhere and missing in this text is rarer than its count says.
So POWERS has values below one, and the most probable one is chosen. A list without counts is uniform.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from fairseq_llrnn.open_vocabulary.classes import FOLDS, RareWords, fold_of
from fairseq_llrnn.open_vocabulary.listed_strings import ListedStrings
from fairseq_llrnn.open_vocabulary.numbers import StringDistributions
from fairseq_llrnn.open_vocabulary.spelling_lexicon import SpellingLexicon

POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
STRENGTH = 20.0  # words
STEPS = 50
LEAST_SHARE = 1e-3  # a list with a smaller share in every class is left out


def fit_lexicon(
    sources: Sequence[Mapping[str, float]], strings: StringDistributions, rare: RareWords, held_out: np.ndarray,
    dictionary: AbstractSet[str], common: AbstractSet[str],
) -> SpellingLexicon | None:  # fmt: skip
    """Return the lexicon of some lists of words, or None if it gives unknown words no probability.

    Args:
        sources: word -> count of each file.
        strings: the classes without a lexicon.
        rare: the words from which they were estimated.
        held_out: (n,) bool, the rare words that occur once.
        dictionary: V.
        common: words of the dictionary that are never read as unknown.
    """
    chosen = np.flatnonzero(held_out)
    words, of_class = [rare.words[i] for i in chosen.tolist()], rare.classes[chosen]
    letters = frozenset(map(chr, strings.characters.alphabet.characters.tolist()))
    by_characters = _held_out_probs(strings, rare, words, of_class)
    columns, lists, outside = [by_characters], list[ListedStrings](), list[float]()
    for counts in sources:
        pair = [_allowed(words_of_list, common, letters) for words_of_list in (counts, _capitalised(counts))]
        pair = [weights for weights in pair if not weights.keys() <= dictionary]
        if not pair:
            continue
        options = []
        for power in POWERS if len({*counts.values()}) > 1 else (0.0,):
            made = [ListedStrings.of(weights, power) for weights in pair]
            masses = [_outside(listed, dictionary) for listed in made]
            probs = [_without_others(listed, mass, words) for listed, mass in zip(made, masses, strict=True)]
            log_prob = _fit_shares(np.stack([by_characters, *probs]))[1]
            options.append((log_prob, made, masses, probs))
        _, made, masses, probs = max(options, key=lambda option: option[0])
        columns, lists, outside = [*columns, *probs], [*lists, *made], [*outside, *masses]
    if not lists:
        return None
    conditional = np.stack(columns)
    shares = _fit_by_class(conditional, of_class, strings.num_classes)  # (1 + K, O), of strings outside V
    used = np.flatnonzero((shares[1:] >= LEAST_SHARE).any(1))
    if not len(used):
        return None
    shares = _fit_by_class(conditional[[0, *(used + 1)]], of_class, strings.num_classes)
    of_characters = np.exp(strings.log_outside(list(dictionary)))
    of_lists = np.array(outside)[used, None].repeat(strings.num_classes, axis=1)
    shares = shares / np.concatenate([of_characters[None], of_lists])  # of all strings
    return SpellingLexicon(tuple(lists[i] for i in used), (shares / shares.sum(0))[1:])


def _allowed(counts: Mapping[str, float], common: AbstractSet[str], letters: frozenset[str]) -> dict[str, float]:
    """Return the words that may be unknown, of known letters."""
    return {word: count for word, count in counts.items() if word not in common and letters.issuperset(word)}


def _capitalised(counts: Mapping[str, float]) -> dict[str, float]:
    """Return the words that a capital at the beginning changes, with it."""
    weights: dict[str, float] = {}
    for word, count in counts.items():
        if (capitalised := word[:1].title() + word[1:]) != word:
            weights[capitalised] = weights.get(capitalised, 0.0) + count
    return weights


def _outside(listed: ListedStrings, dictionary: AbstractSet[str]) -> float:
    """Return the probability of the strings outside the dictionary."""
    is_outside = np.array([string not in dictionary for string in listed.strings])
    return float(listed.probs[is_outside].sum())


def _without_others(listed: ListedStrings, outside: float, words: Sequence[str]) -> np.ndarray:
    """Return P(w | w ∉ V∖w) of words of the dictionary: (n,)."""
    probs = listed.string_probs(words)
    return probs / (outside + probs)


def _held_out_probs(
    strings: StringDistributions, rare: RareWords, words: Sequence[str], of_class: np.ndarray
) -> np.ndarray:
    """Return P_o^{−k}(w | w ∉ V∖w) of rare words in their class: (n,)."""
    probs, folds = np.zeros(len(words)), np.array([fold_of(word) for word in words])
    for fold in range(FOLDS):
        places = np.flatnonzero(folds == fold)
        log_probs = rare.without(strings, fold).log_probs([words[i] for i in places.tolist()])
        own = np.exp(log_probs[np.arange(len(places)), of_class[places]])
        probs[places] = own / (np.exp(rare.log_outside[fold, of_class[places]]) + own)
    return probs


def _fit_shares(probs: np.ndarray, mean: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Return the shares (1 + K,) of distributions with these probabilities of words (1 + K, n), and the sum of log p.

    Args:
        mean: shares that STRENGTH words have.
    """
    added = np.zeros(len(probs)) if mean is None else STRENGTH * mean
    shares = np.full(len(probs), 1.0 / len(probs)) if mean is None else mean
    for _ in range(STEPS):
        parts = shares[:, None] * probs
        totals = (parts / parts.sum(0)).sum(1) + added
        shares = totals / totals.sum()
    return shares, float(np.log(shares @ probs).sum())


def _fit_by_class(probs: np.ndarray, of_class: np.ndarray, num_classes: int) -> np.ndarray:
    """Return the shares in each class: (1 + K, n) -> (1 + K, O)."""
    mean, _ = _fit_shares(probs)
    return np.stack([_fit_shares(probs[:, of_class == o], mean)[0] for o in range(num_classes)], axis=1)
