"""Texts of listed words and of the source's: the automaton that has both, string by string, and the laws."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from automata import string_weights
from hypothesis import given, settings
from hypothesis import strategies as st
from spelled_words import with_words

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.characters import read_words
from fairseq_llrnn.automata.symbols import Symbols
from fairseq_llrnn.backgrounds.automaton import AutomatonBackground
from fairseq_llrnn.backgrounds.copied_words import MOST_WORDS, NO_CHARACTER, UNKNOWN, CopiedWords
from fairseq_llrnn.features.dictionary import SPECIALS, WordList
from fairseq_llrnn.testing import check_background

NAMES = ("a", "b", "▁", ".")
TARGET = (*SPECIALS, *NAMES)
SOURCE = (*SPECIALS, "z", "▁", "b", "a")  # another order, and a character that the target lacks
WORDS = WordList(TARGET, np.array([0] * 4 + [5] * 4))
EOS, PAD = 2, 1


def listed(place: Path, words: set[str]) -> Automaton:
    (place / "some.words").write_text("%separator ▁ .\n" + "\n".join(sorted(words)), encoding="utf-8")
    return read_words(place / "some.words", Symbols(WORDS))


def background(characters: Automaton) -> CopiedWords:
    index = {name: i for i, name in enumerate(TARGET)}
    to_target = [NO_CHARACTER] * 3 + [index.get(name, UNKNOWN) for name in SOURCE[3:]]
    weights = torch.tensor([-torch.inf, -torch.inf, 0, 0, 0, 0, 0, 0]).log_softmax(0)
    class_of = torch.tensor([0, 1, 2, 3, 4, 4, 5, 6])  # a and b share a class
    base = AutomatonBackground(class_of, 7, weights, characters).float()
    return CopiedWords(base, torch.tensor(to_target))


def sources(*texts: str) -> torch.Tensor:
    rows = [[*(SOURCE.index(c) for c in text), EOS] for text in texts]
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def allowed(bound: torch.nn.Module, sentence: int, longest: int) -> set[str]:
    """Every string of one sentence, by walking."""
    found = set()
    for n in range(longest + 1):
        for text in itertools.product(NAMES, repeat=n):
            state, possible = bound.start(len(bound.letters))[sentence : sentence + 1], True
            for token in [*(TARGET.index(c) for c in text), EOS]:
                possible = possible and bool(bound.log_weights(state)[0, token] == 0)
                state = bound.advance(state, torch.tensor([token]))
            if possible:
                found.add("".join(text))
    return found


WORD = st.text("ab", min_size=1, max_size=3)


@given(words=st.sets(WORD, min_size=1, max_size=3), more=st.sets(WORD, max_size=3))
@settings(max_examples=15)
def test_strings_are_those_of_the_automaton_with_both(
    tmp_path_factory: pytest.TempPathFactory, words: set[str], more: set[str]
) -> None:
    characters = listed(tmp_path_factory.mktemp("words"), words)
    bound = background(characters).given(sources("▁".join(sorted(more)), ""))
    for sentence, own in ((0, more), (1, set())):
        both = with_words(characters, (6, 7), [tuple(TARGET.index(c) for c in word) for word in own])
        expected = {s.replace(" ", "") for s in string_weights(both, NAMES, 4, 4)}
        assert allowed(bound, sentence, 4) == expected


def test_words_of_the_source(tmp_path: Path) -> None:
    """Separated as the target is; a word with a character that the target lacks is none."""
    bound = background(listed(tmp_path, {"a"})).given(sources("bb▁zb▁▁ab", "az"))
    assert allowed(bound, 0, 2) == {"a", "a▁", "a.", "bb", "ab"}
    assert allowed(bound, 1, 2) == {"a", "a▁", "a."}
    assert bound.steps_to_end(bound.start(2)).tolist() == [2, 2]


def test_more_words_than_there_is_room_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    words = ["".join(w) for w in itertools.product("ab", repeat=6)]
    unbound = background(listed(tmp_path, {"a"}))
    for _ in range(2):
        bound = unbound.given(sources("▁".join(words)))
    assert bound.lengths.shape == (1, MOST_WORDS)
    message = f"a source has 64 different words; the first {MOST_WORDS} of each can be copied (one warning)"
    assert [record.message for record in caplog.records] == [message]
    last = [TARGET.index(c) for c in words[MOST_WORDS - 1]]
    state = bound.start(1)
    for token in last:
        assert bound.log_weights(state)[0, token] == 0
        state = bound.advance(state, torch.tensor([token]))
    assert bound.log_weights(state)[0, EOS] == 0


@pytest.mark.parametrize("seed", range(3))
def test_laws(tmp_path: Path, seed: int) -> None:
    unbound = background(listed(tmp_path, {"ab", "b", "bba"}))
    check_background(unbound, seed=seed, source=sources("bb▁a", "aab", "", "z", "b▁ba▁bb"))


def test_without_a_source_it_is_the_list(tmp_path: Path) -> None:
    """Also within a limit of length."""
    unbound = background(listed(tmp_path, {"aaa"}))
    state = unbound.start(1)
    for remaining, possible in ((3, set()), (4, {"a"})):
        shares = unbound.within(remaining).log_shares(state)[0]
        assert {TARGET[i] for i in (~shares.isneginf()).nonzero().squeeze(1).tolist()} == possible
    assert unbound.steps_to_end(state).tolist() == [4]


def test_a_limit_of_length_leaves_complete_texts(tmp_path: Path) -> None:
    bound = background(listed(tmp_path, {"aaa"})).given(sources("b▁bab"))
    for remaining, expected in ((2, {"b"}), (4, {"a", "b"})):
        shares = bound.within(remaining).log_shares(bound.start(1))[0]
        assert {TARGET[i] for i in (~shares.isneginf()).nonzero().squeeze(1).tolist()} == expected
