"""Spells words of an open class that a dictionary lacks: draws them as probable as they are, or finds the best one.

Sizes: m strings or prefixes at once, A symbols.

`draw_unknown` draws from P_o(w | w ∉ V), by drawing from P_o until the string is no word of V. `most_probable` is
argmax_w P_o(w) over the strings that are no words of V. Both are of the characters that the model knows, LONGEST at
most.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from fairseq_llrnn.open_vocabulary.alphabet import END, FIRST
from fairseq_llrnn.open_vocabulary.best_string import most_probable
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.strings import StringDistributions

LONGEST = 40  # characters; longer ones are drawn again
ATTEMPTS = 4  # at drawing as many as asked for: in some classes (of hash sums) hardly a string is so short
DRAWN = 256  # strings of which the best is a bound for the search of the most probable one
MOST_DRAWN = 1 << 14  # strings, before a class counts as one all of whose likely strings are words


def draw(strings: StringDistributions, of_class: int, many: int, random: np.random.Generator) -> list[str]:
    """`many` strings of an open class, as P_o has them, but of known characters and at most LONGEST of them.

    Fewer of a class that hardly has such strings; beginnings of its strings if it has none.
    """
    found: list[str] = []
    for _ in range(ATTEMPTS):
        missing = many - len(found)
        if missing == 0:
            break
        counted = int(random.binomial(missing, strings.geometric[of_class]))
        numbers = (strings.numbers.draw(random, LONGEST) for _ in range(counted))
        found += [number for number in numbers if len(number) <= LONGEST]
        found += _draw_characters(strings.characters, of_class, missing - counted, random)
    return found or _draw_characters(strings.characters, of_class, many, random, cut=True)


def draw_columns(weights: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A column of each row of weights (m, n) ≥ 0, each as often as its share of the row: (m,)."""
    steps = weights.cumsum(1)
    drawn: np.ndarray = (steps <= random.random((len(steps), 1)) * steps[:, -1:]).sum(1)
    return drawn


def _draw_characters(
    model: CharacterNGrams, of_class: int, many: int, random: np.random.Generator, cut: bool = False
) -> list[str]:
    """At most `many` strings: those that stopped in time; with `cut`, what there is of the others as well."""
    tails, written = model.beginnings(many), np.zeros((many, 0), dtype=np.int64)
    done: list[str] = []
    for _ in range(LONGEST + 1):
        if len(tails) == 0:
            break
        odds = model.next_symbols(tails, of_class)  # shape: (m, A)
        if written.shape[1] == 0:
            odds[:, END] = 0.0  # no string is empty
        chosen = draw_columns(odds, random)
        ends = chosen == END
        done += [model.alphabet.text(row) for row in written[ends]]
        tails, written, chosen = tails[~ends], written[~ends], chosen[~ends]
        assert (chosen >= FIRST).all()
        tails = model.tails_after(tails, chosen)
        written = np.concatenate([written, chosen[:, None]], axis=1)
    return done + [model.alphabet.text(row) for row in written] if cut else done


def draw_unknown(
    strings: StringDistributions, of_class: int, many: int, known: Container[str], random: np.random.Generator
) -> list[str]:
    """`many` strings of an open class, as P_o has them among strings that are not known; each draw is independent.

    In a class all of whose likely strings are known words, the most probable other one.
    """
    found: list[str] = []
    drawn, at_once = 0, many + 8
    while len(found) < many and drawn < MOST_DRAWN + many:
        new = [string for string in draw(strings, of_class, at_once, random) if string not in known]
        found += [new[i] for i in random.permutation(len(new))]  # numbers and short strings come first in a draw
        drawn += at_once
        at_once = min(2 * at_once, MOST_DRAWN)
    if len(found) < many:
        found += [spell(strings, of_class, known)] * (many - len(found))
    return found[:many]


def spell(strings: StringDistributions, of_class: int, known: Container[str]) -> str:
    """The most probable string of a class that is no known word; always the same one."""
    random = np.random.default_rng(of_class)
    drawn = draw(strings, of_class, DRAWN, random)
    new = [string for string in drawn if string not in known]
    found = most_probable(strings, of_class, known, LONGEST, new)
    return found if found is not None else max(drawn, key=len) + drawn[0]
