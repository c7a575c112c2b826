"""Unknown words to train with, where the text has none: invented strings in the place of words and their translations.

A model learns what to do with an unknown word from examples of it. Rare names and numbers give few, in few places of a
sentence; so training puts invented strings into both sides of a pair, where a word and its translation stand once each.
(Luong et al. 2015 mark the unknown words of a text alike on both sides for the same reason.)

Sizes: U source words, V target words.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np

from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.features.subwords import Convention

POOL = 500  # invented strings of a kind
LEAST_PROBABILITY = 0.3  # t(x | s) of a word and its translation
MOST_FREQUENT = 0.02  # b₀(x): more frequent words are articles and the like, in whose place no name stands
ONSETS = "b c d f g h j k l m n p r s t v w z br ch cl dr fr gr kr pl sh st tr".split()
VOWELS = "a e i o u ai au ee ou".split()
ENDINGS = ("", "n", "r", "s", "t", "ck", "ng")


def invented_words(rules: EvidenceRules, vocabulary: Container[str], seed: int) -> list[str]:
    """Strings that no dictionary has, of each of the kinds that can be invented: numbers, names and copies.

    Args:
        vocabulary: the words of both dictionaries.
    """
    random = np.random.default_rng(seed)
    invented: list[str] = []
    for kind, draw in (("numbers", _number), ("names", _name), ("copies", _word)):
        if kind not in rules.kinds:
            continue
        new: dict[str, None] = {}  # a set that keeps the order
        while len(new) < POOL:
            word = draw(random)
            evidence = rules.find(word, vocabulary)
            if word not in vocabulary and evidence is not None and evidence.words == (word,):
                new[word] = None
        invented += new
    return invented


def _number(random: np.random.Generator) -> str:
    digits = int(random.integers(1, 6))
    value = int(random.integers(10 ** (digits - 1), 10**digits))
    decimals = random.random() < 0.1
    return f"{value}.{int(random.integers(1, 100))}" if decimals else str(value)


def _word(random: np.random.Generator) -> str:
    syllables = int(random.integers(2, 5))
    return "".join(f"{random.choice(ONSETS)}{random.choice(VOWELS)}" for _ in range(syllables)) + str(
        random.choice(ENDINGS)
    )


def _name(random: np.random.Generator) -> str:
    return _word(random).capitalize()


def in_pieces(word: str, convention: Convention, pieces: Container[str]) -> list[str] | None:
    """A word in pieces, each the longest that there is; None where the pieces lack one of its characters.

    No segmenter need be at hand; its own pieces are often the same, and else training sees others than it makes.
    """
    text = convention.whole(word)
    split: list[str] = []
    begin = 0
    while begin < len(text):
        for end in range(len(text), begin, -1):
            goes_on = not convention.mark_begins and end < len(text)
            piece = convention.mark(text[begin:end]) if goes_on else text[begin:end]
            if piece in pieces:
                break
        else:
            return None
        split.append(piece)
        begin = end
    return split


def certain_translations(
    table: LexicalTable, source: Sequence[str], symbols: Sequence[str], log_weights: np.ndarray
) -> np.ndarray:
    """The translation of every source word that has a certain one, neither of them too frequent: (U,), −1 for none.

    Args:
        source, symbols: U and V words. log_weights: log b₀, (V,).
    """
    best = np.full(len(source), -1)
    some = np.flatnonzero(np.diff(table.offsets) > 0)
    first = table.offsets[some]  # the most probable translation comes first
    likely = table.probabilities[first] >= LEAST_PROBABILITY
    best[some[likely]] = table.targets[first[likely]]
    for word in np.flatnonzero(best >= 0).tolist():
        translation = int(best[word])
        letters = all(any(map(str.isalpha, w)) for w in (source[word], symbols[translation]))
        if not letters or np.exp(log_weights[translation]) > MOST_FREQUENT:
            best[word] = -1
    return best
