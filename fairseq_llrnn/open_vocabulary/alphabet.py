"""Strings as rows of symbols: the alphabet is all of Unicode; a model knows the characters of its training strings.

Sizes: A symbols (the end, the beginning, and A − 2 known characters), P positions of all strings together.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

# The scalar values of Unicode: all code points except the surrogates, which are no characters.
NUM_CHARACTERS = 0x110000 - 0x800
SURROGATES = np.arange(0xD800, 0xE000)
# Blanks and control characters, which are in no word of a text; all blanks are below this bound.
NOT_IN_WORDS = np.array([c for c in range(0x3001) if chr(c).isspace() or unicodedata.category(chr(c)) == "Cc"])
END, BEGIN, OTHER = 0, 1, -1  # symbols; OTHER is any unknown character
FIRST = 2  # the first symbol that is a character


@dataclass(frozen=True)
class Rows:
    """The symbols of strings, concatenated: each string begins with BEGIN and stops with END."""

    symbols: np.ndarray  # (P,) int64
    depth: np.ndarray  # (P,) int64, position in its string
    string: np.ndarray  # (P,) int64, index of its string


@dataclass(frozen=True)
class Alphabet:
    """The known characters of a model, among `num_characters` in all (Unicode by default)."""

    characters: np.ndarray  # (A − 2,) int64 code points, ascending
    num_characters: int = NUM_CHARACTERS

    @classmethod
    def of(cls, strings: Sequence[str], num_characters: int = NUM_CHARACTERS) -> Alphabet:
        """Return the alphabet of the characters of strings."""
        return cls(np.array(sorted({ord(c) for string in strings for c in string}), dtype=np.int64), num_characters)

    @property
    def size(self) -> int:
        """A"""
        return len(self.characters) + FIRST

    @property
    def num_unknown(self) -> int:
        """The number of unknown characters."""
        return self.num_characters - len(self.characters)

    @cached_property
    def _symbol_of(self) -> np.ndarray:
        """The symbol of every code point: (0x110000,)."""
        table = np.full(0x110000, OTHER, dtype=np.int64)
        table[self.characters] = np.arange(FIRST, self.size)
        return table

    @property
    def log_uniform(self) -> float:
        """The log-probability of the uniform distribution over all characters and the end."""
        return -float(np.log(self.num_characters + 1))

    def rows(self, strings: Sequence[str]) -> Rows:
        """Return the strings as symbols."""
        lengths = np.fromiter((len(string) for string in strings), dtype=np.int64, count=len(strings)) + 2
        starts = np.concatenate([[0], np.cumsum(lengths)])
        string = np.repeat(np.arange(len(strings)), lengths)
        depth = np.arange(starts[-1]) - starts[:-1][string]
        symbols = np.full(starts[-1], END, dtype=np.int64)
        symbols[starts[:-1]] = BEGIN
        points = np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
        symbols[(depth > 0) & (depth < lengths[string] - 1)] = self._symbol_of[points]
        return Rows(symbols, depth, string)

    @cached_property
    def _undrawn(self) -> np.ndarray:
        """The ascending code points that `points` never draws for an unknown character."""
        excluded: np.ndarray = np.unique(np.concatenate([self.characters, SURROGATES, NOT_IN_WORDS]))
        return excluded

    def points(self, symbols: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return code points of symbols (m,) ≥ FIRST or OTHER, which is drawn uniformly from the unknown characters:
        (m,).

        Blanks and control characters are never drawn.
        """
        points = np.append(self.characters, 0)[np.maximum(symbols - FIRST, -1)]
        unknown = symbols == OTHER
        num_drawable = min(self.num_unknown, 0x110000 - len(self._undrawn))
        rank = random.integers(max(num_drawable, 1), size=int(unknown.sum()))
        before = self._undrawn - np.arange(len(self._undrawn))  # number of drawable points below each
        points[unknown] = rank + np.searchsorted(before, rank, side="right")
        return points

    def text(self, symbols: Sequence[int]) -> str:
        """Return symbols of known characters as a string."""
        return "".join(chr(int(self.characters[symbol - FIRST])) for symbol in symbols)


def is_text(string: str) -> bool:
    """Return whether a string is not empty and all of its code points are characters."""
    return len(string) > 0 and not any("\ud800" <= c <= "\udfff" for c in string)
