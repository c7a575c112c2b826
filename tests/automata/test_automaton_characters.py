"""Texts spelled in characters: known words, separators, words that a sentence adds; bad files."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from automata import string_weights
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.characters import read_words
from fairseq_llrnn.automata.reading import read_automaton
from fairseq_llrnn.automata.symbols import Symbols
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS, WordList

NAMES = ("a", "b", "▁", ".")
WORDS = WordList((*SPECIALS, *NAMES), np.array([0] * 4 + [5] * 4))


def read(tmp_path: Path, text: str, unknown: str = "error") -> Automaton:
    file = tmp_path / "some.words"
    file.write_text(text, encoding="utf-8")
    return read_words(file, Symbols(WORDS, unknown))


def texts(automaton: Automaton, longest: int = 6) -> set[str]:
    automaton.check()
    return {s.replace(" ", "") for s in string_weights(automaton, NAMES, 4, longest)}


def expected(words: set[str], separators: str, longest: int = 6) -> set[str]:
    one = "|".join(sorted(map(re.escape, words)))
    pattern = re.compile(f"({one})([{separators}]+({one}))*[{separators}]*")
    strings = ("".join(s) for n in range(longest + 1) for s in itertools.product(NAMES, repeat=n))
    return {s for s in strings if pattern.fullmatch(s)}


WORD = st.text("ab", min_size=1, max_size=3)


@given(words=st.sets(WORD, min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_texts_are_words_and_separators(tmp_path_factory: pytest.TempPathFactory, words: set[str]) -> None:
    characters = read(tmp_path_factory.mktemp("words"), "%separator ▁ .\n" + "\n".join(words))
    assert texts(characters, 5) == expected(words, "▁.", 5)


def test_endings_are_shared(tmp_path: Path) -> None:
    long = ["".join(s) + "ab" * 20 for s in itertools.product("ab", repeat=6)]
    automaton = read(tmp_path, "\n".join(long))
    assert automaton.num_states < 60


def test_the_entry_point_and_the_usual_separator(tmp_path: Path) -> None:
    (tmp_path / "some.words").write_text("# two words\nab\n\nb\nab\n")
    automaton = read_automaton(tmp_path / "some.words", WORDS).automaton
    assert texts(automaton) == expected({"ab", "b"}, "▁")


def test_unknown_characters(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="some.words, line 2: the word 'az': symbol 'z' is not in the dictionary"):
        read(tmp_path, "ab\naz\n")
    assert texts(read(tmp_path, "ab\naz\n", "drop")) == expected({"ab"}, "▁")
    read_notes = read_automaton(tmp_path / "some.words", WORDS, "drop").notes
    assert read_notes == {"words with a character that the dictionary lacks, dropped": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected words, one a line, found none"),
        ("%separator z\nab\n", "line 1: symbol 'z' is not in the dictionary"),
        ("a" * 201, "line 1: expected a word of at most 200 characters, found one of 201"),
        ("a▁b\n", "line 1: the word 'a▁b' holds the separator '▁'; list its parts"),
    ],
)
def test_bad_lists(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


def test_no_separator_at_all(tmp_path: Path) -> None:
    (tmp_path / "some.words").write_text("a\n")
    letters = WordList((*SPECIALS, "a", "b"), np.array([0] * 4 + [5] * 2))
    with pytest.raises(DataError, match="expected a symbol between words .▁ or _., found none in the dictionary; name"):
        read_automaton(tmp_path / "some.words", letters)
