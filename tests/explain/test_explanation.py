"""Explanations against the definition p(x | K) ∝ b(x) exp(a(K)ᵀφ(x)), word by word, in double precision."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from fairseq_llrnn.explain.explanation import Explanation, explain
from fairseq_llrnn.features.feature_table import FeatureTable, group_equal_rows
from fairseq_llrnn.output.normalisers import LogLinearOutput
from fairseq_llrnn.prior.prior import Prior

# Two words share a row, one value is not 1, one word is forbidden, and b does not sum to one.
ROWS = [
    {"TOPFORM:le": 1.0, "POS:DET": 1.0, "Gender:Masc": 1.0},
    {"NOTTOP": 1.0, "POS:NOUN": 1.0, "Gender:Masc": 1.0},
    {"NOTTOP": 1.0, "POS:NOUN": 1.0, "Gender:Masc": 1.0},
    {"NOTTOP": 1.0, "POS:NUM": 1.0, "Shape:SmallNumber": 0.63},
    {"NOTTOP": 1.0, "POS:NOUN": 1.0, "Gender:Fem": 1.0},
    {"SPECIAL:</s>": 1.0},
]
WORDS = ("le", "chat", "chien", "37", "table", "</s>")
WEIGHTS = np.array([3.0, 1.0, 0.5, 0.2, 0.0, 2.0])
TOKENS = [3, 0, 2, 1, 5, 4]


@pytest.fixture
def prior() -> Prior:
    with np.errstate(divide="ignore"):
        signatures = group_equal_rows(FeatureTable.from_rows(ROWS))
        return Prior(WORDS, signatures, signatures, np.log(WEIGHTS), {})


@pytest.fixture
def output(prior: Prior) -> LogLinearOutput:
    torch.manual_seed(5)
    layer = LogLinearOutput(prior.output.features, torch.from_numpy(prior.output.class_of), 4).double()
    with torch.no_grad():
        layer.weight.normal_()
        layer.bias.normal_()
    return layer


@pytest.fixture
def hidden() -> torch.Tensor:
    return torch.randn(len(TOKENS), 4, dtype=torch.double, generator=torch.Generator().manual_seed(3))


def given(prior: Prior, output: LogLinearOutput, hidden: torch.Tensor, tokens: list[int]) -> tuple[Any, ...]:
    """What a model hands over of a sentence."""
    view = prior.background().view_of(torch.tensor(tokens).roll(1).unsqueeze(0))
    return view, hidden, torch.tensor(tokens), output.class_scores(hidden), view.class_mass.dense()


@pytest.fixture
def explained(prior: Prior, output: LogLinearOutput, hidden: torch.Tensor) -> list[Explanation]:
    return list(explain(prior, output, *given(prior, output, hidden, TOKENS), top=3))


def adaptor(prior: Prior, output: LogLinearOutput, hidden: torch.Tensor, t: int) -> dict[str, float]:
    a = output.weight.detach() @ hidden[t] + output.bias.detach()
    return dict(zip(prior.output.features.names, a.tolist(), strict=True))


def distribution(weights: dict[str, float]) -> np.ndarray:
    """p over the words, by the definition."""
    scores = WEIGHTS * np.exp([sum(weights[n] * v for n, v in row.items()) for row in ROWS])
    return scores / scores.sum()


def test_probabilities_ranks_and_predictions(
    prior: Prior, output: LogLinearOutput, hidden: torch.Tensor, explained: list[Explanation]
) -> None:
    for t, (token, e) in enumerate(zip(TOKENS, explained, strict=True)):
        p = distribution(adaptor(prior, output, hidden, t))
        assert e.token == WORDS[token]
        assert math.exp(e.log_prob) == pytest.approx(p[token], abs=1e-6)
        assert e.rank == 1 + (p > p[token]).sum()
        assert math.exp(e.log_background) == pytest.approx(WEIGHTS[token] / WEIGHTS.sum(), abs=1e-6)
        best = sorted(range(len(WORDS)), key=lambda i: -p[i])[:3]
        assert [word for word, _ in e.predictions] == [WORDS[i] for i in best]
        assert [math.exp(value) for _, value in e.predictions] == pytest.approx([p[i] for i in best], abs=1e-6)


def test_the_terms_sum_to_what_the_network_adds(explained: list[Explanation]) -> None:
    for e in explained[:-1]:
        own = math.fsum(value for _, value in e.own_features)
        assert e.log_prob == pytest.approx(e.log_background + own + e.normaliser, abs=1e-5)


def test_weights_of_features(
    prior: Prior, output: LogLinearOutput, hidden: torch.Tensor, explained: list[Explanation]
) -> None:
    for t, (token, e) in enumerate(zip(TOKENS, explained, strict=True)):
        weights = adaptor(prior, output, hidden, t)
        # the value of a feature counts: a · 0.63; an own feature's weight is a itself where φ is 1
        assert dict(e.own_features) == pytest.approx({n: weights[n] * v for n, v in ROWS[token].items()}, abs=1e-6)
        assert [n for n, _ in e.own_features] == sorted(
            dict(e.own_features), key=lambda n: -abs(dict(e.own_features)[n])
        )
        shared = sorted(
            (n for n in weights if not n.startswith(("TOPFORM:", "SPECIAL:"))), key=lambda n: -abs(weights[n])
        )
        assert [n for n, _ in e.strongest] == shared[:3]
        assert dict(e.strongest) == pytest.approx({n: weights[n] for n in shared[:3]})
        assert {n for n, _ in e.strongest_words} == {"TOPFORM:le", "SPECIAL:</s>"}


def test_expected_features(
    prior: Prior, output: LogLinearOutput, hidden: torch.Tensor, explained: list[Explanation]
) -> None:
    b = WEIGHTS / WEIGHTS.sum()
    for t, e in enumerate(explained):
        p = distribution(adaptor(prior, output, hidden, t))
        change = {}
        for name in prior.output.features.names:
            phi = np.array([row.get(name, 0.0) for row in ROWS])
            if not name.startswith(("TOPFORM:", "SPECIAL:")):
                change[name] = (b @ phi, p @ phi)
        order = sorted(change, key=lambda n: -abs(change[n][1] - change[n][0]))
        assert [n for n, _, _ in e.expected] == order[:3]
        for name, before, after in e.expected:
            assert (before, after) == pytest.approx(change[name], abs=1e-6)


def test_a_forbidden_word(explained: list[Explanation]) -> None:
    e = explained[-1]
    assert (e.token, e.log_prob, e.log_background) == ("table", -math.inf, -math.inf)
    assert e.rank == 6  # behind the five words that are possible
    assert math.isfinite(e.normaliser)


def test_forbidden_words_are_not_predicted(prior: Prior, output: LogLinearOutput, hidden: torch.Tensor) -> None:
    (e, *_) = explain(prior, output, *given(prior, output, hidden, TOKENS), top=99)
    assert sorted(word for word, _ in e.predictions) == sorted(set(WORDS) - {"table"})


def test_words_of_equal_probability_share_a_rank(output: LogLinearOutput, hidden: torch.Tensor) -> None:
    signatures = group_equal_rows(FeatureTable.from_rows(ROWS))
    prior = Prior(WORDS, signatures, signatures, np.zeros(6), {})
    chat, chien = (next(iter(explain(prior, output, *given(prior, output, hidden[:1], [i]), top=1))) for i in (1, 2))
    assert (chat.rank, chat.log_prob) == (chien.rank, chien.log_prob)
