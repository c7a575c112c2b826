"""The most probable string of an open class outside a dictionary, by best-first search over its beginnings.

Sizes: m beginnings at once, A symbols, O classes.

    bound(beginning)  =  s_o Geometric(beginning) + (1 − s_o) Characters(beginning | o)

is the product of the probabilities of what is written so far. No string that begins so is more probable than that, for
what follows is a probability, too. The beginnings with the largest bounds are looked at first; a string that is
complete and no known word is the answer as soon as no bound is larger than its probability.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.open_vocabulary.alphabet import END, FIRST
from fairseq_llrnn.open_vocabulary.numbers import DIGITS, SEPARATORS
from fairseq_llrnn.open_vocabulary.strings import StringDistributions

AT_ONCE = 64  # beginnings
MOST = 1 << 15  # beginnings that are looked at; then the best string that was met is the answer
START, AFTER_DIGIT, AFTER_SEPARATOR, NO_NUMBER = range(4)  # what a beginning is as a number


@dataclass(frozen=True)
class _Beginnings:
    """Beginnings of strings that wait to be looked at."""

    tails: np.ndarray  # (m, n), as CharacterNGrams has them
    written: np.ndarray  # (m, LONGEST) int64, 0 behind the end
    lengths: np.ndarray  # (m,)
    spelt: np.ndarray  # (m,) Characters(beginning)
    counted: np.ndarray  # (m,) Geometric(beginning)
    kind: np.ndarray  # (m,) as a number
    bound: np.ndarray  # (m,)

    def of(self, index: np.ndarray) -> _Beginnings:
        """Some of them."""
        return _Beginnings(**{name: values[index] for name, values in vars(self).items()})

    def beside(self, other: _Beginnings) -> _Beginnings:
        """These, and others."""
        return _Beginnings(**{name: np.concatenate([own, vars(other)[name]]) for name, own in vars(self).items()})


def most_probable(
    strings: StringDistributions, of_class: int, known: Container[str], longest: int, some: Sequence[str] = ()
) -> str | None:
    """argmax P_o(w) over the strings w, not known, of known characters and at most `longest` of them.

    Args:
        some: strings that are not known; the search is the quicker, the more probable the best one is.

    Returns:
        None if there is no such string, or none was met among the first MOST beginnings.
    """
    best, probability = None, 0.0
    if some:
        odds = np.exp(strings.log_probs(some)[:, of_class])
        best, probability = some[int(odds.argmax())], float(odds.max())
    machine = _Machine(strings, of_class, longest)
    waiting, looked_at = machine.empty(), 0
    while len(waiting.bound) and looked_at < MOST:
        order = np.argsort(-waiting.bound, kind="stable")
        now, waiting = waiting.of(order[:AT_ONCE]), waiting.of(order[AT_ONCE:])
        looked_at += len(now.bound)
        ended, longer = machine.extended(now, probability)
        for text, odds_of_text in ended:
            # of equally probable ones the first in the order of characters, whatever was drawn
            better = odds_of_text > probability or (odds_of_text == probability and best is not None and text < best)
            if better and text not in known:
                best, probability = text, odds_of_text
        waiting = waiting.beside(longer)
        waiting = waiting.of(np.flatnonzero(waiting.bound > probability))
    return best


class _Machine:
    """Writes one symbol more."""

    def __init__(self, strings: StringDistributions, of_class: int, longest: int) -> None:
        self.model, self.of_class, self.longest = strings.characters, of_class, longest
        self.share = float(strings.geometric[of_class])
        self.not_empty = float(np.exp(self.model.log_not_empty[of_class]))
        size, characters = self.model.alphabet.size, self.model.alphabet.characters
        of_digit = dict(zip(map(ord, DIGITS), strings.numbers.digits.tolist(), strict=True))
        of_separator = dict(zip(map(ord, SEPARATORS), strings.numbers.separators.tolist(), strict=True))
        stop, on, separated = strings.numbers.steps.tolist()
        # the factor of each symbol after each kind of beginning, and what the beginning becomes; columns: symbols
        self.factor, self.becomes = np.zeros((4, size)), np.full((4, size), NO_NUMBER)
        for symbol, point in enumerate(characters.tolist(), start=FIRST):
            if point in of_digit:
                self.factor[:NO_NUMBER, symbol] = of_digit[point]
                self.factor[AFTER_DIGIT, symbol] *= on
                self.becomes[:NO_NUMBER, symbol] = AFTER_DIGIT
            if point in of_separator:
                self.factor[AFTER_DIGIT, symbol] = separated * of_separator[point]
                self.becomes[AFTER_DIGIT, symbol] = AFTER_SEPARATOR
        self.factor[AFTER_DIGIT, END] = stop

    def empty(self) -> _Beginnings:
        """The empty beginning."""
        one = np.ones(1)
        written = np.zeros((1, self.longest), dtype=np.int64)
        zero = np.zeros(1, dtype=np.int64)
        return _Beginnings(self.model.beginnings(1), written, zero, one, one, zero + START, one)

    def extended(self, now: _Beginnings, least: float) -> tuple[list[tuple[str, float]], _Beginnings]:
        """What the beginnings are as strings that end there, and with a character more: if more probable than `least`.

        Strings as probable as `least` are among the first.
        """
        odds = self.model.next_symbols(now.tails, self.of_class)  # shape: (m, A)
        first = now.lengths == 0
        odds[first, END] = 0.0  # no string is empty
        odds[first] /= self.not_empty
        spelt = now.spelt[:, None] * odds
        counted = now.counted[:, None] * self.factor[now.kind]
        bound = self.share * counted + (1.0 - self.share) * spelt
        ended = []
        for row in np.flatnonzero((bound[:, END] >= least) & (bound[:, END] > 0)):
            text = self.model.alphabet.text(now.written[row, : now.lengths[row]].tolist())
            ended.append((text, float(bound[row, END])))
        bound[:, :FIRST] = 0.0
        bound[now.lengths == self.longest] = 0.0
        rows, symbols = np.nonzero(bound > least)
        written = now.written[rows]
        written[np.arange(len(rows)), now.lengths[rows]] = symbols
        longer = _Beginnings(
            self.model.tails_after(now.tails[rows], symbols),
            written,
            now.lengths[rows] + 1,
            spelt[rows, symbols],
            counted[rows, symbols],
            self.becomes[now.kind[rows], symbols],
            bound[rows, symbols],
        )
        return ended, longer
