"""The rare words that open classes were made of, so that training can spell each of them by a model that lacks it.

Sizes: n rare words, O open classes, K = FOLDS parts of them.

Character n-grams know the words that they were counted from. A network that is trained beside them on these very words
would learn to trust them too much. So every rare word is in one of K parts, by a hash of its letters, and training asks
the distributions P_o^{−k} that were estimated without its part (cross-fitting):

    P_o^{−k}(w) / (1 − Σ_{v ∈ V ∖ w} P_o^{−k}(v))            w a rare word of part k

Classes, alphabet and numbers are those of all rare words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from fairseq_llrnn.open_vocabulary.alphabet import Alphabet, is_text
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.strings import StringDistributions

FOLDS = 5


@dataclass(frozen=True)
class RareWords:
    """Rare words and their classes, and what their parts lack of a dictionary."""

    words: tuple[str, ...]  # n
    classes: np.ndarray  # (n,) int64
    log_outside: np.ndarray  # (K, O) float64, log(1 − Σ_{v ∈ V} P_o^{−k}(v))
    _without: dict[int, StringDistributions] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls, words: Sequence[str], classes: np.ndarray, strings: StringDistributions, known: Sequence[str]
    ) -> RareWords:
        """The rare words that `strings` were estimated from, beside a dictionary of `known` words."""
        empty = cls(tuple(words), classes, np.zeros((FOLDS, strings.num_classes)))
        outside = [empty.without(strings, k).log_outside(known) for k in range(FOLDS)]
        return cls(empty.words, classes, np.stack(outside), empty._without)

    def without(self, strings: StringDistributions, fold: int) -> StringDistributions:
        """The distributions that were estimated without a part; `strings` are those of all words."""
        if fold not in self._without:
            kept = [i for i, word in enumerate(self.words) if fold_of(word) != fold]
            whole = strings.characters
            characters = CharacterNGrams.train(
                [self.words[i] for i in kept], self.classes[kept], whole.num_classes, len(whole.levels), whole.alphabet
            )
            self._without[fold] = StringDistributions(characters, strings.numbers, strings.geometric)
        return self._without[fold]

    def arrays(self) -> dict[str, np.ndarray]:
        """For the prior's arrays."""
        letters = np.array([ord(c) for word in self.words for c in word], dtype=np.int64)
        lengths = np.array([len(word) for word in self.words], dtype=np.int64)
        return {
            "rare_letters": letters,
            "rare_lengths": lengths,
            "rare_classes": self.classes,
            "rare_log_outside": self.log_outside.flatten(),
        }


def fold_of(word: str) -> int:
    """The part of a word, the same in every process."""
    return crc32(word.encode("utf-8", "surrogatepass")) % FOLDS


def read_rare_words(arrays: Mapping[str, np.ndarray], num_classes: int, alphabet: Alphabet) -> RareWords:
    """Rare words from what `arrays` gave, whose kinds and numbers of dimensions are known to be right.

    Raises:
        ValueError: they are none; it is untrusted input.
    """
    letters, lengths, classes = (arrays[f"rare_{name}"] for name in ("letters", "lengths", "classes"))
    log_outside = arrays["rare_log_outside"]
    if len(classes) != len(lengths) or (lengths < 1).any() or lengths.sum() != len(letters):
        raise ValueError("the rare words: the parts do not add up to the whole")
    if not np.isin(letters, alphabet.characters).all() or ((classes < 0) | (classes >= num_classes)).any():
        raise ValueError("the rare words point outside their tables")
    if len(log_outside) != FOLDS * num_classes or not (np.isfinite(log_outside) & (log_outside <= 0.0)).all():
        raise ValueError("the shares of the rare words are none")
    whole = "".join(map(chr, letters.tolist()))
    ends = np.cumsum(lengths).tolist()
    words = tuple(whole[start:end] for start, end in zip([0, *ends], ends, strict=False))
    if not all(is_text(word) for word in words) or len(set(words)) != len(words):
        raise ValueError("the rare words are no words, or some of them are there twice")
    return RareWords(words, classes, log_outside.reshape(FOLDS, num_classes))
