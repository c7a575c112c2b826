"""Tuned weights against all choices of hypotheses that any weights can make, on lists small enough to try them all."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.systems.reranking.metrics import METRICS, CorpusMetric
from fairseq_llrnn.systems.reranking.tuning import DevSet, tune

WORDS = "un deux chat chien noir dort ici bien".split()


def small_dev_set(seed: int, metric: CorpusMetric, scores: int = 2) -> DevSet:
    """Three to five sentences with one to four hypotheses."""
    rng = np.random.default_rng(seed)
    features, statistics = [], []
    for _ in range(rng.integers(3, 6)):
        size = rng.integers(1, 5)
        hypotheses = [" ".join(rng.choice(WORDS, rng.integers(3, 8))) for _ in range(size)]
        reference = " ".join(rng.choice(hypotheses).split()[:-1] + [str(rng.choice(WORDS))])
        features.append(rng.normal(size=(size, scores)) * ([1.0, 30.0, 0.1][:scores]))
        statistics.append(metric.statistics(hypotheses, reference))
    return DevSet.of(features, statistics)


def best_by_all_directions(dev: DevSet, metric: CorpusMetric) -> float:
    """The best corpus score of any weights (w1 ≥ 0, w2): between two directions in which two hypotheses of a sentence
    swap their places, nothing changes, so that one direction between each two of these is enough."""
    angles = [-math.pi / 2, math.pi / 2]
    for n in range(len(dev.present)):
        rows = dev.scores[n][dev.present[n]]
        for one, other in itertools.combinations(rows, 2):
            a, b = one - other  # equal where w1 a + w2 b = 0
            angles.append(math.atan2(-a, b) if b > 0 else math.atan2(a, -b))
    angles = sorted(angles)
    between = [(low + high) / 2 for low, high in itertools.pairwise(angles)]
    return max(metric.score(dev.sums(np.array([math.cos(t), math.sin(t)]))) for t in between)


def best_by_all_choices(dev: DevSet, metric: CorpusMetric) -> float:
    """The best corpus score of any choice of hypotheses, by whatever means."""
    sizes = dev.present.sum(axis=1)
    return max(
        metric.score(sum(dev.statistics[n, k] for n, k in enumerate(choice)))
        for choice in itertools.product(*map(range, sizes))
    )


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("seed", range(6))
def test_no_weights_are_better(name: str, seed: int) -> None:
    metric = CorpusMetric(name)
    dev = small_dev_set(seed, metric)
    found = tune(dev, metric.score, np.array([1.0, 0.0]), np.array([False, True]), seed=1)
    assert found.after == pytest.approx(best_by_all_directions(dev, metric), abs=1e-9)
    assert found.after <= best_by_all_choices(dev, metric)
    assert metric.score(dev.sums(found.weights)) == found.after
    assert metric.score(dev.sums(np.array([1.0, 0.0]))) == found.before
    assert np.abs(found.weights).sum() == pytest.approx(1)


def test_the_best_choice_is_found_where_weights_can_make_it() -> None:
    metric = CorpusMetric("bleu")
    references = ["un chat noir dort ici", "deux chiens sont là , dehors", "rien ne va plus ici"]
    others = ["un chien dort", "deux chats sont là", "tout va bien"]
    statistics = [metric.statistics([o, r], r) for o, r in zip(others, references, strict=True)]
    # the first score prefers the wrong one, the second one the right one, on a scale a thousand times smaller
    features = [np.array([[1.0, -0.001], [0.0, 0.001]])] * 3
    dev = DevSet.of(features, statistics)
    found = tune(dev, metric.score, np.array([1.0, 0.0]), np.array([False, False]), seed=1)
    assert found.before < found.after == pytest.approx(100.0) == best_by_all_choices(dev, metric)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    start=st.lists(st.sampled_from([-1.0, 0.0, 0.3, 1.0]), min_size=3, max_size=3),
    scores=st.sampled_from([2, 3]),
)
def test_never_below_the_start(seed: int, start: list[float], scores: int) -> None:
    metric = CorpusMetric("bleu")
    dev = small_dev_set(seed, metric, scores)
    weights = np.array([abs(start[0]), *start[1:scores]])
    signed = np.array([False, True, True][:scores])
    found = tune(dev, metric.score, weights, signed, seed=1)
    assert found.before == metric.score(dev.sums(weights))
    assert found.after >= found.before
    assert found.weights[0] >= 0


def test_the_same_seed_gives_the_same_weights() -> None:
    metric = CorpusMetric("chrf")
    dev = small_dev_set(3, metric, 3)
    start, signed = np.array([1.0, 0.0, 0.0]), np.array([False, False, True])
    first, second = (tune(dev, metric.score, start, signed, seed=5) for _ in range(2))
    assert first.weights.tolist() == second.weights.tolist()
    assert tune(dev, metric.score, start, signed, seed=6).weights.tolist() != first.weights.tolist()


def test_equals_go_to_the_first_and_padding_never_wins() -> None:
    dev = DevSet.of(
        [np.array([[-5.0, 0.0], [-5.0, 1.0]]), np.array([[-9.0, 0.0]])],
        [np.array([[1], [2]]), np.array([[4]])],
    )
    assert dev.choice(np.array([1.0, 0.0])).tolist() == [0, 0]
    assert dev.choice(np.array([1.0, 0.1])).tolist() == [1, 0]
    assert dev.sums(np.array([1.0, 0.1])).tolist() == [6]


def test_scores_that_never_differ_do_no_harm() -> None:
    metric = CorpusMetric("bleu")
    dev = DevSet.of([np.zeros((2, 2))], [metric.statistics(["un chat noir dort", "deux"], "deux")])
    found = tune(dev, metric.score, np.array([0.0, 0.0]), np.array([False, True]), seed=1)
    assert found.before == found.after
    assert np.isfinite(found.weights).all()


def test_the_spread_is_that_of_typical_lists() -> None:
    lists = [np.array([[0.0, 5.0], [2.0, 5.0]])] * 4 + [np.array([[0.0, 5.0], [-10_000.0, 9.0]])]
    assert DevSet.of(lists, [np.zeros((2, 1))] * 5).spread().tolist() == [1.0, 2.0]
