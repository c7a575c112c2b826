"""Estimate a spelling lexicon (spelling_lexicon.py): the shares of its lists, and a power of their counts.

Sizes: n rare words, K lists, O classes, V words of the dictionary.

A word that occurs once is a held-out word: the next text has unknown words of the same frequencies (Good-Turing). So
λ maximises its probability among the strings that are no *other* word of the dictionary, by EM:

    Σ_w log [ λ'_0 P_o^{−k}(w | w ∉ V∖w)  +  Σ_k λ'_ko P_k(w | w ∉ V∖w) ]

The character n-grams are those without the word's part of the rare words (classes.py). A class with few words has
nearly the shares of all classes together: STRENGTH words count for these.

P_k of a list is proportional to count^τ. A word that is frequent elsewhere and missing in this text is rarer than its
count says. So POWERS has values below one, and the most probable one is chosen. A list without counts is uniform.

The probabilities of a hunspell dictionary are learned from the words of the text that are not held out, and from
frequent words of the lists. Their classes are guessed. P(o | w) of a held-out word is P_o^{−k}, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np

from fairseq_llrnn.open_vocabulary.affix_grammar import Grammar
from fairseq_llrnn.open_vocabulary.affixed_strings import AffixedByClass, AffixedStrings
from fairseq_llrnn.open_vocabulary.capitalised import Capitalised, StringDistribution, capitalised
from fairseq_llrnn.open_vocabulary.classes import FOLDS, ClassWords, fold_of
from fairseq_llrnn.open_vocabulary.compounds import Compounds
from fairseq_llrnn.open_vocabulary.listed_strings import ListedByClass, ListedStrings
from fairseq_llrnn.open_vocabulary.number_strings import StringDistributions
from fairseq_llrnn.open_vocabulary.spelling_classes import SpellingClasses
from fairseq_llrnn.open_vocabulary.spelling_lexicon import SpellingLexicon, by_class

POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
STRENGTH = 20.0  # words
STEPS = 50
LEAST_SHARE = 1e-3  # a distribution with a smaller share in every class is left out
LEAST_OUTSIDE = 1e-9
COMPOUND_POWER, SHORTEST_PART = 0.5, 2  # of counts; characters
EXAMPLES, LISTED_EXAMPLE = 10_000, 0.5  # words of a list from which a dictionary's probabilities are learned; weight


def fit_lexicon(
    sources: Sequence[Mapping[str, float] | Grammar], strings: StringDistributions, rare: ClassWords,
    held_out: np.ndarray, dictionary: AbstractSet[str], common: AbstractSet[str],
) -> SpellingLexicon | None:  # fmt: skip
    """Return the lexicon of some lists and dictionaries, or None if it gives unknown words no probability.

    Args:
        sources: word -> count of each list, and the grammars of hunspell dictionaries.
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
    guesses, fits = _guessed_classes(rare, words, of_class, strings.num_classes)

    def fit(distribution: StringDistribution) -> _Fitted:
        return _Fitted.of(distribution, words, of_class, fits, dictionary)

    lists = [source for source in sources if isinstance(source, Mapping)]
    fitted = list[_Fitted]()
    for counts in lists:
        pair = [_allowed(weights, common, letters) for weights in (counts, _with_capitals(counts))]
        pair = [weights for weights in pair if not weights.keys() <= dictionary]
        options = []
        for power in POWERS if len({*counts.values()}) > 1 else POWERS[:1]:
            parts = [ListedStrings.of(weights, power) for weights in pair]
            log_prob = _fit_shares(np.stack([by_characters, *(fit(part).probs for part in parts)]))[1]
            options.append((log_prob, parts))
        best = max(options, key=lambda option: option[0])[1]
        fitted += [fit(ListedByClass.of_list(part, guesses)) for part in best]
    of_compounds = _parts_of_compounds(lists, letters)
    others = list[StringDistribution]()
    if of_compounds:
        others.append(Compounds(ListedStrings.of(of_compounds, COMPOUND_POWER)))
    for source in sources:
        if not isinstance(source, Mapping):
            examples = _examples(source, lists, dictionary - {*words})
            forms = AffixedStrings.fit(source, examples)
            others.append(AffixedByClass.learn(forms, examples, guesses))
    for other in others:  # a capitalised part is stored after its origin
        fitted += [fit(other), fit(Capitalised(other))]
    if not fitted:
        return None
    conditional = np.stack([by_characters, *(part.probs for part in fitted)])
    shares = _fit_by_class(conditional, of_class, strings.num_classes)  # (1 + K, O), of strings outside V
    used = (shares >= LEAST_SHARE).any(1)
    for k, part in enumerate(fitted, 1):
        used[k] |= not isinstance(part.distribution, (ListedStrings, Capitalised)) and k + 1 < len(used) and used[k + 1]
    if not used[1:].any():
        return None
    shares = _fit_by_class(conditional[used], of_class, strings.num_classes)
    kept = [part for part, is_used in zip(fitted, used[1:], strict=True) if is_used]
    of_characters = np.exp(strings.log_outside(list(dictionary)))
    outside = np.stack([part.outside * np.ones(strings.num_classes) for part in kept])
    shares = shares / np.concatenate([of_characters[None], outside])  # of all strings
    return SpellingLexicon(tuple(part.distribution for part in kept), (shares / shares.sum(0))[1:])


