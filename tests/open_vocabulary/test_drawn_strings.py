"""Strings are drawn with the probability that the model gives them: chi-square tests with fixed seeds."""

import itertools

import numpy as np
import pytest
from drawn_strings import UNLIKELY, check_drawn
from scipy.stats import chi2
from thinned_grids import one_in

from fairseq_llrnn.open_vocabulary.alphabet import NOT_IN_WORDS, NUM_CHARACTERS, SURROGATES, Alphabet
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.number_strings import DIGITS, SEPARATORS, GeometricNumbers, StringDistributions
from fairseq_llrnn.open_vocabulary.spelling import LONGEST_DRAWN, draw, draw_unknown

MANY = 4_000
ANY = "\ufffd"  # of any unknown character

# rare words, the class of each; the characters that there are (None: Unicode's); the share of geometric numbers
VOCABULARIES: dict[str, tuple[list[str], list[int], int | None, list[float]]] = {
    "few words": (["ab", "b", "12"], [0, 0, 1], None, [0.0, 0.5]),
    "one word a class": (["aa", "7"], [0, 1], None, [0.0, 0.5]),
    "a class without words": (["ab", "ba", "abba"], [0, 0, 0], None, [0.0, 0.0]),
    "words": ("abba abbas babas abab babab baba b as bas".split(), [0, 0, 0, 0, 1, 1, 1, 1, 1], None, [0.0, 0.0]),
    "numbers": (["12", "145", "7", "19", "1,5", "20"], [1, 1, 1, 1, 1, 1], None, [0.0, 0.5]),
    "three characters": ("aab ab abba b ba bab abab bbb".split(), [0, 0, 0, 1, 1, 1, 0, 1], 3, [0.0, 0.0]),
    "all characters seen": ("aab ab abba b ba bab abab bbb".split(), [0, 0, 0, 1, 1, 1, 0, 1], 2, [0.0, 0.0]),
}
KNOWN: dict[str, frozenset[str]] = {
    "nothing": frozenset(),
    "likely strings": frozenset(["ab", "b", "ba", "a", "12", "7", "1", "aa"]),
    "most strings": frozenset(
        "".join(t) for n in (1, 2) for t in itertools.product("ab0123456789", repeat=n)
    ),
}  # fmt: skip


def model_of(name: str, order: int) -> StringDistributions:
    words, classes, characters, shares = VOCABULARIES[name]
    alphabet = Alphabet.of(words, NUM_CHARACTERS if characters is None else characters)
    ngrams = CharacterNGrams.train(words, np.array(classes), 2, order, alphabet)
    return StringDistributions(ngrams, GeometricNumbers.train(words), np.array(shares))


def short_strings(strings: StringDistributions, of_class: int) -> tuple[list[str], np.ndarray]:
    """Short strings, with ANY in the place of an unknown character, and their log-probabilities."""
    alphabet = strings.characters.alphabet
    letters = set(alphabet.text(range(2, alphabet.size))) | set(DIGITS if strings.geometric[of_class] else "")
    unknown = alphabet.num_characters - len(letters | set(alphabet.text(range(2, alphabet.size))))
    symbols = sorted(letters) + [ANY] * (unknown > 0)
    longest = 2 if len(symbols) > 10 else 4
    short = ["".join(t) for n in range(1, longest + 1) for t in itertools.product(symbols, repeat=n)]
    alike = np.array([s.count(ANY) for s in short]) * np.log(max(unknown, 1))
    return short, strings.log_probs(short)[:, of_class] + alike


@pytest.mark.parametrize(("name", "case"), one_in(4, VOCABULARIES, [("nothing", 1), *itertools.product(KNOWN, [3])]))
def test_drawn_strings_have_the_probability_of_the_model(name: str, case: tuple[str, int]) -> None:
    """Also strings with unknown characters, all of which have the same probability."""
    known, order = case
    strings, vocabulary = model_of(name, order), KNOWN[known]
    if VOCABULARIES[name][2] is not None:  # there are no other characters
        vocabulary = frozenset(word for word in vocabulary if set(word) <= set("ab"))
    outside = strings.log_outside(sorted(vocabulary))
    for o in range(strings.num_classes):
        short, log_probs = short_strings(strings, o)
        new = np.array([s not in vocabulary for s in short])
        drawn = draw_unknown(strings, o, MANY, vocabulary, np.random.default_rng(17))
        assert len(drawn) == MANY and not vocabulary & set(drawn)
        letters = set("".join(short))
        merged = ["".join(c if c in letters else ANY for c in s) for s in drawn]
        check_drawn(merged, [s for s in short if s not in vocabulary], np.exp(log_probs - outside[o])[new])


def test_an_unknown_character_is_any_of_unicode() -> None:
    """But no blank, no control character and no known one; each as often as any other."""
    alphabet = Alphabet.of(["aé", "\u00a0!", "\U0010ffff"])
    points = alphabet.points(np.full(200_000, -1), np.random.default_rng(3))
    never = np.concatenate([alphabet.characters, SURROGATES, NOT_IN_WORDS])
    assert points.min() >= 0 and points.max() < 0x110000 and not np.isin(points, never).any()
    sixteenths = np.bincount(points * 16 // 0x110000, minlength=16)
    there = 0x110000 - np.bincount(np.unique(never) * 16 // 0x110000, minlength=16) * 16.0
    expected = there / there.sum() * len(points)
    assert chi2.sf(((sixteenths - expected) ** 2 / expected).sum(), 15) > UNLIKELY
    few = Alphabet(np.array([ord("!"), ord("#")]), num_characters=4)
    assert set(few.points(np.full(100, -1), np.random.default_rng(0)).tolist()) == {ord('"'), ord("$")}
    assert few.points(np.array([2, 3, -1]), np.random.default_rng(0))[:2].tolist() == [ord("!"), ord("#")]


def test_the_same_seed_draws_the_same_strings() -> None:
    strings = model_of("words", 3)
    same = [draw_unknown(strings, 0, 5, {}, np.random.default_rng(7)) for _ in range(2)]
    assert same[0] == same[1]


def test_a_string_is_cut_after_so_many_characters() -> None:
    many = len(SEPARATORS)
    endless = GeometricNumbers(np.array([1e-12, 1 - 2e-12, 1e-12]), np.full(10, 0.1), np.full(many, 1 / many))
    for geometric, longest in ((0.0, 2), (1 - 1e-9, LONGEST_DRAWN)):
        strings = StringDistributions(model_of("words", 3).characters, endless, np.array([geometric] * 2))
        drawn = draw(strings, 0, 30, np.random.default_rng(0), longest)
        assert len(drawn) == 30 and max(map(len, drawn)) == longest
