"""Distributions over all strings: they add up to one, by enumeration and in closed form; fast ones equal slow ones."""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.open_vocabulary.alphabet import BEGIN, NUM_CHARACTERS, Alphabet, is_text
from fairseq_llrnn.open_vocabulary.characters import POOL_WEIGHT, CharacterNGrams, _discounts
from fairseq_llrnn.open_vocabulary.number_strings import (
    DIGITS,
    SEPARATORS,
    GeometricNumbers,
    StringDistributions,
    is_number,
)
from fairseq_llrnn.open_vocabulary.spelling import LONGEST, draw_unknown, spell

WORDS = "aab ab abba b ba bab abab bbb".split()
CLASSES = np.array([0, 0, 0, 1, 1, 1, 0, 2])
TINY = Alphabet(np.array([ord("a"), ord("b")]), num_characters=3)  # a, b, and one more, say c


def counted(words: list[str], order: int) -> list[dict[str, Counter[str]]]:
    """By length, context -> symbol -> N: in how many words, or after how many symbols. `(` begins, `)` ends a word."""
    grams = Counter(
        text[i : i + j] for text in (f"({w})" for w in words) for j in range(1, order + 1)
        for i in range(len(text) - j + 1)
    )  # fmt: skip
    tables: list[dict[str, Counter[str]]] = [defaultdict(Counter) for _ in range(order)]
    for gram, count in grams.items():
        if len(gram) < order and gram[0] != "(":
            count = len({longer for longer in grams if len(longer) == len(gram) + 1 and longer[1:] == gram})
        if gram != "(":
            tables[len(gram) - 1][gram[:-1]][gram[-1]] = count
    return tables


def values(tables: list[list[dict[str, Counter[str]]]], j: int) -> np.ndarray:
    return np.array([n for table in tables for found in table[j].values() for n in found.values()])


def slow(words: list[str], classes: np.ndarray, order: int, alphabet: Alphabet, string: str, of_class: int) -> float:
    """P(string | class) by the definition, with dictionaries of strings."""
    counts = counted(words, order)
    by_class = [counted([w for w, c in zip(words, classes, strict=True) if c == o], order) for o in range(3)]
    own = by_class[of_class]
    pooled = [_discounts(values([counts], j)) for j in range(order)]
    classwise = [_discounts(values(by_class, j)) for j in range(order)]

    def step(context: str, symbol: str) -> float:
        pool = mine = 1.0 / (alphabet.num_characters + 1)
        for j in range(order):
            if j > len(context):
                break
            h = context[len(context) - j :]
            found = counts[j].get(h)
            if found is not None:
                taken = sum(pooled[j][min(n, 3)] for n in found.values())
                n = found.get(symbol, 0)
                pool = (n - pooled[j][min(n, 3)] + taken * pool) / sum(found.values())
                mine = POOL_WEIGHT * pool + (1 - POOL_WEIGHT) * mine
            found = own[j].get(h)
            if found is not None:
                taken = sum(classwise[j][min(n, 3)] for n in found.values())
                n = found.get(symbol, 0)
                mine = (n - classwise[j][min(n, 3)] + taken * mine) / sum(found.values())
        return mine

    text = f"({string})"
    product = math.prod(step(text[:i], text[i]) for i in range(1, len(text)))
    return product / (1.0 - step("(", ")"))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_characters_equal_the_definition(order: int) -> None:
    model = CharacterNGrams.train(WORDS, CLASSES, 3, order, TINY)
    strings = ["a", "b", "c", "ab", "abba", "bbbb", "acb", "cc", "babba", "aab"]
    expected = [[slow(WORDS, CLASSES, order, TINY, s, o) for o in range(3)] for s in strings]
    np.testing.assert_allclose(np.exp(model.log_probs(strings)), expected, rtol=1e-10)


