"""Search with fairseq's SequenceGenerator and a real model: tempering, wide beams, incremental steps, ensembles."""

import itertools
import math
from typing import Any

import pytest
import torch
from dynamic_prior import by_definition, dynamic, few_words, make
from tiny_world import Setting, World, batch, evaluated
from torch import Tensor
from translation_world import assert_steps_agree

from fairseq_llrnn.prior.prior import Prior

NETWORKS = {
    "lstm": [],
    "gru": ["--cell", "gru", "--layer-norm"],
    "window": ["--context-window", "3"],
    "tied": ["--tie-features", "--decoder-layers", "1"],
}


def allowed_lines(setting: Setting) -> list[str]:
    """Random sentences that the background allows, of several lengths."""
    background = setting.model.decoder.head.background
    generator = torch.Generator().manual_seed(11)
    lines = []
    for length in (5, 2, 7, 1):
        state, words = background.start(1), []
        for _ in range(length):
            weights = background.view(state).log_weights.squeeze(0).exp()
            weights[setting.task.dictionary.eos()] = 0.0
            token = torch.multinomial(weights, 1, generator=generator)
            words.append(setting.task.dictionary[int(token)])
            state = background.advance(state, token)
        lines.append(" ".join(words))
    return lines


def generator_for(setting: Setting, *models: Any, **options: Any) -> Any:
    from fairseq.sequence_generator import SequenceGenerator

    return SequenceGenerator([setting.model, *models], setting.task.target_dictionary, **options)


def step(generator: Any, tokens: Tensor, states: list[dict], temperature: float = 1.0) -> Tensor:
    """One step of fairseq's search: log-probabilities of the next word (N, V)."""
    return generator.model.forward_decoder(tokens, [], states, temperature)[0]


# ---- tempering ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("background", ["static", "dynamic"])
def test_a_temperature_tempers_features_and_never_the_background(
    world: World, temperature: float, background: str
) -> None:
    setting = make(world, background=background)
    generator = generator_for(setting)
    prefix: list[int] = []
    states: list[dict] = [{}]
    for _ in range(3):
        tokens = torch.tensor([[setting.task.dictionary.eos(), *prefix]])
        found = step(generator, tokens, states, temperature)[0]
        expected = by_definition(setting, prefix, temperature)
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)
        assert found.exp().sum().item() == pytest.approx(1.0, abs=1e-5)
        prefix.append(int(found.argmax()))


# ---- beams against enumeration --------------------------------------------------------------------------------------


@pytest.mark.parametrize("background", ["static", "dynamic"])
@pytest.mark.parametrize("network", ["lstm", "window"])
def test_a_wide_beam_finds_what_enumeration_finds(world: World, network: str, background: str) -> None:
    words, longest = ["chat", "vert", "livre"], 3
    prior = few_words(Prior.load(world.prior("prior")), words)
    setting = evaluated([*world.train_args(), *NETWORKS[network]], dynamic(prior) if background == "dynamic" else prior)
    dictionary = setting.task.dictionary
    eos = dictionary.eos()
    expected = {}
    for length in range(1, longest + 1):
        for string in itertools.product([dictionary.index(w) for w in words], repeat=length):
            tokens = [*string, eos]
            score = sum(by_definition(setting, tokens[:i])[t].item() for i, t in enumerate(tokens))
            if score > -math.inf:
                expected[tuple(tokens)] = score
    assert len(expected) > 10

    # 3 + 9 + 27 strings: fewer than this beam, so that nothing is ever dropped
    generator = generator_for(setting, beam_size=45, max_len_b=longest, max_len_a=0, normalize_scores=False)
    sample = {"net_input": {"src_tokens": torch.full((2, 1), eos), "src_lengths": torch.ones(2)}}
    for hypotheses in generator.generate([setting.model], sample, bos_token=eos):
        found = {tuple(h["tokens"].tolist()): h["score"].item() for h in hypotheses if h["score"] > -math.inf}
        assert found == pytest.approx(expected, abs=1e-3)
        assert [h["score"].item() for h in hypotheses] == sorted((h["score"].item() for h in hypotheses), reverse=True)


# ---- one step at a time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("background", ["static", "dynamic"])
@pytest.mark.parametrize("network", NETWORKS)
def test_steps_in_any_order_of_hypotheses_equal_the_whole_sequence(world: World, network: str, background: str) -> None:
    setting = make(world, *NETWORKS[network], background=background)
    assert_steps_agree(setting, batch(setting.task.dictionary, allowed_lines(setting)))


@pytest.mark.parametrize("background", ["static", "dynamic"])
def test_criterion_forward_pass_and_search_agree_with_the_definition(world: World, background: str) -> None:
    setting = make(world, background=background)
    dictionary = setting.task.dictionary
    sample = batch(dictionary, allowed_lines(setting))
    with torch.no_grad():
        losses, _, log = setting.criterion(setting.model, sample, reduce=False)  # shape: (B, T)
        output = setting.model(**sample["net_input"])
        whole = setting.model.get_normalized_probs(output, log_probs=True)
    total = 0.0
    for i, row in enumerate(sample["target"].tolist()):
        tokens = [t for t in row if t != dictionary.pad()]
        for t, token in enumerate(tokens):
            expected = by_definition(setting, tokens[:t])
            torch.testing.assert_close(whole[i, t].double(), expected, rtol=1e-4, atol=1e-4)
            assert losses[i, t].item() == pytest.approx(-expected[token].item(), abs=1e-4)
            total -= expected[token].item()
    assert log["nll_loss"].item() == pytest.approx(total, rel=1e-5)


def test_an_ensemble_averages_probabilities(world: World) -> None:
    first, second = make(world, seed=7), make(world, "--cell", "gru", seed=8)
    generator = generator_for(first, second.model)
    prefix = first.task.dictionary.encode_line("le chat", append_eos=False).long().tolist()
    tokens = torch.tensor([[first.task.dictionary.eos(), *prefix]])
    states: list[dict] = [{}, {}]
    for t in range(1, tokens.size(1) + 1):
        found = step(generator, tokens[:, :t], states)[0]
    expected = (by_definition(first, prefix).exp() + by_definition(second, prefix).exp()) / 2
    torch.testing.assert_close(found.exp().double(), expected, rtol=1e-4, atol=1e-6)
