"""Open classes: which unknown words are alike, from the rare words of a text.

A word that occurs once could as well have been unseen, so rare words show what unknown words are like. There is a class
for every bundle of features that many of them share (feminine plural nouns, names with a capital), one for what is left
of a part of speech, and one for the rest. Numbers and punctuation are told by their spelling.

Sizes: n rare words, O classes.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.lexicon.morphemes import GROUPS
from fairseq_llrnn.open_vocabulary.numbers import is_number

LEAST_TYPES = 50  # rare words of a class of its own
NUMBER, PUNCTUATION, CAPITALISED, OTHER = "number", "punctuation", "capitalised", "other"
# What a spelling says is no analysis: two nouns are of one class whatever their suffixes, morphemes and lemmas are.
SURFACE = frozenset("NOTTOP TOPFORM SPECIAL Shape Suffix Pattern Piece Evidence Open Lemma".split()) | frozenset(GROUPS)
MAIN = "POS"
LIKELY = 0.5

Key = tuple[str, ...]  # a kind of spelling (one of the four above), and the names of features


@dataclass(frozen=True)
class OpenClasses:
    """Which class each rare word is of."""

    names: tuple[str, ...]  # O
    numbers: np.ndarray  # (O,) bool, whether its words are numbers
    class_of: np.ndarray  # (n,) int64


def kind_of(word: str) -> str:
    """What the spelling says of a word."""
    if is_number(word):
        return NUMBER
    if all(unicodedata.category(c)[0] in "PS" for c in word):
        return PUNCTUATION
    return CAPITALISED if word[:1].isupper() or word[:1].istitle() else OTHER


def open_classes(
    words: Sequence[str], features: Sequence[Mapping[str, float]], least_types: int = LEAST_TYPES
) -> OpenClasses:
    """The classes of rare words with these features; one at least.

    Args:
        words: (n,). features: of each word, by name. least_types: words that make a class.
    """
    finest = [_keys(word, row) for word, row in zip(words, features, strict=True)]
    chosen: list[Key] = [()] * len(words)
    waiting = list(range(len(words)))
    for level in range(3):  # the whole bundle; its part of speech; the kind of spelling
        sizes = Counter(finest[i][level] for i in waiting)
        for i in waiting:
            if sizes[finest[i][level]] >= least_types:
                chosen[i] = finest[i][level]
        waiting = [i for i in waiting if not chosen[i]]
    for i in waiting:
        chosen[i] = (OTHER,)
    # numbers have a class, however few they are: no character n-gram says what a number can be
    for i, word in enumerate(words):
        if is_number(word):
            chosen[i] = (NUMBER,)
    keys = sorted({(NUMBER,), (OTHER,), *chosen})
    place = {key: o for o, key in enumerate(keys)}
    return OpenClasses(
        _names(keys),
        np.array([key == (NUMBER,) for key in keys]),
        np.array([place[key] for key in chosen], dtype=np.int64),
    )


def _keys(word: str, features: Mapping[str, float]) -> tuple[Key, Key, Key]:
    """Three keys, from the finest on."""
    kind = kind_of(word)
    bundle = sorted(name for name, value in features.items() if feature_group(name) not in SURFACE and _is(value))
    return (
        (kind, *bundle),
        (kind, *(name for name in bundle if feature_group(name) == MAIN)),
        (kind,),
    )


def _is(value: float) -> bool:
    """Whether a word has a feature; a guessed one counts from a half on."""
    return not 0.0 < value < LIKELY


def _names(keys: Sequence[Key]) -> tuple[str, ...]:
    """Short names, each given once: the values of the features, the part of speech first."""
    names: list[str] = []
    for kind, *bundle in keys:
        ordered = sorted(bundle, key=lambda name: feature_group(name) != MAIN)
        values = [name.partition(":")[2] for name in ordered]
        name = ".".join(values if kind == OTHER and values else [kind, *values])
        names.append(name if name not in names else "+".join([kind, *bundle]))
    return tuple(names)