def total_in_closed_form(model: CharacterNGrams, of_class: int) -> float:
    """The probability of all strings: what stops, from a linear system over the contexts.

    With p(c | s) the step from context s, x(s) = P(end | s) + Σ_c p(c | s) x(s·c); x is one where it has one solution.
    """
    order, letters = len(model.levels), "abc"[: model.alphabet.num_characters]
    contexts = [""] + ["(" + "".join(t) for k in range(order) for t in itertools.product(letters, repeat=k)]
    contexts += ["".join(t) for t in itertools.product(letters, repeat=order - 1)]
    place = {context: i for i, context in enumerate(dict.fromkeys(contexts))}

    def step(context: str, symbol: str) -> float:
        # as the ratio of the probabilities of two prefixes, from the model's own log_probs of all that they need
        rows = model.alphabet.rows([context.removeprefix("(") + symbol.replace(")", "")])
        symbols, depth = rows.symbols, rows.depth
        if not context.startswith("("):  # a context inside a word: no BEGIN is in reach
            symbols, depth = symbols[1:], depth[1:] - 1
            depth = depth + order  # so that nothing is taken for the beginning of a string
        at = len(context)
        return float(model._conditional(type(rows)(symbols, depth, rows.string), np.array([at]))[0, of_class])

    matrix, right = np.eye(len(place)), np.zeros(len(place))
    for context, i in place.items():
        if context == "":
            continue
        right[i] = step(context, ")")
        for letter in letters:
            after = (context + letter)[-(order - 1) :] if order > 1 else ""
            after = context + letter if len(context + letter) < order else after
            matrix[i, place[after]] -= step(context, letter)
    return float(np.linalg.solve(matrix, right)[place["("]])


@pytest.mark.parametrize("order", [2, 3])
def test_all_strings_add_up_to_one(order: int) -> None:
    model = CharacterNGrams.train(WORDS, CLASSES, 3, order, TINY)
    for o in range(3):
        assert total_in_closed_form(model, o) == pytest.approx(1.0, abs=1e-12)
    strings = ["".join(t) for k in range(1, 13) for t in itertools.product("ab", repeat=k)]
    rare = ["".join(t) for k in range(1, 8) for t in itertools.product("abc", repeat=k)]
    strings = list(dict.fromkeys(strings + rare))
    total = np.exp(model.log_probs(strings)).sum(0)
    assert (total > 0.9).all() and (total < 1.0).all()
    longer = ["".join(t) for t in itertools.product("ab", repeat=13)]
    assert (np.exp(model.log_probs(longer)).sum(0) < 0.05).all(), "little is in long strings"


@given(st.lists(st.text("abcdé1𝄞", min_size=1, max_size=6), min_size=1, max_size=12, unique=True), st.integers(1, 5))
@settings(max_examples=30)
def test_every_step_is_a_distribution(words: list[str], order: int) -> None:
    """Over all symbols of Unicode: the known ones, and all others alike; after any text."""
    classes = np.arange(len(words)) % 2
    model = CharacterNGrams.train(words, classes, 2, order)
    tails = model.beginnings(1)
    for symbol in [2, model.alphabet.size - 1, 2]:
        for o in range(2):
            odds = model.next_symbols(tails, o)[0]
            unknown = "\U0010fff0"
            before = model.next_symbols(tails, o)  # the same again
            np.testing.assert_array_equal(odds, before[0])
            assert unknown not in words and odds.sum() == pytest.approx(1.0) and (odds[2:] > 0).all()
        tails = model.tails_after(tails, np.array([symbol]))
    # a string of one known character, then an unknown one, by its steps
    string = chr(int(model.alphabet.characters[0]))
    tails = model.tails_after(model.beginnings(1), np.array([2]))
    for o in range(2):
        first, second = model.next_symbols(model.beginnings(1), o)[0], model.next_symbols(tails, o)[0]
        expected = np.log(first[2]) + np.log(second[0]) - np.log1p(-first[0])
        assert model.log_probs([string])[0, o] == pytest.approx(expected)


def test_known_and_unknown_characters_add_up_to_one() -> None:
    """What the known symbols leave is shared by all other characters of Unicode, one by one."""
    model = CharacterNGrams.train(WORDS, CLASSES, 3, 3)
    first = model.next_symbols(model.beginnings(1), 1)[0]
    assert first.sum() == pytest.approx(1.0, abs=1e-9)
    # P(other) from a string of one: P(other) P(end | other) / (1 − P(end | begin))
    lone = CharacterNGrams.train(WORDS, CLASSES, 3, 3)
    rows = lone.alphabet.rows(["é"])
    other = lone._conditional(rows, np.array([1]))[0, 1]
    assert first[BEGIN] == pytest.approx((NUM_CHARACTERS - 2) * other)


