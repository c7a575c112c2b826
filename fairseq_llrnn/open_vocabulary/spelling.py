"""Spells words of an open class that a dictionary lacks: draws them as probable as they are, or finds the best one.

Sizes: V words of the dictionary, m strings or beginnings at once, A symbols, O classes.

`draw_unknown` draws from P_o(w | w ∉ V): it draws from P_o and rejects words of V. A drawn string has unknown
characters as often as P_o has them, each of them one of Unicode's (`Alphabet.points`). It is cut after LONGEST_DRAWN
characters. After MOST_DRAWN rejections in a row the most probable unknown string takes the place of a draw.

`most_probable` is argmax_w P_o(w) over the strings that are no words of V, of characters of the model's alphabet,
LONGEST at most. It is a best-first search over their beginnings. With

    bound(beginning)  =  s_o Geometric(beginning) + (1 − s_o) Characters(beginning | o)

is the product of the probabilities of what is written so far. No string that begins so is more probable than that, for
what follows is a probability, too. The beginnings with the largest bounds are looked at first; a string that is
complete and no word of V is the answer as soon as no bound is larger than its probability.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.open_vocabulary.alphabet import BEGIN, END, FIRST, OTHER
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.numbers import DIGITS, SEPARATORS, StringDistributions

AT_ONCE = 64  # beginnings
MOST = 1 << 15  # beginnings that are looked at; then the best string so far is the answer
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
        return _Beginnings(**{name: np.concatenate([values, vars(other)[name]]) for name, values in vars(self).items()})


def most_probable(
    strings: StringDistributions, of_class: int, vocabulary: Container[str], longest: int, some: Sequence[str] = ()
) -> str | None:
    """argmax P_o(w) over the strings w outside the vocabulary, of at most `longest` characters of the alphabet.

    Args:
        some: strings outside the vocabulary; the search is the quicker, the more probable the best of them is.

    Returns:
        None if there is no such string, or none among the first MOST beginnings.
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
            if better and text not in vocabulary:
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


LONGEST = 40  # characters that a search writes
LONGEST_DRAWN = 1000  # characters of a string that is drawn
DRAWN = 256  # strings of which the best is a bound for the search of the most probable one
MOST_DRAWN = 1 << 12  # words of the dictionary in a row, before a class counts as one without other strings


def draw(
    strings: StringDistributions, of_class: int, many: int, random: np.random.Generator, longest: int = LONGEST_DRAWN
) -> list[str]:
    """`many` strings of an open class, as P_o has them; longer ones than `longest` characters are cut there."""
    counted = int(random.binomial(many, strings.geometric[of_class]))
    drawn = [strings.numbers.draw(random, longest)[:longest] for _ in range(counted)]
    drawn += _draw_characters(strings.characters, of_class, many - counted, random, longest)
    return [drawn[i] for i in random.permutation(many)]  # numbers and short strings come first


def draw_columns(weights: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A column of each row of weights (m, n) ≥ 0, each as often as its share of the row: (m,)."""
    steps = weights.cumsum(1)
    drawn: np.ndarray = (steps <= random.random((len(steps), 1)) * steps[:, -1:]).sum(1)
    return drawn


def _draw_characters(
    model: CharacterNGrams, of_class: int, many: int, random: np.random.Generator, longest: int
) -> list[str]:
    """`many` strings, the short ones first."""
    tails, written = model.beginnings(many), np.zeros((many, 0), dtype=np.int64)  # code points
    done: list[np.ndarray] = []
    for _ in range(longest):
        odds = model.next_symbols(tails, of_class)  # shape: (m, A)
        if written.shape[1] == 0:
            odds[:, END] = 0.0  # no string is empty
        chosen = draw_columns(odds, random)
        done += list(written[chosen == END])
        tails, written, chosen = tails[chosen != END], written[chosen != END], chosen[chosen != END]
        if len(tails) == 0:
            break
        symbols = np.where(chosen == BEGIN, OTHER, chosen)
        tails = model.tails_after(tails, symbols)
        written = np.concatenate([written, model.alphabet.points(symbols, random)[:, None]], axis=1)
    return ["".join(map(chr, points.tolist())) for points in [*done, *written]]


def draw_unknown(
    strings: StringDistributions, of_class: int, many: int, vocabulary: Container[str], random: np.random.Generator
) -> list[str]:
    """`many` strings of an open class, as P_o has them among strings outside the vocabulary; draws are independent.

    In a class all of whose likely strings are in the vocabulary, the most probable other one (module docstring).
    """
    unknown: list[str] = []
    in_a_row, at_once = 0, many + 8
    while len(unknown) < many and in_a_row < MOST_DRAWN:
        new = [string for string in draw(strings, of_class, at_once, random) if string not in vocabulary]
        unknown += new
        in_a_row = 0 if new else in_a_row + at_once
        at_once = min(2 * at_once, MOST_DRAWN)
    if len(unknown) < many:
        unknown += [spell(strings, of_class, vocabulary)] * (many - len(unknown))
    return unknown[:many]


def spell(strings: StringDistributions, of_class: int, vocabulary: Container[str]) -> str:
    """The most probable string of a class outside the vocabulary; always the same one."""
    drawn = draw(strings, of_class, DRAWN, np.random.default_rng(of_class), LONGEST)
    letters = set(map(chr, strings.characters.alphabet.characters.tolist()))
    new = [string for string in drawn if string not in vocabulary and letters.issuperset(string)]
    best = most_probable(strings, of_class, vocabulary, LONGEST, new)
    return best if best is not None else max(drawn, key=len) + drawn[0]
