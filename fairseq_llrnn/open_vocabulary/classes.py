"""Open classes of unknown words, from the rare words of a text.

A word that occurs once might as well have been unseen, so rare words are a sample of unknown words. There is a class
for every frequent bundle of features (feminine plural nouns, names with a capital), one for the rest of a part of
speech, and one for the rest. The spelling identifies numbers and punctuation. Frequent words with the features of a
class teach its spelling only: an unknown word is often another form of a frequent one.

Sizes: n words, O classes, K = FOLDS parts of the words.

`ClassWords` stores the words of the classes, so that training can spell each of them with a model estimated without it.
Character n-grams give their own training words too much probability, and a network trained on these words would learn
to trust them too much. So each of them, rare or frequent, is in one of K parts, by a hash of its letters, and training
uses the distributions P_o^{−k} that were estimated without its part (cross-fitting):

    P_o^{−k}(w) / (1 − Σ_{v ∈ V ∖ w} P_o^{−k}(v))            w a word of part k

Classes and numbers are those of all rare words, the alphabet is that of all words.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from zlib import crc32

import numpy as np

from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.lexicon.morphemes import GROUPS
from fairseq_llrnn.open_vocabulary.alphabet import Alphabet, is_text
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.number_strings import StringDistributions, is_number

LEAST_TYPES = 50  # smallest number of rare words of a class
NUMBER, PUNCTUATION, CAPITALISED, OTHER = "number", "punctuation", "capitalised", "other"
# Features of the spelling are ignored: nouns with different suffixes, morphemes and lemmas are in one class.
SURFACE = frozenset("NOTTOP TOPFORM SPECIAL Shape Suffix Pattern Piece Evidence Open Lemma".split()) | frozenset(GROUPS)
MAIN = "POS"
LIKELY = 0.5

Key = tuple[str, ...]  # a kind of spelling (one of the four above), and the names of features


@dataclass(frozen=True)
class OpenClasses:
    """The open classes, and the class of each word."""

    names: tuple[str, ...]  # O
    numbers: np.ndarray  # (O,) bool, whether its words are numbers
    class_of: np.ndarray  # (n,) int64


def kind_of(word: str) -> str:
    """Return the kind of a word's spelling."""
    if is_number(word):
        return NUMBER
    if all(unicodedata.category(c)[0] in "PS" for c in word):
        return PUNCTUATION
    return CAPITALISED if word[:1].isupper() or word[:1].istitle() else OTHER


def open_classes(
    words: Sequence[str], features: Sequence[Mapping[str, float]], least_types: int = LEAST_TYPES,
    num_rare: int | None = None,
) -> OpenClasses:  # fmt: skip
    """Return the classes of words with these features, at least one.

    Args:
        words: (n,), rare ones first.
        features: of each word, by name.
        least_types: smallest number of rare words of a class.
        num_rare: number of rare words. None: all.
    """
    finest = [_keys(word, row) for word, row in zip(words, features, strict=True)]
    chosen: list[Key] = [()] * len(words)
    waiting = list(range(len(words)))
    for level in range(3):  # the whole bundle; its part of speech; the kind of spelling
        sizes = Counter(finest[i][level] for i in waiting if num_rare is None or i < num_rare)
        for i in waiting:
            if sizes[finest[i][level]] >= least_types:
                chosen[i] = finest[i][level]
        waiting = [i for i in waiting if not chosen[i]]
    for i in waiting:
        chosen[i] = (OTHER,)
    # numbers always have a class: character n-grams cannot model them
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
    """Return three keys, finest first."""
    kind = kind_of(word)
    bundle = sorted(
        name
        for name, value in features.items()
        if feature_group(name) not in SURFACE and not 0.0 < value < LIKELY  # a guessed feature counts from 0.5
    )
    return (
        (kind, *bundle),
        (kind, *(name for name in bundle if feature_group(name) == MAIN)),
        (kind,),
    )


def _names(keys: Sequence[Key]) -> tuple[str, ...]:
    """Return short unique names: the values of the features, part of speech first."""
    names: list[str] = []
    for kind, *bundle in keys:
        ordered = sorted(bundle, key=lambda name: feature_group(name) != MAIN)
        values = [name.partition(":")[2] for name in ordered]
        name = ".".join(values if kind == OTHER and values else [kind, *values])
        names.append(name if name not in names else "+".join([kind, *bundle]))
    return tuple(names)


FOLDS = 5


@dataclass(frozen=True)
class ClassWords:
    """Words of classes, rare ones first, and the mass outside a dictionary of the distributions without each part."""

    words: tuple[str, ...]  # n
    classes: np.ndarray  # (n,) int64
    log_outside: np.ndarray  # (K, O) float64, log(1 − Σ_{v ∈ V} P_o^{−k}(v))
    _without: dict[int, StringDistributions] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls, words: Sequence[str], classes: np.ndarray, strings: StringDistributions, dictionary: Sequence[str]
    ) -> ClassWords:
        """Return the words from which `strings` were estimated, for the words of a dictionary."""
        empty = cls(tuple(words), classes, np.zeros((FOLDS, strings.num_classes)))
        outside = [empty.without(strings, k).log_outside(dictionary) for k in range(FOLDS)]
        return cls(empty.words, classes, np.stack(outside), empty._without)

    def without(self, strings: StringDistributions, fold: int) -> StringDistributions:
        """Return the distributions estimated without a part. `strings`: those of all words."""
        if fold not in self._without:
            rows = [i for i, word in enumerate(self.words) if fold_of(word) != fold]
            whole = strings.characters
            characters = CharacterNGrams.train(
                [self.words[i] for i in rows], self.classes[rows], whole.num_classes, len(whole.levels), whole.alphabet
            )
            self._without[fold] = replace(strings, characters=characters)
        return self._without[fold]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays for the prior."""
        return {
            "rare_letters": np.array([ord(c) for word in self.words for c in word], dtype=np.int64),
            "rare_lengths": np.array([len(word) for word in self.words], dtype=np.int64),
            "rare_classes": self.classes,
            "rare_log_outside": self.log_outside.flatten(),
        }


def fold_of(word: str) -> int:
    """Return the part of a word, the same in every process."""
    return crc32(word.encode("utf-8", "surrogatepass")) % FOLDS


def read_class_words(arrays: Mapping[str, np.ndarray], num_classes: int, alphabet: Alphabet) -> ClassWords:
    """Return the words of `arrays`, whose types and dimensions were checked.

    Raises:
        ValueError: invalid arrays, which are untrusted input.
    """
    letters, lengths, classes = (arrays[f"rare_{name}"] for name in ("letters", "lengths", "classes"))
    log_outside = arrays["rare_log_outside"]
    if len(classes) != len(lengths) or (lengths < 1).any() or lengths.sum() != len(letters):
        raise ValueError("the words of open classes: the parts do not add up to the whole")
    if not np.isin(letters, alphabet.characters).all() or ((classes < 0) | (classes >= num_classes)).any():
        raise ValueError("the words of open classes point outside their tables")
    if len(log_outside) != FOLDS * num_classes or not (np.isfinite(log_outside) & (log_outside <= 0.0)).all():
        raise ValueError("the shares of the words of open classes are none")
    whole = "".join(map(chr, letters.tolist()))
    ends = np.cumsum(lengths).tolist()
    words = tuple(whole[start:end] for start, end in zip([0, *ends], ends, strict=False))
    if not all(is_text(word) for word in words) or len(set(words)) != len(words):
        raise ValueError("the words of open classes are no words, or some of them are there twice")
    return ClassWords(words, classes, log_outside.reshape(FOLDS, num_classes))
