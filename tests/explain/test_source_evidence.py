"""What the source said of each word, against tables small enough to read."""

import math

import numpy as np
import pytest
import torch

from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.backgrounds.background import StaticBackground
from fairseq_llrnn.explain.source_terms import source_evidence

CLASS_OF = torch.tensor([0, 1, 1, 2])
WEIGHTS = torch.tensor([3.0, 1.0, 0.5, 0.0], dtype=torch.double)  # they do not sum to one
TOKENS = torch.tensor([1, 3, 0, 2])
SOURCE = torch.tensor([5, 4, 5, 2])  # a word, another, the first again, </s>
PAIRS = [(4, 0, 0.25), (4, 1, 0.75), (5, 1, 1.0)]  # source, target, t(target | source)


@pytest.fixture
def background() -> StaticBackground:
    return StaticBackground(CLASS_OF, 3, WEIGHTS.log())


@pytest.fixture
def lexical() -> LexicalTable:
    sources, targets, weights = (np.array(column) for column in zip(*PAIRS, strict=True))
    table = LexicalTable.from_pairs(sources, targets, weights, 6, top=5)
    return table


def test_the_background_without_the_source(background: StaticBackground) -> None:
    said = source_evidence(None, background, SOURCE, TOKENS, None, top=2)
    found = [math.exp(s.log_background) for s in said]
    assert found == pytest.approx([1 / 4.5, 0.0, 3 / 4.5, 0.5 / 4.5])
    assert {(s.attention, s.translations) for s in said} == {(None, None)}


def test_who_speaks_for_a_word(background: StaticBackground, lexical: LexicalTable) -> None:
    said = source_evidence(lexical, background, SOURCE, TOKENS, None, top=9)
    assert [s.translations for s in said] == [((0, 1.0), (2, 1.0), (1, 0.75)), (), ((1, 0.25),), ()]
    said = source_evidence(lexical, background, SOURCE, TOKENS, None, top=2)
    assert said[0].translations == ((0, 1.0), (2, 1.0))


def test_where_the_model_looked(background: StaticBackground) -> None:
    attention = torch.tensor([[0.125, 0.5, 0.25, 0.125], [1.0, 0.0, 0.0, 0.0], [0.25] * 4, [0.0, 0.25, 0.0, 0.75]])
    said = source_evidence(None, background, SOURCE, TOKENS, attention, top=2)
    assert [s.attention for s in said] == [
        ((1, 0.5), (2, 0.25)), ((0, 1.0), (1, 0.0)), ((0, 0.25), (1, 0.25)), ((3, 0.75), (1, 0.25)),
    ]  # fmt: skip


def test_strings_outside_the_vocabulary_are_impossible_without_the_source(background: StaticBackground) -> None:
    outside = torch.tensor([False, False, True, False])
    said = source_evidence(None, background, SOURCE, TOKENS, None, top=2, outside=outside)
    assert [math.exp(s.log_background) for s in said] == pytest.approx([1 / 4.5, 0.0, 0.0, 0.5 / 4.5])
