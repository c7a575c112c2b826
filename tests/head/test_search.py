"""States of a search: sentences, some tokens, selections and limits, for priors of several kinds."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from few_words import PRIOR as EVIDENCE
from few_words import TARGET_WORDS
from small_priors import SYMBOLS, make_prior, open_prior, random_head
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.files.numbers import SCORE_TEMPERATURES
from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.output.records import Batch
from fairseq_llrnn.prior import Recipe
from fairseq_llrnn.prior.building import build_prior

H = 5
LINES = ["two dog", "Zoé 12 dog", "dog"]
CHOSEN = [5, 2, 8]


def chosen(step: Batch) -> Tensor:
    return step.log_probs_of(torch.tensor(CHOSEN).expand(step.view.num_rows, -1))


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


@pytest.fixture(params=["static", "trigram", "open", "cache"])
def head(request: pytest.FixtureRequest, tmp_path: Path) -> LogLinearHead:
    if request.param in ("static", "open"):
        return random_head(make_prior() if request.param == "static" else open_prior())
    (tmp_path / "text").write_text("le chat\nla maison le chien\nla vache\n", encoding="utf-8")
    background = {"trigram": "ngram:3", "cache": "unigram plus cache(2)"}[request.param]
    return random_head(build_prior(SYMBOLS, Recipe(text=tmp_path / "text", top_words=3, background=background)))


def test_probabilities_of_some_tokens(head: LogLinearHead) -> None:
    hidden, state = normal(3, H), head.start(3)
    with torch.no_grad():
        for tokens in ([4, 5, 6], [8, 4, 11]):
            step = head.step(hidden, state)
            torch.testing.assert_close(chosen(step), step.word_log_probs()[:, CHOSEN])
            order = torch.tensor([2, 0, 0, 1])
            other = head.step(hidden[order], state.select(order))
            torch.testing.assert_close(chosen(other), chosen(step)[order])
            torch.testing.assert_close(other.word_log_probs(), step.word_log_probs()[order])
            state = head.advance(state, torch.tensor(tokens))
    assert state.length == 2 and state.longest is None


def test_sentences_of_hypotheses() -> None:
    """Equal neighbours are one sentence, also after a selection."""
    head = random_head(replace(EVIDENCE), H, source_size=2)
    source, states = head.encode_source(LINES), normal(3, 5, 2)[:, : head.encode_source(LINES).size(1)]
    rows = torch.tensor([0, 0, 1, 2, 2, 0])
    state = head.start(6, source=source[rows], source_states=states[rows])
    assert state.states[:, 0].tolist() == [0, 0, 1, 2, 2, 3]
    hidden, expected = normal(6, H), []
    for number, row in enumerate(rows.tolist()):
        alone = head.start(1, source=source[row : row + 1], source_states=states[row : row + 1])
        probs = head.step(hidden[number : number + 1], alone).word_log_probs()[0]
        expected.append(torch.nn.functional.pad(probs, (0, 9 - (len(probs) - len(TARGET_WORDS))), value=-torch.inf))
    with torch.no_grad():
        step = head.step(hidden, state)
        of_words = torch.stack(expected)[:, : len(TARGET_WORDS)]
        torch.testing.assert_close(step.word_log_probs()[:, : len(TARGET_WORDS)], of_words)
        torch.testing.assert_close(chosen(step), of_words[:, CHOSEN])
        order = torch.tensor([5, 3, 2])
        picked = head.step(hidden[order], state.select(order))
        torch.testing.assert_close(chosen(picked), of_words[order][:, CHOSEN])


@pytest.mark.parametrize("rows", [[0, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 2]])
def test_masses_of_a_batch_are_dense(head: LogLinearHead, rows: list[int]) -> None:
    """One row for all, for each sentence, or for each position; also where a sentence has several hypotheses."""
    translator, n = random_head(replace(EVIDENCE), H, source_size=2), len(rows)
    source = translator.encode_source(LINES)[torch.tensor(rows)]
    states = normal(n, source.size(1), 2)[torch.tensor(rows) * 0]
    steps = [head.step(normal(n, H), head.start(n))]
    steps.append(translator.step(normal(n, H), translator.start(n, source=source, source_states=states)))
    tokens = head.encode(["le chat la", "la maison", "le", "la vache le"])[:n]
    steps.append(head.batch(normal(*tokens.shape, H), head.bind(head.previous(tokens))))
    tokens = translator.encode(["deux chien", "Ann", "12", "chat"])[:n]
    condition = translator.bind(translator.previous(tokens), source)
    steps.append(translator.batch(normal(*tokens.shape, H), condition, states))
    for batch in steps:
        dense = batch.class_weights.dense().view(*batch.hidden.shape[:2], -1)
        torch.testing.assert_close(batch.log_mass.expand_as(dense), dense)


def test_equal_words_in_other_states_are_other_sentences() -> None:
    head = random_head(replace(EVIDENCE), H, source_size=2)
    source, states = head.encode_source(["two dog"]).expand(2, -1), normal(2, 3, 2)
    state = head.start(2, source=source, source_states=states)
    assert state.states[:, 0].tolist() == [0, 1]
    with torch.no_grad():
        both = head.step(normal(1, H).expand(2, -1), state).word_log_probs()
    deux = TARGET_WORDS.index("deux")
    assert both[0, deux] != both[1, deux]
    assert head.start(2, source=source, source_states=states[:1].expand(2, -1, -1)).states[:, 0].tolist() == [0, 0]


def test_temperatures_have_limits() -> None:
    head = random_head(make_prior())
    step = head.step(normal(2, H), head.start(2))
    least, most = SCORE_TEMPERATURES
    assert step.tempered(1.0) is step and step.temperature == 1.0
    assert step.tempered(least).temperature == least and step.tempered(most).temperature == most
    for wrong in (least / 2, most * 2, float("nan")):
        with pytest.raises(
            OptionError, match=re.escape(f"temperature {wrong}: expected a number from {least:g} to {most:g}")
        ):
            step.tempered(wrong)


def test_the_width_of_hidden_states_is_named() -> None:
    head = random_head(make_prior())
    for shape in ((2, H + 1), (2, 1, H)):
        with pytest.raises(DataError, match=r"^top_k: expected the hidden state of each hypothesis, \(N, 5\), found"):
            head.top_k(torch.zeros(shape), head.start(2), 2)
    assert head.top_k(normal(2, H), head.start(2), 1)[0].shape == (2, 1)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_hidden_states_that_are_not_finite_have_no_distribution(head: LogLinearHead, value: float) -> None:
    hidden = normal(2, H)
    hidden[1, 0] = value
    for k in (2, len(SYMBOLS)):
        with pytest.raises(DataError, match="^LogLinearHead: expected finite scores, found NaN or infinity; look"):
            head.top_k(hidden, head.start(2), k)
