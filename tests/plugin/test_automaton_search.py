"""Searches under a grammar end with its strings, whatever the limits, and with the scores that enumeration gives."""

import math
from functools import partial
from typing import Any

import pytest
import torch
from automaton_prior import GRAMMAR, accepted, with_bigrams, with_grammar
from dynamic_prior import LINES, by_definition
from fairseq.search import LengthConstrainedBeamSearch
from fairseq.sequence_scorer import SequenceScorer
from tiny_world import Setting, World, batch, evaluated, randomised
from translation_world import TranslationWorld, assert_steps_agree, pairs

from fairseq_llrnn.backgrounds.automaton_background import AutomatonView
from fairseq_llrnn.backgrounds.class_weights import ClassWeights
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.plugin.search.generator import (
    ColumnGenerator,
)
from fairseq_llrnn.prior.prior import Prior

GENERATORS = [partial(ColumnGenerator, over_candidates=True), ColumnGenerator]


@pytest.fixture(scope="module")
def grammatical(world: World) -> Setting:
    return made(world)


def made(world: World, states: list[dict[str, int]] = GRAMMAR) -> Setting:
    return evaluated(world.train_args(), with_grammar(Prior.load(world.prior("prior")), states))


def start(setting: Setting, rows: int = 2) -> dict[str, Any]:
    eos = setting.task.dictionary.eos()
    return {"net_input": {"src_tokens": torch.full((rows, 1), eos), "src_lengths": torch.ones(rows)}}


def search(setting: Setting, kind: Any, sample: Any = None, prefix: Any = None, **options: Any) -> list[Any]:
    generator = kind([setting.model], setting.task.target_dictionary, **{"normalize_scores": False, **options})
    return generator.generate([setting.model], sample or start(setting), prefix_tokens=prefix)


def strings(setting: Setting, hypotheses: list[Any]) -> list[str]:
    """What is written, each with its end."""
    dictionary = setting.task.target_dictionary
    assert all(h["tokens"][-1] == dictionary.eos() for h in hypotheses)
    return [" ".join(dictionary[int(t)] for t in h["tokens"][:-1]) for h in hypotheses]


@pytest.mark.parametrize("kind", GENERATORS)
def test_a_wide_beam_finds_the_strings_and_scores_of_enumeration(grammatical: Setting, kind: Any) -> None:
    dictionary = grammatical.task.dictionary
    for longest in (2, 4):
        expected = {}
        for words in accepted(longest):
            tokens = [*(dictionary.index(word) for word in words), dictionary.eos()]
            steps = [by_definition(grammatical, tokens[:i])[t].item() for i, t in enumerate(tokens)]
            expected[" ".join(words)] = sum(steps)
        assert len(expected) == {2: 3, 4: 12}[longest]
        for hypotheses in search(grammatical, kind, beam_size=40, max_len_b=longest):
            scores = [h["score"].item() for h in hypotheses]
            assert dict(zip(strings(grammatical, hypotheses), scores, strict=True)) == pytest.approx(expected, abs=1e-3)
            assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("kind", GENERATORS)
@pytest.mark.parametrize("beam", [1, 3])
def test_a_narrow_beam_ends_with_complete_strings_at_every_limit(grammatical: Setting, kind: Any, beam: int) -> None:
    allowed = {" ".join(words) for words in accepted(9)}
    for longest in range(2, 10):
        for hypotheses in search(grammatical, kind, beam_size=beam, max_len_b=longest):
            found = strings(grammatical, hypotheses)
            assert 1 <= len(found) <= beam
            assert all(line in allowed and len(line.split()) <= longest for line in found)
            assert all(math.isfinite(h["score"]) for h in hypotheses)


@pytest.mark.parametrize("kind", GENERATORS)
def test_no_string_that_short_is_one_clear_error(grammatical: Setting, kind: Any) -> None:
    message = (
        "sentence 1 of the search: expected a complete string of at most 1 words that the background allows, found "
        "none: the shortest one has 2; raise --max-len-b"
    )
    with pytest.raises(DataError, match=message):
        search(grammatical, kind, max_len_b=1)


@pytest.mark.parametrize("kind", GENERATORS)
def test_a_string_shorter_than_min_len_may_end_where_it_must(world: World, kind: Any) -> None:
    only = made(world, [{"bien": 1}, {"</s>": 0}])
    (found, *_) = search(only, kind, beam_size=2, min_len=5, max_len_b=9)
    assert strings(only, found) == ["bien"]
    # where it can go on, it does
    longer = made(world, [{"bien": 1}, {"</s>": 0, "voit": 1}])
    for hypotheses in search(longer, kind, beam_size=2, min_len=3, max_len_b=5):
        assert {len(line.split()) for line in strings(longer, hypotheses)} <= {3, 4, 5}


