"""Shapes and suffixes: examples, and the laws that hold for every word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.features.spelling import SMALL_NUMBER_END, shape_features, suffix_features, suffixes

NUMBER, YEAR, SMALL = "Shape:Number", "Shape:Year", "Shape:SmallNumber"
CAPITALISED, ALL_CAPS = "Shape:Capitalised", "Shape:AllCaps"
HYPHENATED, PUNCTUATION = "Shape:Hyphenated", "Shape:Punctuation"


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("porte", []),
        ("", []),
        ("Porte", [CAPITALISED]),
        ("Été", [CAPITALISED]),
        ("ONU", [CAPITALISED, ALL_CAPS]),
        ("A", [CAPITALISED]),
        ("S.A.", [CAPITALISED, ALL_CAPS]),
        ("iPhone", []),
        ("porte-clés", [HYPHENATED]),
        ("Saint-Malo", [CAPITALISED, HYPHENATED]),
        ("आते-जाते", [HYPHENATED]),  # marks before and behind
        ("cafe\u0301-bar", [HYPHENATED]),
        ("کتاب\u200c-ها", [HYPHENATED]),
        ("a--b", []),
        ("a-", []),
        ("-ci", []),
        ("-", [PUNCTUATION]),
        ("...", [PUNCTUATION]),
        ("«", [PUNCTUATION]),
        ("$", [PUNCTUATION]),
        (":-)", [PUNCTUATION]),
        (":-D", []),
        ("1.234,5", [NUMBER]),
        ("1'000", [NUMBER]),
        ("20\u202f000", [NUMBER]),
        ("20 000", [NUMBER]),
        ("-3", [NUMBER]),
        ("+0,5", [NUMBER]),
        (".5", [NUMBER]),
        ("12", [NUMBER, SMALL]),
        ("100", [NUMBER]),
        ("007", [NUMBER]),
        ("999", [NUMBER]),
        ("0999", [NUMBER]),
        ("1000", [NUMBER, YEAR]),
        ("1789", [NUMBER, YEAR]),
        ("2100", [NUMBER, YEAR]),
        ("2101", [NUMBER]),
        ("1,789", [NUMBER]),
        ("1.", []),
        ("12h30", []),
        ("3e", []),
        ("1-2", [HYPHENATED]),
        ("²", []),
    ],
)
def test_shapes(word: str, names: list[str]) -> None:
    assert sorted(shape_features(word)) == sorted(names)


def test_a_small_number_has_a_value_from_one_to_nearly_zero() -> None:
    assert shape_features("0")[SMALL] == 1.0
    assert shape_features("37")[SMALL] == pytest.approx(0.63)
    assert shape_features("99")[SMALL] == pytest.approx(0.01)


@given(st.integers(0, SMALL_NUMBER_END - 1), st.integers(0, SMALL_NUMBER_END + 50))
def test_the_value_of_a_small_number_falls(smaller: int, larger: int) -> None:
    if smaller < larger:
        assert shape_features(str(smaller))[SMALL] > shape_features(str(larger)).get(SMALL, 0.0)


@given(st.integers(0, 10**12))
def test_every_whole_number_is_a_number(number: int) -> None:
    for written in (str(number), f"{number:,}", f"{number:,}".replace(",", "\u00a0")):
        assert shape_features(written)[NUMBER] == 1.0


@given(st.text())
def test_shapes_have_values_between_zero_and_one_and_do_not_contradict(word: str) -> None:
    features = shape_features(word)
    assert all(name.startswith("Shape:") and 0.0 < value <= 1.0 for name, value in features.items())
    assert not (PUNCTUATION in features and features.keys() & {NUMBER, ALL_CAPS, CAPITALISED, HYPHENATED})
    if features.keys() & {YEAR, SMALL}:
        assert NUMBER in features


def test_suffixes_of_two_to_four_letters_above_the_floor() -> None:
    words = ["mangées", "chantées", "parlées", "nés", "porte-clés", "12", "été"]
    mangees, chantees, parlees, *rest = suffix_features(words, floor=3)
    assert mangees == chantees == parlees == {"Suffix:es": 1.0, "Suffix:ées": 1.0}
    assert rest == [{}, {}, {}, {}]
    # a stem of two characters remains before each suffix
    assert suffix_features(["abcde"], floor=1) == [{"Suffix:de": 1.0, "Suffix:cde": 1.0}]
    assert suffix_features(["abc"], floor=1) == [{}]


def test_the_floor_counts_types_not_repetitions() -> None:
    assert suffix_features(["porte"] * 5, floor=2) == [{}] * 5
    assert suffix_features(["porte", "sorte"], floor=2) == [{"Suffix:te": 1.0, "Suffix:rte": 1.0}] * 2


def test_suffixes_are_lower_cased_and_know_combining_marks() -> None:
    assert suffix_features(["PORTE"], floor=1) == [{"Suffix:te": 1.0, "Suffix:rte": 1.0}]
    assert "Suffix:e\u0301e" in suffix_features(["ferme\u0301e"], floor=1)[0]


def test_suffixes_in_other_scripts() -> None:
    """Marks and joiners belong to letters."""
    assert suffixes("کتاب\u200cها") == ["ها", "\u200cها", "ب\u200cها"]
    assert suffixes("लड़के") == ["के", "़के"]
    assert suffixes("porte-clés") == suffixes("l'été") == suffixes("a\u200ba") == []


WORDS = st.lists(st.text("aébcÉ1-", max_size=7), max_size=30)


@given(WORDS, st.integers(1, 4), st.randoms())
def test_a_words_suffixes_do_not_depend_on_the_order_of_the_vocabulary(words: list, floor: int, random) -> None:
    straight = dict(zip(words, suffix_features(words, floor), strict=True))
    shuffled = list(words)
    random.shuffle(shuffled)
    assert dict(zip(shuffled, suffix_features(shuffled, floor), strict=True)) == straight


@given(WORDS, st.integers(1, 4))
def test_each_suffix_has_enough_types(words: list[str], floor: int) -> None:
    rows = suffix_features(words, floor)
    for word, row in zip(words, rows, strict=True):
        for name in row:
            suffix = name.removeprefix("Suffix:")
            assert 2 <= len(suffix) <= 4 and word.lower().endswith(suffix) and len(word) >= len(suffix) + 2
            assert len({w for w, r in zip(words, rows, strict=True) if name in r}) >= floor
