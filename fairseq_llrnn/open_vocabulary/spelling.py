"""Words of an open class that a dictionary lacks: sampled, or a probable one.

Sizes: V words of the dictionary, m strings or beginnings, A symbols.

`draw_unknown` samples P_o(w | w ∉ V) by rejecting words of V among samples of P_o. Samples contain unknown characters
as often as P_o does, each uniformly from Unicode (`Alphabet.points`). They are cut after LONGEST_DRAWN characters.
After MOST_DRAWN rejections in a row, the string of `spell` is used instead.

`spell` is for other searches: the most probable of DRAWN strings outside V, with characters of the model's alphabet,
LONGEST at most.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from fairseq_llrnn.open_vocabulary.alphabet import BEGIN, END, OTHER
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.number_strings import StringDistributions

LONGEST = 40  # characters of the string of a search
LONGEST_DRAWN = 1000  # characters of a sampled string
DRAWN = 256  # samples from which a search takes the most probable one
MOST_DRAWN = 1 << 12  # words of the dictionary in a row, before a class counts as one without other strings


def draw(
    strings: StringDistributions, of_class: int, count: int, random: np.random.Generator, longest: int = LONGEST_DRAWN
) -> list[str]:
    """Return `count` samples of an open class. Longer ones than `longest` characters are cut."""
    of_lexicon = [] if strings.lexicon is None else strings.lexicon.draw(of_class, count, random)
    drawn = [string[:longest] for string in of_lexicon]
    rest = count - len(drawn)
    counted = int(random.binomial(rest, strings.geometric[of_class]))
    drawn += [strings.numbers.draw(random, longest)[:longest] for _ in range(counted)]
    drawn += _draw_characters(strings.characters, of_class, rest - counted, random, longest)
    return [drawn[i] for i in random.permutation(count)]  # numbers and short strings come first


def draw_columns(weights: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Sample a column of each row of weights (m, n) ≥ 0, with probability proportional to its weight: (m,)."""
    steps = weights.cumsum(1)
    drawn: np.ndarray = (steps <= random.random((len(steps), 1)) * steps[:, -1:]).sum(1)
    return drawn


def _draw_characters(
    model: CharacterNGrams, of_class: int, count: int, random: np.random.Generator, longest: int
) -> list[str]:
    """Return `count` sampled strings, short ones first."""
    tails, written = model.beginnings(count), np.zeros((count, 0), dtype=np.int64)  # code points
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
    strings: StringDistributions, of_class: int, count: int, vocabulary: Container[str], random: np.random.Generator
) -> list[str]:
    """Return `count` independent samples of an open class outside the vocabulary.

    If all probable strings of the class are in the vocabulary, return the one of `spell`.
    """
    unknown: list[str] = []
    in_a_row, at_once = 0, count + 8
    while len(unknown) < count and in_a_row < MOST_DRAWN:
        new = [string for string in draw(strings, of_class, at_once, random) if string not in vocabulary]
        unknown += new
        in_a_row = 0 if new else in_a_row + at_once
        at_once = min(2 * at_once, MOST_DRAWN)
    if len(unknown) < count:
        unknown += [spell(strings, of_class, vocabulary)] * (count - len(unknown))
    return unknown[:count]


def spell(strings: StringDistributions, of_class: int, vocabulary: Container[str]) -> str:
    """Return the most probable of DRAWN samples of a class, outside the vocabulary. It is deterministic."""
    drawn = draw(strings, of_class, DRAWN, np.random.default_rng(of_class), LONGEST)
    letters = set(map(chr, strings.characters.alphabet.characters.tolist()))
    new = sorted(string for string in {*drawn} if string not in vocabulary and letters.issuperset(string))
    if not new:
        return max(drawn, key=len) + drawn[0]
    return new[int(strings.log_probs(new)[:, of_class].argmax())]
