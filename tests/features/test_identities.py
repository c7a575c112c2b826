"""Words with an indicator, and words that share a signature."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.feature_table import (
    AUTO,
    IDENTITY_FLOOR,
    FeatureTable,
    group_equal_rows,
    sharing,
    words_with_identity,
)
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.recipe import Recipe

COUNTS = np.array([99, 5, 7, 0, 4])
ORDINARY = np.array([False, True, True, True, True])
SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>", "le", "la", "chat"]


@pytest.mark.parametrize(("floor", "expected"), [(1, [1, 2, 4]), (5, [1, 2]), (8, [])])
def test_a_floor_is_a_count(floor: int, expected: list[int]) -> None:
    assert words_with_identity(COUNTS, ORDINARY, AUTO, floor, "--top-words").tolist() == expected


def test_all_words_and_a_number_of_words() -> None:
    assert words_with_identity(COUNTS, ORDINARY, "all", 5, "--top-words").tolist() == [1, 2, 3, 4]
    assert words_with_identity(COUNTS, ORDINARY, 1, 5, "--top-words").tolist() == [2]


def test_counts_are_needed() -> None:
    message = "input_top_words auto: expected counts, found none for any word of the dictionary; give a text with"
    with pytest.raises(OptionError, match=message):
        words_with_identity(np.array([9, 0, 0, 0, 0]), ORDINARY, AUTO, 5, "input_top_words")
    with pytest.raises(OptionError, match=r"set --top-words M or --top-words all \(in a Recipe: text, or top_words\)"):
        build_prior(SYMBOLS)


def test_in_python() -> None:
    """The default of `Recipe` does not depend on the number of words."""
    counts = np.array([0, 0, 3, 0, IDENTITY_FLOOR, IDENTITY_FLOOR - 1, 9])
    prior = build_prior(SYMBOLS, Recipe(counts=counts))
    assert [n for n in prior.output.features.names if n.startswith("TOPFORM")] == ["TOPFORM:chat", "TOPFORM:le"]
    low = build_prior(SYMBOLS, Recipe(counts=counts, identity_floor=1))
    assert "TOPFORM:la" in low.output.features.names
    with pytest.raises(OptionError, match="identity_floor: expected a number of at least 1, found 0"):
        build_prior(SYMBOLS, Recipe(counts=counts, identity_floor=0))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.booleans()), min_size=1, max_size=12))
def test_sharing(words: list[tuple[int, int, bool]]) -> None:
    """Compare with the definition: a word shares if another ordinary word has its features."""
    features, counts, ordinary = zip(*words, strict=True)
    signatures = group_equal_rows(FeatureTable.from_rows([{f"X:{f}": 1.0} for f in features]))
    found = sharing(signatures, np.array(counts), np.array(ordinary))
    of_ordinary = [f for f, o in zip(features, ordinary, strict=True) if o]
    shared = [o and of_ordinary.count(f) > 1 for f, o in zip(features, ordinary, strict=True)]
    total = sum(c for c, o in zip(counts, ordinary, strict=True) if o)
    assert found.words == sum(shared)
    of_shared = sum(c for c, s in zip(counts, shared, strict=True) if s)
    assert found.tokens == pytest.approx(of_shared / total if total else 0)
