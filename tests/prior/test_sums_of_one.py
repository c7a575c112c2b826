"""Probabilities sum to one, in float32, for all numbers of users, priors and checkpoints, or these are rejected."""

import math
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import extreme_numbers
import pytest
import torch
from extreme_numbers import (
    OPTIONS,
    TEMPERED,
    Base,
    check_sums,
    checkpoint_number_targets,
    file_targets,
    numeric_settings,
    option_targets,
    prior_number_targets,
)
from fuzz_targets import Target
from hostile_priors import WrongProbabilitiesError, make_priors
from hostile_readers import words
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.output.learned_temperature import learned_temperature
from fairseq_llrnn.prior.building import build
from fairseq_llrnn.prior.part import KINDS
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.registry import load_all

ELSEWHERE = {"model"}  # kinds of parts that need fairseq: scripts/torture.py feeds them


@pytest.fixture(scope="module")
def priors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_priors(tmp_path_factory.mktemp("priors"))


# ---- nothing is left out --------------------------------------------------------------------------------------------


def test_every_numeric_setting_has_numbers() -> None:
    assert numeric_settings() == set(OPTIONS)


@dataclass
class New:
    sharpness: float | None = None
    name: str = ""


def test_a_setting_without_numbers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extreme_numbers, "OF_PRIORS", [*extreme_numbers.OF_PRIORS, New])
    assert numeric_settings() - set(OPTIONS) == {(New, "sharpness")}


def test_every_kind_of_part_is_among_the_priors(priors: dict[str, Path]) -> None:
    load_all("parts")
    own = {kind for kind, part in KINDS.items() if part.__module__.startswith("fairseq_llrnn.prior.")}
    assert own - ELSEWHERE <= {part.kind for place in priors.values() for part in Prior.load(place).parts}


# ---- the law --------------------------------------------------------------------------------------------------------


def check(targets: Mapping[str, Target], place: Path, examples: int) -> None:
    """Run some targets on random inputs, and raise their findings."""

    @settings(max_examples=examples, deadline=None)
    @given(st.sampled_from(sorted(targets)), st.integers(0, 2**32))
    def run(name: str, seed: int) -> None:
        shutil.rmtree(place, ignore_errors=True)
        targets[name](place, random.Random(seed))

    run()


def test_a_number_of_an_option(tmp_path: Path) -> None:
    check(option_targets(tmp_path), tmp_path / "input", 30)


def test_a_number_of_a_file(tmp_path: Path) -> None:
    check(file_targets(tmp_path), tmp_path / "input", 30)


def test_a_number_of_a_prior(priors: dict[str, Path], tmp_path: Path) -> None:
    check(prior_number_targets(priors), tmp_path / "input", 20)


def test_a_number_of_a_checkpoint(priors: dict[str, Path], tmp_path: Path) -> None:
    check(checkpoint_number_targets(priors), tmp_path / "input", 12)


@pytest.mark.parametrize(
    "background",
    ["ngram(2, temperature=T)", TEMPERED, "cache:3", f"ngram:2 plus {TEMPERED}", "ngram(3, temperature=T)"],
)
@pytest.mark.parametrize("temperature", [0.01, 0.02, 0.1, 100.0])
def test_the_least_temperatures_are_exact(background: str, temperature: float, tmp_path: Path) -> None:
    base = Base.at(tmp_path)
    for own in (1, temperature):
        options = base.of(f"({background.replace('T', str(own))}) at temperature {temperature}")
        check_sums(LogLinearHead(build(words(), options).prior, 4))


@pytest.mark.parametrize("temperature", [1e-300, 0.0099, 101.0, 1e300])
def test_other_temperatures_are_refused(temperature: float, tmp_path: Path) -> None:
    base = Base.at(tmp_path)
    for background in (
        f"ngram:2 at temperature {temperature}",
        f"ngram(2, temperature={temperature})",
        TEMPERED.replace("T", str(temperature)),
    ):
        with pytest.raises(OptionError, match="expected a temperature from 0.01 to 100|expected a number of at "):
            build(words(), base.of(background))


def test_a_wrong_sum_is_found(priors: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier version computed shares of single precision from logarithms in the thousands."""
    head = LogLinearHead(Prior.load(priors["static"]), 4)
    head.background.word_log_share.mul_(1.001)
    with pytest.raises(WrongProbabilitiesError, match="probabilities of a batch sum to"):
        check_sums(head)


@pytest.mark.parametrize("value", [1e7, -1e30, math.nan, math.inf])
def test_numbers_of_a_checkpoint_that_nobody_can_compute_with(priors: dict[str, Path], value: float) -> None:
    head = LogLinearHead(Prior.load(priors["combined"]), 4, mass_change=learned_temperature)
    state = head.state_dict()
    state["temperature.bias"] = torch.tensor(value)
    with pytest.raises(DataError, match=r"expected .*weights.*, found .* in temperature.bias: the training"):
        head.load_state_dict(state)