class _Fitted(NamedTuple):
    """A distribution with its probabilities of held-out words."""

    distribution: StringDistribution
    outside: np.ndarray  # (O,) or (1,) Σ_{v ∉ V} P(v | o)
    probs: np.ndarray  # (n,) P(w | w ∉ V∖w) in the class of w

    @classmethod
    def of(
        cls, distribution: StringDistribution, words: Sequence[str], of_class: np.ndarray, fits: np.ndarray,
        dictionary: AbstractSet[str],
    ) -> _Fitted:  # fmt: skip
        """Return a distribution with its probabilities of words (n,) in their classes. fits: P^{−k}(o | w), (n,)."""
        outside = np.maximum(1.0 - by_class(distribution, list(dictionary)).sum(0), LEAST_OUTSIDE)
        column = of_class if len(outside) > 1 else np.zeros_like(of_class)
        if isinstance(distribution, ListedByClass):
            probs = ListedStrings.string_probs(distribution, words) * fits / distribution.totals[column]
        else:
            probs = by_class(distribution, words)[np.arange(len(words)), column]
        return cls(distribution, outside, probs / (outside[column] + probs))


def _parts_of_compounds(lists: Sequence[Mapping[str, float]], letters: frozenset[str]) -> dict[str, float]:
    """Return the words of lists that compounds consist of, with the largest of their counts relative to a list."""
    parts: dict[str, float] = {}
    for counts in lists:
        largest = max(counts.values())
        for word, count in counts.items():
            if len(word) >= SHORTEST_PART and word.isalpha() and letters.issuperset(word):
                parts[word] = max(parts.get(word, 0.0), count / largest)
    return parts


def _examples(grammar: Grammar, lists: Sequence[Mapping[str, float]], seen: AbstractSet[str]) -> dict[str, float]:
    """Return forms of a dictionary and their weights: words of the text, and the most frequent ones of each list.

    A word that is no form is replaced by the form with a small letter or a capital at its beginning.
    """
    weights: dict[str, float] = defaultdict(float)
    frequent = [sorted(counts, key=lambda word: (-counts[word], word))[:EXAMPLES] for counts in lists]
    for words, weight in ((sorted(seen), 1.0), *((listed, LISTED_EXAMPLE) for listed in frequent)):
        for word in words:
            variants = word, word[:1].lower() + word[1:], capitalised(word)
            form = next((variant for variant in variants if grammar.of_text(variant)), None)
            if form is not None:
                weights[form] += weight
    return weights


def _allowed(counts: Mapping[str, float], common: AbstractSet[str], letters: frozenset[str]) -> dict[str, float]:
    """Return the words that may be unknown, of known letters."""
    return {word: count for word, count in counts.items() if word not in common and letters.issuperset(word)}


def _with_capitals(counts: Mapping[str, float]) -> dict[str, float]:
    """Return the words that a capital at the beginning changes, with it."""
    weights: dict[str, float] = {}
    for word, count in counts.items():
        if (form := capitalised(word)) != word:
            weights[form] = weights.get(form, 0.0) + count
    return weights


def _guessed_classes(
    rare: ClassWords, words: Sequence[str], of_class: np.ndarray, num_classes: int
) -> tuple[SpellingClasses, np.ndarray]:
    """Return P(o | w), and P^{−k}(o | w) of rare words and their classes: (n,)."""
    fits, folds = np.zeros(len(words)), np.array([fold_of(word) for word in words])
    rare_folds = np.array([fold_of(word) for word in rare.words])
    for fold in range(FOLDS):
        others, places = np.flatnonzero(rare_folds != fold), np.flatnonzero(folds == fold)
        model = SpellingClasses.fit([rare.words[i] for i in others.tolist()], rare.classes[others], num_classes)
        fits[places] = model.probs([words[i] for i in places.tolist()])[np.arange(len(places)), of_class[places]]
    return SpellingClasses.fit(rare.words, rare.classes, num_classes), fits


def _held_out_probs(
    strings: StringDistributions, rare: ClassWords, words: Sequence[str], of_class: np.ndarray
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