def test_numbers_add_up_to_one() -> None:
    model = GeometricNumbers.train(["12", "2016", "1,5", "no", "7", "3.14.15"])
    short = [d for d in DIGITS] + ["".join(t) for t in itertools.product(DIGITS, repeat=2)]
    short += [a + s + b for a in DIGITS for s in SEPARATORS for b in DIGITS]
    expected = model.steps[0] * (1 + model.steps[1] + model.steps[2])
    assert np.exp(model.log_probs(short)).sum() == pytest.approx(expected)
    # in closed form: a number stops with probability `stop` after each digit
    stop, on, separated = model.steps
    assert stop / (1 - on - separated) == pytest.approx(1.0)
    assert np.isneginf(model.log_probs(["1a", "", ".5", "5.", "1..2", "-1", "é"])).all()


@given(st.text("0123456789.,a", max_size=8))
def test_a_string_is_a_number_or_not(string: str) -> None:
    groups = string.replace(",", ".").split(".")
    assert is_number(string) == all(g and all(c in DIGITS for c in g) for g in groups)


def distributions() -> StringDistributions:
    words = "abba abbas babas 12 145 7 19 babab baba".split()
    classes = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    alphabet = Alphabet.of(words, num_characters=len(set("".join(words))))
    model = CharacterNGrams.train(words, classes, 3, 4, alphabet)
    return StringDistributions(model, GeometricNumbers.train(words), np.array([0.0, 0.5, 0.0]))


def test_mixtures_of_numbers_and_characters() -> None:
    strings = distributions()
    characters, numbers = strings.characters, strings.numbers
    found = np.exp(strings.log_probs(["123", "ab", "1a"]))
    spelt = np.exp(characters.log_probs(["123", "ab", "1a"]))
    np.testing.assert_allclose(found[:, [0, 2]], spelt[:, [0, 2]])
    expected = 0.5 * spelt[:, 1] + 0.5 * np.exp(numbers.log_probs(["123", "ab", "1a"]))
    np.testing.assert_allclose(found[:, 1], expected)
    assert np.isneginf(strings.log_probs(["", "a\ud800"])).all() and np.isfinite(strings.log_probs(["\n \0"])).all()
    assert not is_text("") and is_text("\U0010ffff")


def test_what_is_outside_a_dictionary() -> None:
    strings = distributions()
    known = ["abba", "12", "qqq"]
    expected = np.log(1 - np.exp(strings.log_probs(known)).sum(0))
    np.testing.assert_allclose(strings.log_outside(known), expected)


@pytest.mark.parametrize("geometric", [0.0, 1 - 1e-9])
def test_a_class_of_strings_that_are_all_too_long_is_spelled_in_part(
    geometric: float,
) -> None:
    """It was drawn from for ever."""
    words = ["".join("0123456789abcdef"[(i * i + k) % 16] for i in range(400)) for k in range(16)]
    model = CharacterNGrams.train(words, np.zeros(16, dtype=np.int64), 1)
    many = len(SEPARATORS)
    endless = GeometricNumbers(np.array([1e-12, 1 - 2e-12, 1e-12]), np.full(10, 0.1), np.full(many, 1 / many))
    word = spell(StringDistributions(model, endless, np.array([geometric])), 0, {})
    assert 0 < len(word) <= 2 * (LONGEST + 1)


def test_spelling_avoids_known_words_and_is_the_same_again() -> None:
    strings = distributions()
    for o in range(3):
        known = {"abba", "abbas", "babas", "12", "7"}
        word = spell(strings, o, known)
        assert word not in known and word == spell(strings, o, known)


def test_a_class_all_of_whose_likely_strings_are_known_is_still_spelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq_llrnn.open_vocabulary.spelling.MOST_DRAWN", 64)

    class Everything(set):
        """Knows all strings but one."""

        def __contains__(self, string: object) -> bool:
            return string != "bb"

    strings = distributions()
    assert draw_unknown(strings, 0, 3, Everything(), np.random.default_rng(0)) == ["bb"] * 3
