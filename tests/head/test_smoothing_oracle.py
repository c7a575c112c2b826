"""The smoothed loss of random priors is the smoothed cross-entropy over all words, in value and gradient."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from smoothing_oracle import E, H, check_smoothing, prior_of

from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.output.learned_temperature import learned_temperature

ATOMS = ["unigram", "uniform", "ngram(2, folds=2)", "cache(3, weight=0.6)", "cache(2, weight=0.3, learned)"]
WEIGHTINGS = ["", " with weights learned", " with weights per position"]


@st.composite
def backgrounds(draw: Any, depth: int = 2, translations: bool = False) -> str:
    """An expression of a background, `depth` mixtures, products or temperatures deep."""
    if depth == 0:
        return str(draw(st.sampled_from(ATOMS + ["translations"] * translations)))
    kind = draw(st.sampled_from(["atom", "mixture", "mixture", "product", "temperature", "grammar"]))
    first = draw(backgrounds(depth - 1, translations))
    if kind == "temperature":
        return f"({first}) at temperature {draw(st.sampled_from([0.7, 2.0]))}"
    if kind == "product":
        return f"({first}) times ({draw(backgrounds(depth - 1, False))})"
    if kind == "grammar":
        some = "automaton(GRAMMAR, on_zero=skip)"
        return f"(0.6 {some} plus 0.4 unigram{draw(st.sampled_from(WEIGHTINGS))}) times ({first})"
    if kind == "mixture":
        second = draw(backgrounds(depth - 1, False))
        return f"0.7 ({first}) plus 0.3 ({second}){draw(st.sampled_from(WEIGHTINGS))}"
    return first


@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_a_language_model(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    background = data.draw(backgrounds())
    is_open, top = data.draw(st.booleans()), data.draw(st.sampled_from([0, 3]))
    prior = prior_of(tmp_path_factory.mktemp("prior"), background, (), is_open, top)
    check_smoothing(LogLinearHead(prior, H), data.draw(st.booleans()), False, data.draw(st.integers(0, 99)))


@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_a_translator(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    background = data.draw(backgrounds(translations=True))
    kinds = ["numbers", "copies", *(["translations"] if background == "translations" else [])]
    evidence = tuple(data.draw(st.lists(st.sampled_from(kinds), unique=True)))
    evidence = evidence or ("numbers",) * ("translations" not in background)
    prior = prior_of(tmp_path_factory.mktemp("prior"), background, evidence, data.draw(st.booleans()), 3)
    check_smoothing(
        LogLinearHead(prior, H, source_size=E), data.draw(st.booleans()), True, data.draw(st.integers(0, 99))
    )


@pytest.mark.parametrize(
    "background",
    ["ngram(2, folds=2)", "0.5 ngram(2, folds=0) plus 0.5 cache(3, learned) with weights per position"],
)
def test_a_learned_temperature(background: str, tmp_path: Path) -> None:
    prior = prior_of(tmp_path, background, (), False, 3)
    check_smoothing(LogLinearHead(prior, H, mass_change=learned_temperature), False, False, 1)
