"""Backgrounds: the shared laws, static ones, smoothing, precision."""

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_masses import sparse_masses

from fairseq_llrnn.automata.automaton import END
from fairseq_llrnn.backgrounds.algebra import Product, Tempered
from fairseq_llrnn.backgrounds.background import StaticBackground
from fairseq_llrnn.backgrounds.class_weights import class_log_sums
from fairseq_llrnn.backgrounds.mixture import Mixture
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.ngrams.kneser_ney import unigram_weights
from fairseq_llrnn.testing import check_background

CLASS_OF = torch.tensor([0, 1, 0, 2, 1, 3, 2, 0, 4])


def test_slow_default_obeys_the_laws() -> None:
    check_background(oracles.HashBackground(CLASS_OF, 5))


def test_a_background_that_is_asked_before_it_is_bound() -> None:
    uniform = StaticBackground(CLASS_OF, 5, torch.zeros(len(CLASS_OF)))
    for module in (Product([uniform, uniform]), Mixture([uniform]), Tempered(uniform, 2.0)):
        with pytest.raises(NotImplementedError, match=rf"^{type(module).__name__}: call bind\(\) first, or implement"):
            module.start(1)


def test_corrections_obey_the_laws() -> None:
    check_background(oracles.SparseHashBackground(CLASS_OF, 5))


def test_corrections_by_hand() -> None:
    inf = float("inf")
    corrections = sparse_masses(
        shared=torch.tensor([[0.0, -inf, 2.0]]), rows=torch.tensor([0, 0, 0, 2]), classes=torch.tensor([2, 2, 0, 2]),
        added=torch.tensor([1.0, 0.5, -1.0, 3.0]), only=torch.tensor([False, False, True]),
        constant=torch.tensor([0.0, 10.0, -1.0]),
    )  # fmt: skip
    expected = torch.tensor([[-1.0, -inf, 3.5], [10.0, -inf, 12.0], [-inf, -inf, 4.0]])
    torch.testing.assert_close(corrections.dense(), expected)


def test_a_background_that_looks_at_nothing_ends_anywhere_and_holds_nothing_out() -> None:
    background = StaticBackground(CLASS_OF, 5, torch.zeros(9))
    assert background.bind(text=torch.zeros((2, 3), dtype=torch.long)) is background
    assert background.view(background.start(1), remaining=1).remaining is None
    assert background.steps_to_end(background.start(3)).tolist() == [1, 1, 1]
    assert background.view_of(torch.zeros((2, 3), dtype=torch.long)).class_mass.entries is None


@given(st.lists(st.floats(0, 1e6), min_size=9, max_size=9), st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_static_obeys_the_laws(weights: list[float], seed: int) -> None:
    table = torch.tensor(weights, dtype=torch.float64)
    table[END] += 1.0  # a string can end
    check_background(StaticBackground(CLASS_OF, 5, table.log()), seed=seed)


def test_a_class_without_members_has_no_mass() -> None:
    background = StaticBackground(torch.tensor([0, 2]), 4, torch.zeros(2))
    state = background.start(1)
    assert torch.isneginf(background.view(state).class_mass.dense()[0, [1, 3]]).all()
    assert torch.isneginf(background.view(state).best_share[0, [1, 3]]).all()


def test_class_sums_do_not_overflow_or_vanish() -> None:
    huge = torch.tensor([[700.0, 699.0, -800.0, -801.0]], dtype=torch.float64)
    sums = class_log_sums(huge, torch.tensor([0, 0, 1, 1]), 2)
    expected = torch.stack([huge[0, :2].logsumexp(0), huge[0, 2:].logsumexp(0)]).unsqueeze(0)
    torch.testing.assert_close(sums, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_does_not_touch_the_background(dtype: torch.dtype) -> None:
    background = StaticBackground(CLASS_OF, 5, torch.randn(9))
    exact = background.word_log_share.clone()
    background.to(dtype)
    assert background.word_log_share.dtype == torch.float64
    assert torch.equal(background.word_log_share, exact)


# ---- smoothing ------------------------------------------------------------------------------------------------------

ALLOWED = np.array([True, True, True, True, False, True])
COUNTS = np.array([5, 1, 1, 0, 9, 2])


@pytest.mark.parametrize("smoothing", ["absolute", "additive", "good-turing", "none"])
@given(st.lists(st.integers(0, 1000), min_size=6, max_size=40))
@settings(max_examples=40, deadline=None)
def test_unigram_sums_to_one_over_allowed_words(smoothing: str, counts: list[int]) -> None:
    allowed = np.arange(len(counts)) % 5 != 4
    array = np.array(counts)
    if array[allowed].sum() == 0:
        return
    weights = unigram_weights(array, allowed, smoothing)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0).all() and (weights[~allowed] == 0).all()
    unseen = allowed & (array == 0)
    if smoothing != "none":
        assert (weights[unseen] > 0).all()
    else:
        assert (weights[unseen] == 0).all()
    order = np.argsort(array[allowed], kind="stable")
    assert (np.diff(weights[allowed][order]) >= -1e-12).all(), "a word seen more often never weighs less"


def test_absolute_discounting_by_hand() -> None:
    # n1 = 2, n2 = 1: d = 2 / (2 + 2) = 0.5; counts 5, 1, 1, 2 of 9 lose 0.5 each, which 10 unseen words share
    counts = np.array([5, 1, 1, 2, *[0] * 10])
    weights = unigram_weights(counts, np.ones(14, dtype=bool), "absolute")
    np.testing.assert_allclose(weights, np.array([4.5, 0.5, 0.5, 1.5, *[0.2] * 10]) / 9)


def test_good_turing_gives_the_unseen_what_the_once_seen_had() -> None:
    counts = np.array([0] * 30 + [1] * 10 + [2] * 5 + [3] * 3 + [4, 5, 7, 20, 50])
    weights = unigram_weights(counts, np.ones(len(counts), dtype=bool), "good-turing")
    assert weights[:30].sum() == pytest.approx(10 / counts.sum())


def test_few_unseen_words_get_no_more_than_a_seen_one() -> None:
    weights = unigram_weights(COUNTS, ALLOWED, "absolute")
    assert weights[3] == pytest.approx(weights[1])


def test_additive_by_hand() -> None:
    np.testing.assert_allclose(
        unigram_weights(COUNTS, ALLOWED, "additive", 0.5), np.array([5.5, 1.5, 1.5, 0.5, 0, 2.5]) / 11.5
    )


def test_relative_frequencies_where_all_were_seen() -> None:
    seen = np.array([3, 1, 1, 5])
    for smoothing in ("absolute", "good-turing", "none"):
        np.testing.assert_allclose(unigram_weights(seen, np.ones(4, dtype=bool), smoothing), seen / 10)


def test_errors() -> None:
    with pytest.raises(DataError, match="expected counts, found none.*--count-text"):
        unigram_weights(np.zeros(6), ALLOWED)
