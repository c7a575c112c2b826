"""Advice on words that the background forbids: it names what the prior has."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.plugin.data.zero_mass import check_training_sentences, check_whole_sentences, how_to_fix
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.part import Part, PriorView
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe


class Rhymes(Part):
    """A part of another package that forbids words."""

    kind, is_base = "rhymes", True

    def impossible(self, prior: PriorView, sentences: Sequence[Sequence[int]]) -> np.ndarray:
        return np.zeros(len(sentences), dtype=np.int64)


@pytest.fixture
def prior() -> Prior:
    return build_prior([*SPECIALS, "a", "b"], Recipe(top_words="all")).with_part(Rhymes())


def test_a_part_that_is_no_grammar_gets_no_advice_on_grammars(prior: Prior) -> None:
    assert how_to_fix(prior) == "fix the text, or build the prior without its part rhymes"
    assert how_to_fix(prior, is_prefix=True) == "build the prior without its part rhymes"
    dictionary = Dictionary()
    for word in "ab":
        dictionary.add_symbol(word)
    with pytest.raises(DataError, match=r"\(token 1; 1 such sentences in all\); fix the text, or .* its part rhymes$"):
        check_training_sentences(prior, [torch.tensor([4, 5, 2])], dictionary, "train")
    with pytest.raises(OptionError, match="the prior's background is the part rhymes, which forbids words; use"):
        check_whole_sentences(prior, "none")
