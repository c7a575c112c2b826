"""The distributions over strings of O open classes, and what is left of them outside a dictionary.

Sizes: O classes, n strings, V words of the dictionary. A class of numbers is a mixture of the geometric numbers and its
own character n-grams; any other has its character n-grams alone:

    P_o(w)  =  s_o Geometric(w) + (1 − s_o) Characters(w | o)                      Σ over all strings: 1
    P_o(w | w ∉ V)  =  P_o(w) / (1 − Σ_{v ∈ V} P_o(v))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.open_vocabulary.alphabet import is_text
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.numbers import GeometricNumbers

GEOMETRIC_SHARE = 0.5  # s_o of a class of numbers


@dataclass(frozen=True)
class StringDistributions:
    """O distributions over all strings that are not empty (module docstring)."""

    characters: CharacterNGrams
    numbers: GeometricNumbers
    geometric: np.ndarray  # (O,) float64, s_o

    @property
    def num_classes(self) -> int:
        """O"""
        return self.characters.num_classes

    def log_probs(self, strings: Sequence[str]) -> np.ndarray:
        """log P_o(string): (n, O) float64; −inf for what is no string of Unicode characters, or empty."""
        sound = np.array([is_text(string) for string in strings], dtype=bool)
        kept = [string for string, is_sound in zip(strings, sound, strict=True) if is_sound]
        result = np.full((len(strings), self.num_classes), -np.inf)
        with np.errstate(divide="ignore"):
            spelt = self.characters.log_probs(kept) + np.log1p(-self.geometric)
            counted = self.numbers.log_probs(kept)[:, None] + np.log(self.geometric)
        result[sound] = np.logaddexp(spelt, counted)
        return result

    def log_outside(self, words: Sequence[str]) -> np.ndarray:
        """log(1 − Σ P_o(v)) over some different words v: (O,)."""
        inside = np.zeros(self.num_classes)
        for start in range(0, len(words), 10_000):
            inside += np.exp(self.log_probs(words[start : start + 10_000])).sum(0)
        return np.log(1.0 - inside)
