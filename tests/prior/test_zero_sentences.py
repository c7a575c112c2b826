"""Sentences of probability zero, compared with the background word by word."""

import automata
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.automata.automaton import END, ROOT, Automaton
from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground
from fairseq_llrnn.ngrams.ngrams import Sentences
from fairseq_llrnn.prior.parts.automaton_part import POSSIBLE, first_impossible


def word_by_word(automaton: Automaton, root: np.ndarray, sentence: list[int]) -> int:
    background = AutomatonBackground(torch.arange(len(root)), len(root), torch.from_numpy(root), automaton).bind()
    state = background.start(1)
    for place, token in enumerate([*sentence, END]):
        if torch.isneginf(background.view(state).log_weights[0, token]):
            return place
        state = background.advance(state, torch.tensor([token]))
    return POSSIBLE


@given(st.integers(0, 300), st.lists(st.lists(st.integers(3, automata.WORDS - 1), max_size=5), min_size=1, max_size=4))
def test_equals_the_background_word_by_word(seed: int, lines: list[list[int]]) -> None:
    automaton, root = automata.random_automaton(seed)
    found = first_impossible(automaton, root, Sentences.of(lines))
    assert found.tolist() == [word_by_word(automaton, root, line) for line in lines]


@pytest.mark.parametrize("forbidden", [False, True])
def test_where_everything_backs_off_to_the_root_only_its_words_matter(forbidden: bool) -> None:
    root = automata.random_root(1)
    root_next = [-1, -1, *[0] * (len(root) - 2)]
    automaton = automata.from_states([{}], len(root), fail=[ROOT], root_next=root_next, memory=0)
    if forbidden:
        root[5] = -np.inf
    found = first_impossible(automaton, root, Sentences.of([[4, 3], [], [3, 5]]))
    assert found.tolist() == [POSSIBLE, POSSIBLE, 1 if forbidden else POSSIBLE]
