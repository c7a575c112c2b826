"""The distributions over strings of the open classes, including numbers, and their mass outside a dictionary.

Sizes: O classes, n strings, V words of the dictionary.

`GeometricNumbers` are strings of digits of geometric length (Dymetman & Xiao 2016, §4), with separators between
digits:

    number  =  digit ( digit | separator digit )*          2016 · 12,5 · 1.234.567

After a digit the number stops, continues with a digit, or continues with a separator and a digit. The three
probabilities sum to one. So every string has at most one derivation, and all numbers together have probability one.

In `StringDistributions`, a class of numbers is a mixture of the geometric numbers and its character n-grams. Any other
class has its character n-grams alone. A lexicon may have a share of each class (spelling_lexicon.py):

    P_o(w)  =  Lexicon(w | o)  +  rest_o [s_o Geometric(w) + (1 − s_o) Characters(w | o)]     Σ over all strings: 1
    P_o(w | w ∉ V)  =  P_o(w) / (1 − Σ_{v ∈ V} P_o(v))
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.open_vocabulary.alphabet import is_text
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.spelling_lexicon import SpellingLexicon

DIGITS = "0123456789"
SEPARATORS = ".,'\u2019:/-\u00a0\u202f"
NUMBER = re.compile(f"[{DIGITS}]+(?:[{re.escape(SEPARATORS)}][{DIGITS}]+)*")


@dataclass(frozen=True)
class GeometricNumbers:
    """A distribution over numbers (module docstring)."""

    steps: np.ndarray  # (3,) float64: stop, a digit, a separator and a digit
    digits: np.ndarray  # (10,) float64
    separators: np.ndarray  # (len(SEPARATORS),) float64

    @classmethod
    def train(cls, strings: Sequence[str]) -> GeometricNumbers:
        """Estimate the distribution from the numbers among strings, with one pseudo-count for each step, digit
        and separator.
        """
        numbers = [string for string in strings if is_number(string)]
        symbols = Counter("".join(numbers))
        digits = sum(symbols[d] for d in DIGITS)
        separators = sum(symbols[s] for s in SEPARATORS)
        steps = np.array([len(numbers), digits - len(numbers) - separators, separators]) + 1.0
        of_digits = np.array([symbols[d] for d in DIGITS]) + 1.0
        of_separators = np.array([symbols[s] for s in SEPARATORS]) + 1.0
        return cls(steps / steps.sum(), of_digits / of_digits.sum(), of_separators / of_separators.sum())

    def log_probs(self, strings: Sequence[str]) -> np.ndarray:
        """Return log P of each string: (n,) float64, with −inf for a string that is no number."""
        stop, on, separated = np.log(self.steps).tolist()
        of_symbol = dict(zip(DIGITS, np.log(self.digits).tolist(), strict=True))
        of_symbol |= {s: p + separated - on for s, p in zip(SEPARATORS, np.log(self.separators).tolist(), strict=True)}

        def log_prob(string: str) -> float:
            if not is_number(string):
                return -math.inf
            return stop + sum(of_symbol[c] for c in string) + on * (sum(c in DIGITS for c in string) - 1)

        return np.array([log_prob(string) for string in strings])

    def draw(self, random: np.random.Generator, longest: int) -> str:
        """Return a random number; a number of more than `longest` characters may be cut after them."""
        number = str(random.choice(list(DIGITS), p=self.digits))
        while len(number) <= longest and (step := int(random.choice(3, p=self.steps))) > 0:
            separator = str(random.choice(list(SEPARATORS), p=self.separators)) if step == 2 else ""
            number += separator + str(random.choice(list(DIGITS), p=self.digits))
        return number


def is_number(string: str) -> bool:
    """Return whether a string is a number (module docstring)."""
    return NUMBER.fullmatch(string) is not None


GEOMETRIC_SHARE = 0.5  # s_o of a class of numbers


@dataclass(frozen=True)
class StringDistributions:
    """O distributions over all strings that are not empty (module docstring)."""

    characters: CharacterNGrams
    numbers: GeometricNumbers
    geometric: np.ndarray  # (O,) float64, s_o
    lexicon: SpellingLexicon | None = None

    @property
    def num_classes(self) -> int:
        """O"""
        return self.characters.num_classes

    def log_probs(self, strings: Sequence[str]) -> np.ndarray:
        """Return log P_o(string): (n, O) float64, with −inf for an empty string, or one with invalid code points."""
        sound = np.array([is_text(string) for string in strings], dtype=bool)
        texts = [string for string, is_sound in zip(strings, sound, strict=True) if is_sound]
        result = np.full((len(strings), self.num_classes), -np.inf)
        with np.errstate(divide="ignore"):
            spelt = self.characters.log_probs(texts) + np.log1p(-self.geometric)
            counted = self.numbers.log_probs(texts)[:, None] + np.log(self.geometric)
            found = np.logaddexp(spelt, counted)
            if self.lexicon is not None:
                found = np.logaddexp(found + self.lexicon.log_rest, np.log(self.lexicon.probs(texts)))
        result[sound] = found
        return result

    def log_outside(self, words: Sequence[str]) -> np.ndarray:
        """Return log(1 − Σ P_o(v)) over different words v: (O,)."""
        inside = np.zeros(self.num_classes)
        for start in range(0, len(words), 10_000):
            inside += np.exp(self.log_probs(words[start : start + 10_000])).sum(0)
        return np.log(1.0 - inside)
