"""A distribution over strings with a capital at the beginning of each string."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np


class StringDistribution(Protocol):
    """A distribution over strings that are not empty, or one for each of O classes."""

    def string_probs(self, strings: Sequence[str]) -> np.ndarray:
        """Return P of each string: (m,) float64, or (m, O)."""

    def draw(self, count: int, random: np.random.Generator, of_class: int = 0) -> list[str]:
        """Return samples of a class."""


def capitalised(string: str) -> str:
    """Return a string with a capital at its beginning, if one character is its capital."""
    letter = string[:1].title()
    return letter + string[1:] if len(letter) == 1 else string


@dataclass(frozen=True)
class Capitalised:
    """P(w) = Σ_{v: capitalised(v) = w} P(v)."""

    inner: StringDistribution

    def string_probs(self, strings: Sequence[str]) -> np.ndarray:
        """Return P of each string: (m,) float64, or (m, O)."""
        pairs = [(i, origin) for i, string in enumerate(strings) for origin in _origins(string)]
        probs = self.inner.string_probs([origin for _, origin in pairs])
        found = np.zeros((len(strings), *probs.shape[1:]))
        np.add.at(found, np.array([i for i, _ in pairs], dtype=np.int64), probs)
        return found

    def draw(self, count: int, random: np.random.Generator, of_class: int = 0) -> list[str]:
        """Return samples of a class."""
        return [capitalised(string) for string in self.inner.draw(count, random, of_class)]


def _origins(string: str) -> list[str]:
    """Return the strings that become this one with a capital."""
    letters = [string[:1], *_small_letters().get(string[:1], ())]
    return [letter + string[1:] for letter in letters if capitalised(letter + string[1:]) == string]


@cache
def _small_letters() -> dict[str, list[str]]:
    """Return the letters that become each capital."""
    found: dict[str, list[str]] = {}
    for letter in map(chr, range(0x20000)):  # Unicode has no capitals above
        if (capital := capitalised(letter)) != letter:
            found.setdefault(capital, []).append(letter)
    return found
