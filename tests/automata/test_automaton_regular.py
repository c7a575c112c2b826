"""Regular expressions: what they accept, as Python's own say; every bad one; sizes."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from automata import string_weights
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.automaton_files import read_automaton
from fairseq_llrnn.automata.symbols import Symbols
from fairseq_llrnn.automata.word_characters import read_words
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS, WordList

NAMES = ("a", "b", "c", "?", 'x"y', "#1")
WORDS = WordList((*SPECIALS, *NAMES), np.array([0] * 4 + [5] * 6))


def read(tmp_path: Path, text: str, unknown: str = "error") -> Automaton:
    file = tmp_path / "some.regex"
    file.write_text(text, encoding="utf-8")
    return read_automaton(file, WORDS, unknown).automaton


def language(automaton: Automaton, longest: int = 3, names: tuple[str, ...] = ("a", "b", "c")) -> set[str]:
    strings = [" ".join(s) for n in range(longest + 1) for s in itertools.product(names, repeat=n)]
    found = string_weights(automaton, NAMES, 4, 0, strings)
    assert set(found.values()) <= {1.0}
    return set(found)


EXPRESSIONS = st.recursive(
    st.sampled_from(["a", "b", "c", "[a b]", "[^a]", ".", "()"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(" ".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} | {pair[1]})"),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{2}", "{1,}", "{0,2}", "{2,3}"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@given(EXPRESSIONS)
@settings(max_examples=40, deadline=None)
def test_accepts_what_pythons_own_accept(tmp_path_factory: pytest.TempPathFactory, expression: str) -> None:
    file = tmp_path_factory.mktemp("regex") / "some.regex"
    file.write_text(expression)
    words = WordList((*SPECIALS, "a", "b", "c"), np.array([0] * 4 + [5] * 3))
    pattern = re.compile(expression.replace(" ", ""))
    strings = [" ".join(s) for n in range(5) for s in itertools.product("abc", repeat=n)]
    expected = {s for s in strings if pattern.fullmatch(s.replace(" ", ""))}
    assume(expected != {""})  # an error, see below
    automaton = read_automaton(file, words).automaton
    assert set(string_weights(automaton, ("a", "b", "c"), 4, 4)) == expected


def test_words_with_operators_and_comments(tmp_path: Path) -> None:
    automaton = read(tmp_path, 'a # first\n ("?" | "x\\"y"  # then\n | "#1")\n')
    assert language(automaton, 2, NAMES) == {"a ?", 'a x"y', "a #1"}


def test_any_word_leaves_out_ends_and_unknown_words(tmp_path: Path) -> None:
    automaton = read(tmp_path, ".")
    assert sorted(automaton.row(0)) == list(range(4, len(WORDS)))
    assert sorted(read(tmp_path, "[^a c]").row(0)) == [5, 7, 8, 9]
    assert sorted(read(tmp_path, "<unk>").row(0)) == [3]


def test_unknown_symbols(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="some.regex, line 2, column 3: symbol 'z' is not in the dictionary"):
        read(tmp_path, "a\n| z b\n")
    assert language(read(tmp_path, "a\n| z b\n", "drop")) == {"a"}
    assert language(read(tmp_path, "[a z] b", "drop")) == {"a b"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(a b", r"some.regex: expected `\)`, found 'the end'; fix the expression"),
        ("a )", r"line 1, column 3: expected an operator or a word, found '\)'"),
        ("* a", r"line 1, column 1: expected an operator or a word, found '\*'"),
        ("[a", "expected words and `]`, found 'the end'"),
        ("[a | b]", r"line 1, column 4: expected words and `]`, found '\|'"),
        ("a{3,2}", "line 1, column 2: expected .least,most. with least ≤ most, found '.3,2.'"),
        ("a{x}", "line 1, column 2: expected words and operators, found '.x.'"),
        ('a "b', "line 1, column 3: expected words and operators, found "),
        ("(" * 120 + "a" + ")" * 120, "expected at most 100 groups inside each other"),
        ("[]", "accepts no string"),
        ("</s>", "arcs cannot have </s>, which final states add"),
        ("(((a{1000}){1000}){1000})*", "at most 4,000,000 arcs, found one of 3,00.* when its repetitions are written"),
    ],
)
def test_bad_expressions(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


def test_the_empty_string_alone_is_an_error(tmp_path: Path) -> None:
    for text in ("# nothing\n", "()", "a{0}"):
        with pytest.raises(DataError, match="expected strings of words, found the empty string alone; fix the file"):
            read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("(a | b)* a (a | b){40}", r"`\{40\}` \(line 1, column 19\)"),
        ("c?\n.* a (. | b c){50} c", r"`\{50\}` \(line 2, column 15\)"),
        ("(.* a .{3} b .{9,30} c)*", r"`\{9,30\}` \(line 1, column 15\)"),
    ],
)
def test_expressions_that_explode_are_refused_before_they_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, piece: str
) -> None:
    monkeypatch.setattr("fairseq_llrnn.automata.limits.MOST_STEPS", 100_000)
    message = f"more than 100,000 steps to be made deterministic: of .* states, .* and more, most of them for {piece}"
    expected = rf"some.regex: .*{message}: a string may match it at many places.*; fix the file"
    with pytest.raises(DataError, match=expected):
        read(tmp_path, text)


def test_long_expressions_take_no_time_per_word(tmp_path: Path) -> None:
    """Searching an end went word by word."""
    assert read(tmp_path, "((a{100}){500} b?)*").num_states > 50_000


def test_repetitions_around_each_other_are_not_written_out(tmp_path: Path) -> None:
    """Each `+` once stood for two copies of what it repeats: twenty of them for a million."""
    many = read(tmp_path, "(" * 40 + "a" + "+ b?)" * 40)
    assert language(many) == language(read(tmp_path, "a+ b* (a | b)*")) - {"", "b"} | {"a"}
    assert language(read(tmp_path, "a" + "+" * 60)) == {"a", "a a", "a a a"}


def test_more_repetitions_than_can_be_followed(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="groups and repetitions are nested too deeply"):
        read(tmp_path, "a" + "+" * 3000)


# Texts spelled in characters: known words, separators, words that a sentence adds; bad files
LETTERS = ("a", "b", "▁", ".")
SPELLED = WordList((*SPECIALS, *LETTERS), np.array([0] * 4 + [5] * 4))


def read_list(tmp_path: Path, text: str, unknown: str = "error") -> Automaton:
    file = tmp_path / "some.words"
    file.write_text(text, encoding="utf-8")
    return read_words(file, Symbols(SPELLED, unknown))


def texts(automaton: Automaton, longest: int = 6) -> set[str]:
    automaton.check()
    return {s.replace(" ", "") for s in string_weights(automaton, LETTERS, 4, longest)}


def expected(words: set[str], separators: str, longest: int = 6) -> set[str]:
    one = "|".join(sorted(map(re.escape, words)))
    pattern = re.compile(f"({one})([{separators}]+({one}))*[{separators}]*")
    strings = ("".join(s) for n in range(longest + 1) for s in itertools.product(LETTERS, repeat=n))
    return {s for s in strings if pattern.fullmatch(s)}


WORD = st.text("ab", min_size=1, max_size=3)


@given(words=st.sets(WORD, min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_texts_are_words_and_separators(tmp_path_factory: pytest.TempPathFactory, words: set[str]) -> None:
    characters = read_list(tmp_path_factory.mktemp("words"), "%separator ▁ .\n" + "\n".join(words))
    assert texts(characters, 5) == expected(words, "▁.", 5)


def test_endings_are_shared(tmp_path: Path) -> None:
    long = ["".join(s) + "ab" * 20 for s in itertools.product("ab", repeat=6)]
    automaton = read_list(tmp_path, "\n".join(long))
    assert automaton.num_states < 60


def test_the_entry_point_and_the_usual_separator(tmp_path: Path) -> None:
    (tmp_path / "some.words").write_text("# two words\nab\n\nb\nab\n")
    automaton = read_automaton(tmp_path / "some.words", SPELLED).automaton
    assert texts(automaton) == expected({"ab", "b"}, "▁")


def test_unknown_characters(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="some.words, line 2: the word 'az': symbol 'z' is not in the dictionary"):
        read_list(tmp_path, "ab\naz\n")
    assert texts(read_list(tmp_path, "ab\naz\n", "drop")) == expected({"ab"}, "▁")
    read_notes = read_automaton(tmp_path / "some.words", SPELLED, "drop").notes
    assert read_notes == {"words with a character that the dictionary lacks, dropped": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected words, one a line, found none"),
        ("%separator z\nab\n", "line 1: symbol 'z' is not in the dictionary"),
        ("a" * 201, "line 1: expected a word of at most 200 characters, found one of 201"),
        ("a▁b\n", "line 1: the word 'a▁b' contains the separator '▁'; list its parts"),
    ],
)
def test_bad_lists(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_list(tmp_path, text)


def test_no_separator_at_all(tmp_path: Path) -> None:
    (tmp_path / "some.words").write_text("a\n")
    letters = WordList((*SPECIALS, "a", "b"), np.array([0] * 4 + [5] * 2))
    with pytest.raises(DataError, match="expected a symbol between words .▁ or _., found none in the dictionary; name"):
        read_automaton(tmp_path / "some.words", letters)
