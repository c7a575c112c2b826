"""Initial weights: the scale of the rows Φ W, of the first scores, and what does not change them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from small_priors import make_prior, open_prior
from torch import Tensor, nn

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.files.numbers import LARGEST_PARAMETER
from fairseq_llrnn.head import FeatureInput, LogLinearHead
from fairseq_llrnn.output.feature_weights import FeatureEmbedding
from fairseq_llrnn.output.normalisers import LogLinearOutput
from fairseq_llrnn.output.sampled import Sampled
from fairseq_llrnn.prior.recipe import Recipe

Rows = list[dict[str, float]]
GENERATOR = np.random.default_rng(4)


def random_rows(counts: Sequence[int], values: Callable[[], float] = lambda: 1.0) -> Rows:
    """Rows with so many of 60 features each."""
    return [{f"f{i}": values() for i in GENERATOR.choice(60, count, replace=False)} for count in counts]


TABLES = {
    "indicators": [{f"f{i}": 1.0} for i in range(40)],
    "few and many features": random_rows([1, 3, 10, 30] * 10),
    "numbers": random_rows([2] * 40, lambda: float(GENERATOR.normal(0.0, 100.0))),
    "rows without features": [*random_rows([3] * 10), *[{}] * 90],
    "a feature of all": [{"all": 1.0, f"f{i}": 1.0} for i in range(40)],
    "one row": [{"f": 2.5}],
}


def rms_of_rows(rows: Rows, weight: Tensor) -> float:
    """By the definition: every element of every row with a feature."""
    index, weights = FeatureTable.from_rows(rows).index, weight.tolist()
    elements = [
        sum(value * weights[index[name]][column] for name, value in row.items())
        for row in rows
        if row
        for column in range(weight.size(1))
    ]
    return math.sqrt(math.fsum(element * element for element in elements) / len(elements))


def output_of(rows: Rows, width: int, dtype: torch.dtype = torch.float32, **options: Any) -> LogLinearOutput:
    torch.set_default_dtype(dtype)
    try:
        torch.manual_seed(5)
        return LogLinearOutput(FeatureTable.from_rows(rows), torch.arange(len(rows)), width, **options)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("width", [1, 16, 64])
@pytest.mark.parametrize("kind", TABLES)
def test_rows_have_the_root_mean_square(kind: str, width: int) -> None:
    output = output_of(TABLES[kind], width)
    assert rms_of_rows(TABLES[kind], output.weight) == pytest.approx(width**-0.5, rel=1e-5)
    assert not output.bias.any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("width", [512, 1024])
def test_wide_rows_in_every_precision(width: int, dtype: torch.dtype) -> None:
    output = output_of(TABLES["few and many features"], width, dtype)
    rows = output.rows.dense().double() @ output.weight.detach().double()
    assert output.weight.dtype == dtype
    assert float(rows.square().mean().sqrt()) == pytest.approx(width**-0.5, rel=2e-3)


@pytest.mark.parametrize("parts", [1, 64])
def test_the_columns_may_be_composed_in_parts(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq_llrnn.output.feature_weights.AT_ONCE", parts)
    assert rms_of_rows(TABLES["numbers"], output_of(TABLES["numbers"], 7).weight) == pytest.approx(7**-0.5, rel=1e-5)


def test_all_weights_have_one_factor() -> None:
    drawn, scaled, wider = (output_of(TABLES["numbers"], 16, initial_scale=scale).weight for scale in (None, 1.0, 3.0))
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.empty_like(drawn).uniform_(-0.4, 0.4))
    factors = scaled / drawn
    torch.testing.assert_close(factors, torch.full_like(factors, factors[0, 0].item()))
    torch.testing.assert_close(wider, 3.0 * scaled)


def test_without_a_scale_scores_are_alike_at_every_width() -> None:
    spreads = []
    for width in (16, 256, 1024):
        output = output_of(TABLES["few and many features"], width, initial_scale=None)
        assert output.weight.abs().max() <= 1.6 / width**0.5
        hidden = torch.randn(400, width, generator=torch.Generator().manual_seed(1))
        spreads.append(float(output.class_scores(hidden).std()))
    assert spreads == pytest.approx([spreads[1]] * 3, rel=0.15)
    torch.manual_seed(5)
    expected = torch.empty(60, 256).uniform_(-0.1, 0.1)
    table = FeatureTable.from_rows([{f"f{i}": 1.0} for i in range(60)])
    torch.manual_seed(5)
    assert torch.equal(LogLinearOutput(table, torch.arange(60), 256, None).weight, expected)


@pytest.mark.parametrize("value", [1e-45, 1e-30, 1e-12])
def test_tiny_values_have_finite_weights(value: float) -> None:
    output = output_of([{"a": value}, {"b": value}], 16)
    largest = output.weight.abs().max()
    assert 0.5 * LARGEST_PARAMETER < largest <= LARGEST_PARAMETER
    assert output.rows.compose(output.weight).isfinite().all()


@pytest.mark.parametrize("rows", [[{}, {}], [{}]])
def test_without_features_there_is_nothing_to_scale(rows: Rows) -> None:
    table = FeatureTable.from_rows(rows, ["unused"])
    assert LogLinearOutput(table, torch.arange(len(rows)), 4).weight.abs().max() <= 0.1
    assert LogLinearOutput(FeatureTable.from_rows(rows), torch.arange(len(rows)), 4).weight.numel() == 0


PRIORS = {
    "signatures": make_prior,
    "indicators": lambda: make_prior(Recipe(top_words="all")),
    "open": open_prior,
    "separate input": lambda: make_prior(Recipe(top_words=2, input_top_words="all")),
}


@pytest.mark.parametrize(
    ("kind", "tied"), [*((kind, False) for kind in PRIORS), ("signatures", True), ("indicators", True), ("open", True)]
)
def test_scores_of_normalised_states_have_a_standard_deviation_of_1(kind: str, tied: bool) -> None:
    torch.manual_seed(1)
    head = LogLinearHead(PRIORS[kind](), 512, embedding=FeatureInput(512, tied))
    hidden = nn.functional.layer_norm(torch.randn(200, 512), (512,))
    assert float(head.output.class_scores(hidden).std()) == pytest.approx(1.0, rel=0.05)
    embedded = head.embed(torch.arange(4, 12).unsqueeze(0))
    if tied:
        assert float(embedded.square().mean().sqrt()) == pytest.approx(512**-0.5, rel=0.3)
    else:
        assert head.get_parameter("embedding.weight").abs().max() <= 0.1


def test_the_normaliser_does_not_matter() -> None:
    torch.manual_seed(1)
    head = LogLinearHead(make_prior(), 16, normaliser=Sampled(3))
    torch.manual_seed(1)
    assert torch.equal(head.output.weight, LogLinearHead(make_prior(), 16).output.weight)


def test_the_input_has_a_scale_of_its_own() -> None:
    prior = make_prior()
    head = LogLinearHead(prior, 8, embedding=FeatureInput(32, row_rms=0.25))
    rows = head.get_submodule("embedding").kept_rows()
    assert float(rows[rows.any(1)].square().mean().sqrt()) == pytest.approx(0.25)
    plain = FeatureEmbedding(prior.input.features, torch.from_numpy(prior.input.class_of), 32)
    assert 0.09 < plain.weight.abs().max() <= 0.1


@pytest.mark.parametrize(("scale", "rms"), [(1.0, 0.25), (0.5, 0.125), (0.0, 0.0)])
def test_reset_parameters_draws_them_again(scale: float, rms: float) -> None:
    torch.manual_seed(1)
    head = LogLinearHead(make_prior(), 16, embedding=FeatureInput(16, tied=True), initial_scale=scale)
    first = head.output.weight.detach().clone()
    for parameter in head.output.parameters():
        nn.init.ones_(parameter)
    head.apply(lambda module: module.reset_parameters() if hasattr(module, "reset_parameters") else None)
    rows = head.output.composed()[0].detach()
    assert float(rows.square().mean().sqrt()) == pytest.approx(rms)
    assert torch.equal(head.output.weight, first) == (scale == 0.0)
    assert not head.output.bias.any()
    assert head.get_parameter("embedding.weight") is head.output.weight


def test_the_scale_is_in_no_checkpoint() -> None:
    scaled, plain = (LogLinearHead(make_prior(), 4, initial_scale=scale) for scale in (1.0, None))
    assert sorted(scaled.state_dict()) == ["output.bias", "output.weight", "prior_fingerprint"]
    scaled.load_state_dict(plain.state_dict())
    assert torch.equal(scaled.output.weight, plain.output.weight)


@pytest.mark.parametrize("scale", [-1.0, math.nan, math.inf])
def test_other_scales_are_errors(scale: float) -> None:
    with pytest.raises(OptionError, match="initial_scale .*expected a number of at least 0, or None; the default, 1.0"):
        LogLinearHead(make_prior(), 4, initial_scale=scale)


def test_weights_without_memory_are_drawn_later() -> None:
    table = FeatureTable.from_rows(TABLES["numbers"])
    with torch.device("meta"):
        output = LogLinearOutput(table, torch.arange(40), 4)
    assert output.weight.is_meta