@pytest.mark.parametrize("kind", GENERATORS)
def test_a_forced_beginning(grammatical: Setting, kind: Any) -> None:
    dictionary = grammatical.task.dictionary
    la, verte, pad = dictionary.index("la"), dictionary.index("verte"), dictionary.pad()
    prefix = torch.tensor([[la, verte], [la, pad]])
    first, second = search(grammatical, kind, prefix=prefix, beam_size=4, max_len_b=3)
    assert strings(grammatical, first) == ["la verte mer"]
    assert set(strings(grammatical, second)) == {"la mer", "la verte mer"}
    long = torch.tensor([[la, verte, verte]])
    message = "at most 3 words, with the 3 of its prefix, that the background allows, found none: the"
    with pytest.raises(DataError, match=f"{message} shortest one has 4; raise"):
        search(grammatical, kind, start(grammatical, 1), long, max_len_b=3)


def test_a_forced_beginning_that_the_grammar_forbids(grammatical: Setting) -> None:
    """It is a beginning, and no target of training: other words will do."""
    task, model = grammatical.task, grammatical.model
    dictionary = task.dictionary
    prefix = torch.tensor([[dictionary.index(word) for word in words] for words in (("la", "verte"), ("la", "chat"))])
    generator = ColumnGenerator([model], dictionary, beam_size=2, max_len_b=5)
    for ids, sentence in ((None, "a sentence"), (torch.tensor([6, 2]), "sentence 3")):
        sample = start(grammatical) | ({} if ids is None else {"id": ids})
        with pytest.raises(DataError) as error:
            task.inference_step(generator, [model], sample, prefix_tokens=prefix)
        assert str(error.value) == (
            f"the background gives word 'chat' probability zero, but the prefix of {sentence} has it at position 2, in "
            "'la chat'; use another prefix, or fix the grammar"
        )


def test_a_text_to_score_that_the_grammar_forbids(grammatical: Setting) -> None:
    """--score-reference of a language model: the text is no beginning of anything."""
    task, dictionary = grammatical.task, grammatical.task.dictionary
    text = torch.tensor([[dictionary.index(word) for word in words] for words in (("la", "verte"), ("la", "chat"))])
    sample = start(grammatical) | {"id": torch.tensor([6, 2])}
    message = "gives word 'chat' no mass, but it is the target at position 2 of sample 3, .* on_zero=skip. or"
    with pytest.raises(DataError, match=message):
        task.inference_step(SequenceScorer(dictionary), [grammatical.model], sample, prefix_tokens=text)


@pytest.mark.parametrize("options", [{}, {"sampling_topk": 2}, {"sampling_topp": 0.8}])
def test_samples_are_complete_strings(grammatical: Setting, options: dict[str, Any]) -> None:
    from fairseq.search import Sampling

    torch.manual_seed(1)
    allowed = {" ".join(words) for words in accepted(6)}
    seen = set()
    for _ in range(20):
        sampling = Sampling(grammatical.task.dictionary, **options)
        found = search(grammatical, ColumnGenerator, beam_size=3, max_len_b=6, search_strategy=sampling)
        seen |= {line for hypotheses in found for line in strings(grammatical, hypotheses)}
    assert seen <= allowed and len(seen) > 3


def test_what_the_search_itself_forbids_is_said(grammatical: Setting) -> None:
    with pytest.raises(DataError, match="found none of up to 5 words that the other options of the search allow"):
        search(grammatical, ColumnGenerator, max_len_b=5, tokens_to_suppress=["le", "la"])


def test_an_ensemble_with_a_model_that_knows_no_grammar(grammatical: Setting, world: World) -> None:
    other = evaluated(world.train_args("flat"), seed=8)
    models = [other.model, grammatical.model]
    generator = ColumnGenerator(models, grammatical.task.dictionary, beam_size=3, max_len_b=6)
    allowed = {" ".join(words) for words in accepted(6)}
    for hypotheses in generator.generate(models, start(grammatical)):
        assert set(strings(grammatical, hypotheses)) <= allowed


