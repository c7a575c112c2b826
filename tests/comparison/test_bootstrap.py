"""The paired bootstrap, against a slow one and against a known case."""

import random

import numpy as np
import pytest

from fairseq_llrnn.comparison.bootstrap import paired_bootstrap


def slow(
    bits: list[float], reference: list[float], characters: list[int], resamples: int
) -> tuple[float, float, float]:
    """Return the ends of the interval and p, sentence by sentence."""
    chance, values = random.Random(3), []
    for _ in range(resamples):
        chosen = [chance.randrange(len(bits)) for _ in bits]
        total = sum(characters[i] for i in chosen)
        values.append(sum(bits[i] - reference[i] for i in chosen) / total)
    values.sort()
    fewer = min(sum(value <= 0 for value in values), sum(value >= 0 for value in values))
    return values[int(0.025 * resamples)], values[int(0.975 * resamples)], 2 * (fewer + 1) / (resamples + 1)


def test_the_interval_is_that_of_a_slow_bootstrap() -> None:
    generator = np.random.default_rng(1)
    characters = generator.integers(5, 80, 60)
    reference = characters * 2.0 + generator.normal(size=60)
    bits = reference + generator.normal(0.15, 1.0, 60)
    found = paired_bootstrap(bits, reference, characters, resamples=4000)
    low, high, p = slow(bits.tolist(), reference.tolist(), characters.tolist(), 4000)
    assert found.value == pytest.approx((bits.sum() - reference.sum()) / characters.sum())
    assert [found.low, found.high] == pytest.approx([low, high], abs=5e-4)
    assert 0.01 < p < 0.9 and found.p == pytest.approx(p, abs=0.03)


def test_a_model_does_not_differ_from_itself() -> None:
    bits = np.arange(1.0, 30.0)
    found = paired_bootstrap(bits, bits, np.full(29, 7), resamples=700)
    assert found == (0.0, 0.0, 0.0, 1.0)


def test_a_difference_in_each_sentence_is_significant() -> None:
    bits = np.arange(1.0, 30.0)
    found = paired_bootstrap(bits - 1, bits, np.full(29, 10), resamples=999)
    assert (found.value, found.low, found.high) == pytest.approx((-0.1, -0.1, -0.1))
    assert found.p == pytest.approx(2 / 1000)
    assert found == paired_bootstrap(bits - 1, bits, np.full(29, 10), resamples=999)  # the seed is fixed
