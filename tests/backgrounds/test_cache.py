"""The cache: equal to its formula in value and gradient, lawful, normalised, clean at its edges."""

import math

import pytest
import torch
from background_atoms import CLASS_OF, NUM_CLASSES, root
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_llrnn.backgrounds.cache_background import Cache
from fairseq_llrnn.testing import check_background


def cache(size: int = 3, weight: float = 0.3, decay: float = 0.8, learned: bool = True) -> Cache:
    return Cache(CLASS_OF, NUM_CLASSES, root(), size, weight, decay, learned)


def by_hand(words: list[int], size: int, weight: Tensor, decay: Tensor) -> Tensor:
    """b(K, x) of all words by the formula: (V,)."""
    b0 = root().exp()
    kept = [x for x in words if x != 2 and b0[x] > 0]
    last = list(enumerate(reversed(kept[-size:])))
    if not last:
        return b0
    total = sum((decay**age for age, _ in last), torch.zeros(()).double())
    said = torch.zeros_like(b0)
    for age, x in last:
        said = said + decay**age / total * torch.eye(len(b0), dtype=torch.float64)[x]
    return (1 - weight) * b0 + weight * said


def state_after(background: Cache, words: list[int]) -> Tensor:
    state = background.start(1)
    for word in words:
        state = background.advance(state, torch.tensor([word]))
    return state


@given(words=st.lists(st.integers(1, 11), max_size=6), size=st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_it_is_the_formula(words: list[int], size: int) -> None:
    background = cache(size)
    weight, decay = background.weight_logit.sigmoid(), background.decay_logit.sigmoid()
    expected = by_hand(words, size, weight, decay)
    found = background.bind().view(state_after(background, words)).log_weights[0].exp()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found.sum(), torch.ones(()).double())
    parameters = [background.weight_logit, background.decay_logit]
    scores = torch.randn(len(expected), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    if expected.requires_grad:
        slow = torch.autograd.grad((expected * scores).sum(), parameters, allow_unused=True)
        fast = torch.autograd.grad((found * scores).sum(), parameters)
        for mine, plain in zip(fast, slow, strict=True):
            torch.testing.assert_close(mine, torch.zeros_like(mine) if plain is None else plain)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_obeys_the_laws(dtype: torch.dtype) -> None:
    check_background(cache().to(dtype))
    check_background(cache(1, decay=1.0, learned=False).to(dtype))
    check_background(cache(50).to(dtype))


def test_without_words_it_is_b0_and_what_is_forbidden_stays_so() -> None:
    background = cache()
    for words in ([], [2], [2, 0, 1, 2]):
        torch.testing.assert_close(background.bind().view(state_after(background, words)).log_weights[0], root())
    weights = background.bind().view(state_after(background, [4, 5])).log_weights[0]
    assert torch.equal(weights.isneginf(), root().isneginf())


def test_only_the_last_words_count() -> None:
    background = cache(2)
    assert torch.equal(state_after(background, [4, 5, 6]), state_after(background, [9, 5, 6]))
    assert not torch.equal(state_after(background, [4, 5, 6]), state_after(background, [4, 6, 5]))


@pytest.mark.parametrize("between", [[2], [2, 2, 2], [1], [0, 1], [1, 2, 0]])
def test_what_is_not_kept_takes_no_place(between: list[int]) -> None:
    """The end of a sentence and words that b₀ forbids, wherever they stand, at a step and in a batch."""
    background = cache(2)
    expected = state_after(background, [4, 5])
    for words in ([4, *between, 5], [4, 5, *between], [*between, 4, *between, 5, *between]):
        assert torch.equal(state_after(background, words), expected)
        along = background.flat_states(torch.tensor([[2, *words, 9]]))
        assert torch.equal(along[len(words)], expected[0])
        steps = [state_after(background, words[:many]) for many in range(len(words) + 1)]
        assert torch.equal(along[: len(steps)], torch.cat(steps))


def test_a_decay_of_one_counts_words() -> None:
    background = cache(4, 0.5, 1.0, learned=False)
    found = background.bind().view(state_after(background, [4, 4, 4, 5])).log_weights[0].exp()
    b0 = root().exp()
    torch.testing.assert_close(found[4], 0.5 * b0[4] + 0.375)
    torch.testing.assert_close(found[5], 0.5 * b0[5] + 0.125)


def test_parameters_are_there_where_they_are_learned() -> None:
    assert {name for name, _ in cache().named_parameters()} == {"weight_logit", "decay_logit"}
    assert not list(cache(learned=False).parameters())
    assert math.isclose(float(cache(weight=0.2).weight_logit.detach().sigmoid()), 0.2)


@pytest.mark.parametrize(
    ("size", "weight", "decay", "learned", "message"),
    [
        (0, 0.1, 0.9, False, "cache of 0 words: expected 1 to 100,000"),
        (2**32, 0.1, 0.9, False, "cache of 4294967296 words: expected 1 to 100,000"),
        (5, 0.0, 0.9, False, "cache weight 0.0: expected a number between 0 and 1"),
        (5, 1.0, 0.9, False, "cache weight 1.0"),
        (5, 0.1, 0.0, False, "cache decay 0.0: expected a number above 0 and at most 1"),
        (5, 0.1, 1.0, True, "below 1 if it is learned"),
    ],
)
def test_what_is_no_cache(size: int, weight: float, decay: float, learned: bool, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cache(size, weight, decay, learned)
