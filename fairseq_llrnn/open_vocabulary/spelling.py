"""Spells words of an open class: draws strings, and takes the most probable per character of many.

Sizes: m strings drawn together, A symbols. The most probable string of all is not looked for: it would take a search
through all prefixes more probable than it, and it has one letter or two.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from fairseq_llrnn.open_vocabulary.alphabet import END, FIRST
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.strings import StringDistributions

DRAWN = 256  # strings of which the most probable one is taken
LONGEST = 40  # characters; longer ones are drawn again
ROUNDS = 8  # of drawing, until there is a string that is not known
ATTEMPTS = 4  # at drawing as many as asked for: in some classes (of hash sums) hardly a string is so short


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
        steps = odds.cumsum(1)
        chosen = (steps < random.random((len(tails), 1)) * steps[:, -1:]).sum(1)
        ends = chosen == END
        done += [model.alphabet.text(row) for row in written[ends]]
        tails, written, chosen = tails[~ends], written[~ends], chosen[~ends]
        assert (chosen >= FIRST).all()
        tails = model.tails_after(tails, chosen)
        written = np.concatenate([written, chosen[:, None]], axis=1)
    return done + [model.alphabet.text(row) for row in written] if cut else done


def spell(strings: StringDistributions, of_class: int, known: Container[str], seed: int = 0) -> str:
    """Of DRAWN strings of a class that are no known words, the one with the largest P_o per character.

    The same class, words and seed always give the same string.
    """
    random = np.random.default_rng((seed, of_class))
    drawn: list[str] = []
    for _ in range(ROUNDS):
        drawn += draw(strings, of_class, DRAWN, random)
        new = sorted({string for string in drawn if string not in known})
        if new:
            lengths = np.array([len(string) + 1 for string in new])
            return new[int((strings.log_probs(new)[:, of_class] / lengths).argmax())]
    return max(drawn, key=len) + drawn[0]  # a class all of whose likely strings are words
