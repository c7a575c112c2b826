"""Numbers: strings of digits whose length is geometric (Dymetman & Xiao 2016, §4), with separators between digits.

    number  =  digit ( digit | separator digit )*          2016 · 12,5 · 1.234.567

After a digit the number stops, goes on with a digit, or goes on with a separator and a digit: three probabilities that
add up to one. So every string has at most one derivation, and all numbers together have probability one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

DIGITS = "0123456789"
SEPARATORS = ".,'\u2019:/-\u00a0\u202f"


@dataclass(frozen=True)
class GeometricNumbers:
    """A distribution over numbers (module docstring)."""

    steps: np.ndarray  # (3,) float64: stop, a digit, a separator and a digit
    digits: np.ndarray  # (10,) float64
    separators: np.ndarray  # (len(SEPARATORS),) float64

    @classmethod
    def train(cls, strings: Sequence[str]) -> GeometricNumbers:
        """Estimate from the numbers among some strings, each step, digit and separator having been seen once before."""
        numbers = [string for string in strings if is_number(string)]
        symbols = Counter("".join(numbers))
        digits = sum(symbols[d] for d in DIGITS)
        separators = sum(symbols[s] for s in SEPARATORS)
        steps = np.array([len(numbers), digits - len(numbers) - separators, separators]) + 1.0
        of_digits = np.array([symbols[d] for d in DIGITS]) + 1.0
        of_separators = np.array([symbols[s] for s in SEPARATORS]) + 1.0
        return cls(steps / steps.sum(), of_digits / of_digits.sum(), of_separators / of_separators.sum())

    def log_probs(self, strings: Sequence[str]) -> np.ndarray:
        """log P of each string: (n,) float64; −inf for what is no number."""
        stop, on, separated = np.log(self.steps).tolist()
        of_symbol = dict(zip(DIGITS, np.log(self.digits).tolist(), strict=True))
        of_symbol |= {s: p + separated - on for s, p in zip(SEPARATORS, np.log(self.separators).tolist(), strict=True)}

        def log_prob(string: str) -> float:
            if not is_number(string):
                return -math.inf
            return stop + sum(of_symbol[c] for c in string) + on * (sum(c in DIGITS for c in string) - 1)

        return np.array([log_prob(string) for string in strings])

    def draw(self, random: np.random.Generator, longest: int) -> str:
        """A number; one of more than `longest` characters may be cut short behind them."""
        number = str(random.choice(list(DIGITS), p=self.digits))
        while len(number) <= longest and (step := int(random.choice(3, p=self.steps))) > 0:
            separator = str(random.choice(list(SEPARATORS), p=self.separators)) if step == 2 else ""
            number += separator + str(random.choice(list(DIGITS), p=self.digits))
        return number


def is_number(string: str) -> bool:
    """Whether a string is a number in this sense."""
    digit_before = False
    for c in string:
        if c in DIGITS:
            digit_before = True
        elif c in SEPARATORS and digit_before:
            digit_before = False
        else:
            return False
    return digit_before