# ---- translation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["llrnn_lstm", "llrnn_transformer"])
def test_translations_are_strings_of_the_grammar(translation: TranslationWorld, arch: str) -> None:
    prior = with_grammar(Prior.load(translation.data / "prior"))
    setting = evaluated(translation.train_args(arch), prior, scale=0.3)
    sample = pairs(setting.task, LINES)
    allowed = {" ".join(words) for words in accepted(8)}
    for options in ({"beam_size": 1, "max_len_b": 5}, {"beam_size": 4, "max_len_b": 8}):
        ours, whole = (search(setting, kind, sample, **options) for kind in GENERATORS)
        for one, other in zip(ours, whole, strict=True):
            assert set(strings(setting, one)) <= allowed
            assert strings(setting, one) == strings(setting, other)
            scores = [h["score"].item() for h in other]
            assert [h["score"].item() for h in one] == pytest.approx(scores, abs=1e-4)


def test_translations_as_long_as_their_sources(translation: TranslationWorld) -> None:
    """--match-source-len of a batch of unequal sources: as of each by itself, and all are strings of the grammar."""
    setting = evaluated(translation.train_args(), with_grammar(Prior.load(translation.data / "prior")), scale=0.3)
    dictionary, lines = setting.task.target_dictionary, ["le chat voit la mer", "le chat voit", "la verte mer voit"]

    def matched(lines: list[str]) -> list[Any]:
        """By a search as --match-source-len has it made."""
        sample, strategy = pairs(setting.task, lines), LengthConstrainedBeamSearch(dictionary, 1, 0, 1, 0)
        options = {"beam_size": 8, "match_source_len": True, "search_strategy": strategy}
        found = search(setting, ColumnGenerator, sample, **options)
        return [found[row] for row in sample["id"].argsort().tolist()]

    together = matched(lines)
    for line, hypotheses in zip(lines, together, strict=True):
        words = len(line.split()) + 1  # fairseq counts </s> among those of the source
        assert set(strings(setting, hypotheses)) <= {" ".join(one) for one in accepted(9) if len(one) == words}
        (alone,) = matched([line])
        assert strings(setting, hypotheses) == strings(setting, alone)
        for one, other in zip(hypotheses, alone, strict=True):
            torch.testing.assert_close(one["positional_scores"], other["positional_scores"], atol=1e-4, rtol=0)


@pytest.mark.parametrize("bigrams", [False, True])
def test_steps_in_any_order_equal_the_whole_sequence(translation: TranslationWorld, bigrams: bool) -> None:
    prior = Prior.load(translation.data / "prior")
    chain = with_bigrams(prior, {"le": {"chat": 0.6, "roi": 0.1}, "voit": {"la": 0.5}})
    setting = evaluated(translation.train_args(), chain if bigrams else with_grammar(prior), scale=0.3)
    lines = LINES if bigrams else ["le chat voit la mer", "la verte mer", "le petit petit pont voit bien", "la mer"]
    assert_steps_agree(setting, pairs(setting.task, lines))


# ---- training and search agree --------------------------------------------------------------------------------------


def test_the_criterion_agrees_with_the_definition(world: World) -> None:
    prior = Prior.load(world.prior("prior"))
    lines = ["le chat voit la mer", "la verte mer", "le petit petit pont voit bien"]
    bigrams = with_bigrams(prior, {"le": {"chat": 0.6}, "la": {"mer": 0.3, "rose": 0.3}})
    for changed in (with_grammar(prior), bigrams):
        setting = evaluated([*world.train_args(), "--label-smoothing", "0"], changed)
        sample = batch(setting.task.dictionary, lines)
        with torch.no_grad():
            losses, _, _ = setting.criterion(setting.model, sample, reduce=False)  # shape: (B, T)
        for i, row in enumerate(sample["target"].tolist()):
            tokens = [t for t in row if t != setting.task.dictionary.pad()]
            for t, token in enumerate(tokens):
                expected = -by_definition(setting, tokens[:t])[token].item()
                assert losses[i, t].item() == pytest.approx(expected, abs=1e-4)


SPARSE = AutomatonView.class_mass.func  # type: ignore[attr-defined]


def dense_masses(view: AutomatonView) -> ClassWeights:
    return ClassWeights(SPARSE(view).dense(), view.num_rows)


def test_gradients_are_those_of_dense_masses_and_padding_has_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entries of a grammar against the same masses as a tensor; after padding, where all may be forbidden."""
    prior = with_grammar(Prior.load(world.prior("prior")))
    gradients = []
    for sparse in (True, False):
        setting = randomised([*world.train_args(), "--label-smoothing", "0.1"], prior, double=True)
        if not sparse:
            monkeypatch.setattr(AutomatonView, "class_mass", property(dense_masses))
        sample = batch(setting.task.dictionary, ["le chat voit la mer", "la mer"])
        loss, _, _ = setting.criterion(setting.model, sample)
        loss.backward()
        gradients.append([p.grad for p in setting.model.parameters()])
    for one, other in zip(*gradients, strict=True):
        assert torch.isfinite(one).all()
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
