"""Shapes and suffixes: examples, and laws that hold for every word."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.spelling_features import (
    SECONDS_AT_ONCE,
    SMALL_NUMBER_END,
    UserPatterns,
    shape_features,
    suffix_features,
    suffixes,
)

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


# The user's own regular expressions: what they match, and everything that can be wrong with the file
GOOD = r"""
# Patterns of our own.
[patterns]
ordinal = '\d+(er|re|e|es)'
"has digit" = "x"
url = "(https?://|www\\.).*"
"""


def load(tmp_path: Path, text: str) -> UserPatterns:
    path = tmp_path / "patterns.toml"
    path.write_text(text, encoding="utf-8")
    return UserPatterns.load(path)


def test_whole_words_match(tmp_path: Path) -> None:
    patterns = load(tmp_path, GOOD.replace('"has digit"', "digit"))
    assert patterns.names == ["ordinal", "digit", "url"]
    assert patterns.features("3e") == {"Pattern:ordinal": 1.0}
    assert patterns.features("www.exemple.fr") == {"Pattern:url": 1.0}
    assert patterns.features("le3e") == patterns.features("3eme") == patterns.features("") == {}


def test_several_patterns_can_match(tmp_path: Path) -> None:
    patterns = load(tmp_path, "[patterns]\na = 'x.*'\nb = '.*y'\n")
    assert patterns.features("xy") == {"Pattern:a": 1.0, "Pattern:b": 1.0}
    patterns.check_used(["xz", "zy"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[patterns]\na = 'x\nb = 'y'\n", r"patterns.toml: is not TOML: .*\(at line 2.*; expected a table "
         r"\[patterns\]"),
        ('[patterns]\na = "\\d"\n', "is not TOML: .*line 2.*single quotes keep backslashes"),
        ("[patterns]\na = 'x'\na = 'y'\n", "is not TOML: .*line 3"),
        ("", r"with lines  name = 'regular expression', and nothing else; found nothing"),
        ("a = 'x'\n", r"expected a table \[patterns\].* found 'a'"),
        ("patterns = 'x'\n", r"expected a table \[patterns\].* found 'patterns'"),
        ("[patterns]\na = 'x'\n[more]\n", r"and nothing else; found 'patterns', 'more'"),
        ("[patterns]\n", r"it contains no pattern; expected a table \[patterns\]"),
        ("[patterns]\na = 3\n", "pattern 'a' is 3; expected a regular expression in quotes"),
        ("[patterns]\na = ['x']\n", r"pattern 'a' is \['x'\]; expected a regular expression in quotes"),
        ("[patterns]\n[patterns.a]\nb = 'x'\n", "pattern 'a' is {'b': 'x'}; expected a regular expression"),
        (GOOD, "'has digit' cannot name a pattern; use a name without spaces"),
        ("[patterns]\n'' = 'x'\n", "'' cannot name a pattern"),
        ("[patterns]\na = 'x'\nbad = 'abc('\n", r"pattern 'bad' is no regular expression: missing \) at character 5 of "
         r"'abc\('"),
        ("[patterns]\na = '*a'\n", r"pattern 'a' is no regular expression: nothing to repeat at character 1 of '\*a'"),
        ("[patterns]\na = '" + "(" * 5000 + "x" + ")" * 5000 + "'\n", "pattern 'a' is too deep or too large to "
         "compile"),
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message) as error:
        load(tmp_path, text)
    assert str(error.value).startswith(str(tmp_path / "patterns.toml"))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"none.toml: cannot be read: No such file .*; expected a table \[patterns\]"):
        UserPatterns.load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes("[patterns]\na = 'é'\n".encode("latin-1"))
    with pytest.raises(OptionError, match="latin.toml: expected UTF-8, found the byte 0xe9 at byte 17; convert"):
        UserPatterns.load(str(tmp_path / "latin.toml"))


def test_a_pattern_that_matches_nothing_is_named(tmp_path: Path) -> None:
    patterns = load(tmp_path, "[patterns]\na = 'x.*'\nb = 'Y'\nc = 'Z'\n")
    message = r"patterns.toml: pattern 'b' \('Y'\) matches no word of the vocabulary; .*; fix or remove it"
    with pytest.raises(OptionError, match=message):
        patterns.check_used(["x", "y", "z"])
    patterns.check_used(["Z", "Y", "x"])


# a match of `(?R)` took all memory, and no time limit stopped it
CALLS = r".*calls its own group.*; write the content"
# repeats are written out when they are compiled: 4 GB for the first ones
REPEATS = " .* has more than 100,000 characters when its repeats"
BROKEN = " .* has a blank or a comment in a repeat; write repeats as"
REFUSED = {
    CALLS: ["(?R)", "a(?R)?b", "(a|(?1))", "(?P<n>a(?&n)?)", "(?P<n>a)(?P>n)", "x(?-1)(y)", "(?+1)(y)", "(?0)"],
    REPEATS: [
        "a{1000000000}", "(?:(?:a?){10000}){10000}", "((((a|b)?){30}){50,}){60,90}", r"(?x) (?:a{900} # )\n\n){900}",
        "(?:a[)\\]]{400}b){500}", "a{99999999999999999999}", "a{300}){400}", "a{0000000000020000000}",
    ],
    BROKEN: ["(?x)a{ 2000000000 }", "(?V1x)a{2#\n000000000}", "(?x:a{2 000000000})"],
}  # fmt: skip


@pytest.mark.parametrize(("says", "expression"), [(says, one) for says, some in REFUSED.items() for one in some])
def test_what_would_not_end_or_fill_the_memory_is_refused(tmp_path: Path, says: str, expression: str) -> None:
    with pytest.raises(OptionError, match=f"patterns.toml: pattern 'a'{says}"):
        load(tmp_path, f"[patterns]\na = '''{expression}'''\n")


@pytest.mark.parametrize(
    "expression",
    [r"\(?R\)?", "[(?R)]+", r"(?x)[0-9a-f]{8} (?:-[0-9a-f]{4}){3} -[0-9a-f]{12}", "a{0,99999}", r"\p{Lu}.{5,}"],
)
def test_ordinary_expressions_are_not(tmp_path: Path, expression: str) -> None:
    assert load(tmp_path, f"[patterns]\na = '{expression}'\n").expressions == {"a": expression}


def test_an_exponential_pattern_is_stopped(tmp_path: Path) -> None:
    patterns = load(tmp_path, "[patterns]\nslow = '(?:a|aa)+x'\n")
    assert patterns.features("aaaax") == {"Pattern:slow": 1.0}
    word = "a" * 60 + "!"
    message = rf"pattern 'slow' \('\(\?:a\|aa\)\+x'\) takes too long, stopped at the word '{word}'; repeats inside"
    start = time.process_time()
    with pytest.raises(OptionError, match=message):
        patterns.features(word)
    assert time.process_time() - start < 3 * SECONDS_AT_ONCE


def test_many_slowish_words_are_stopped_too(tmp_path: Path) -> None:
    patterns = load(tmp_path, "[patterns]\nslow = '(?:a|aa)+x'\n")
    start = time.process_time()
    with pytest.raises(OptionError, match="takes too long"):
        for number in range(10_000):
            patterns.features("a" * 24 + f"{number}")  # some milliseconds each
    assert time.process_time() - start < 3 * SECONDS_AT_ONCE


def test_an_ordinary_pattern_does_not_run_out_of_time(tmp_path: Path) -> None:
    patterns = load(tmp_path, "[patterns]\nnumber = '[0-9]+([.,][0-9]+)*'\n")
    assert sum(len(patterns.features(str(number))) for number in range(200_000)) == 200_000
