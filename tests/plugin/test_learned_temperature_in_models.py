"""--learn-background-temperature in models: the definition word by word, searches, explanations, commands, refusals."""

import math
import re
from pathlib import Path

import pytest
import torch
from automaton_prior import with_bigrams, with_grammar
from dynamic_prior import LINES
from evidence_world import EvidenceWorld
from shell import Shell
from tiny_world import (
    EVERY_SENTENCE,
    Setting,
    World,
    assert_prefixes_agree,
    batch,
    build,
    evaluated,
    make_prior,
    open_prior,
)
from translation_world import TranslationWorld, assert_found_scores_are_the_model_s, assert_steps_agree, pairs

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.scoring.explainer import LanguageModelExplainer
from fairseq_llrnn.prior.prior import Prior

LEARN = "--learn-background-temperature"
GRAMMATICAL = ["le chat voit la mer", "la mer voit bien", "le petit pont"]
AFTER = {"le": {"chat": 0.5, "roi": 0.3}, "la": {"mer": 0.6, "verte": 0.2}, "chat": {"voit": 0.7}}


def prior_of(path: Path, kind: str) -> Prior:
    prior = Prior.load(path)
    return with_grammar(prior) if kind == "grammar" else with_bigrams(prior, AFTER)


def made(args: list[object], prior: Prior, seed: int = 7) -> Setting:
    return evaluated([*args, LEARN], prior, scale=0.3, seed=seed)


@pytest.mark.parametrize("kind", ["grammar", "n-grams"])
def test_the_loss_is_the_definition(world: World, kind: str) -> None:
    """log B₀ + τ r of the signatures, and the shares of b; in value and gradient."""
    prior = prior_of(world.prior("prior"), kind)
    setting = made(world.train_args(), prior)
    lines = GRAMMATICAL if kind == "grammar" else LINES
    sample = batch(setting.task.dictionary, lines)
    loss, _, _ = setting.criterion(setting.model, sample)
    ours = torch.autograd.grad(loss, setting.model.parameters())

    decoder = setting.model.decoder
    background, output, total = decoder.head.background.bind(), decoder.head.output, 0.0
    previous, target = sample["net_input"]["src_tokens"], sample["target"]
    hidden, _ = decoder(previous)
    shared = background.root.class_log_mass
    for row in range(len(target)):
        state = background.start(1)
        for t in range(int(target[row].ne(setting.task.dictionary.pad()).sum())):
            layer = decoder.head.temperature
            tau = 1 + layer.weight @ hidden[row, t] + layer.bias + layer.of_class
            masses = background.view(state).class_mass
            mass, constant = masses.dense()[0], masses.entries.constant
            possible = ~mass.isneginf()
            said = (mass - shared - constant)[possible]
            scores = output.class_scores(hidden[row, t])
            p = torch.full_like(shared, -math.inf)
            p[possible] = (scores[possible] + shared[possible] + tau[possible] * said).log_softmax(0)
            token = target[row, t : t + 1]
            total = total - p[output.class_of[token]] - background.view(state).locate(token)[1]
            state = background.advance(state, token)
    torch.testing.assert_close(loss, total.float().squeeze(), rtol=1e-4, atol=1e-3)
    for a, b in zip(ours, torch.autograd.grad(total.sum(), setting.model.parameters()), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)
    assert decoder.head.temperature.weight.abs().sum() > 0


@pytest.mark.parametrize("kind", ["grammar", "n-grams"])
@pytest.mark.parametrize("arch", ["llrnn_lstm", "llrnn_transformer"])
def test_decoding_word_by_word(translation: TranslationWorld, arch: str, kind: str) -> None:
    prior = prior_of(translation.data / "prior", kind)
    setting = made(translation.train_args(arch), prior)
    assert_steps_agree(setting, pairs(setting.task, GRAMMATICAL))


@pytest.mark.parametrize("kind", ["grammar", "n-grams"])
def test_language_models(world: World, kind: str) -> None:
    """Step by step, and in explanations, whose terms sum to what the network adds."""
    setting = made(world.train_args(), prior_of(world.prior("prior"), kind))
    lines = GRAMMATICAL if kind == "grammar" else LINES
    assert_prefixes_agree(setting, lines, atol=1e-4, rtol=1e-4)
    decoder = setting.model.decoder
    explainer = LanguageModelExplainer(setting.model, setting.task)
    for line in lines:
        sample, background = batch(setting.task.dictionary, [line]), decoder.head.background.bind()
        state = background.start(1)
        hidden, _ = decoder(sample["net_input"]["src_tokens"])
        for t, e in enumerate(explainer.explain(line.split(), 5)):
            own, token = dict(e.own_features), sample["target"][0, t : t + 1]
            terms = e.log_background + math.fsum(own.values()) + e.normaliser
            assert e.log_prob == pytest.approx(terms, abs=1e-4)
            mass, share = background.view(state).class_mass.dense()[0], background.view(state).locate(token)[1]
            place = decoder.head.output.class_of[token]
            assert e.log_background == pytest.approx((mass[place] + share - mass.logsumexp(0)).item(), abs=1e-4), "b"
            said = mass[place] - background.root.class_log_mass[place]
            said = said - background.view(state).class_mass.entries.constant
            layer = decoder.head.temperature
            power = layer.weight @ hidden[0, t] + layer.bias + layer.of_class[place]
            assert own.get("Background:Power", 0.0) == pytest.approx((power * said).item(), abs=1e-4)
            state = background.advance(state, token)


def test_it_begins_as_the_background(world: World) -> None:
    prior = prior_of(world.prior("prior"), "n-grams")
    plain, learning = (build([*world.train_args(), *more], prior).model for more in ([], [LEARN]))
    learning.load_state_dict({**learning.state_dict(), **plain.state_dict()})
    tokens = torch.tensor([[2, 5, 9, 7]])
    found, expected = (model.get_normalized_probs(model.decoder(tokens), True) for model in (learning, plain))
    assert torch.equal(found, expected)


def test_what_it_does_not_go_with(world: World, translation: TranslationWorld, evidence: EvidenceWorld) -> None:
    message = f"{LEARN} needs a prior with n-grams, an automaton or a cache, and without evidence"
    for args in (world.train_args(), translation.train_args("llrnn_transformer"), evidence.train_args()):
        with pytest.raises(OptionError, match=message):
            build([*args, LEARN])


@pytest.mark.slow
def test_the_commands(shell: Shell, world: World, tmp_path: Path) -> None:
    """Trained, resumed, evaluated and explained; nothing but the training is told of it."""
    text = world.place / "train.txt"
    ngrams = ("--count-text", text, "--background", f"ngram(2, text={text}, folds=2)")
    make_prior(shell, world, world.data, tmp_path / "prior", *ngrams)
    args = [*world.train_args(save_dir=tmp_path / "model"), "--prior", tmp_path / "prior", LEARN]
    shell.run("fairseq-train", *args, "--max-epoch", 1)
    nats = shell.run("fairseq-train", *args, "--max-epoch", 2).json_lines("valid")[-1]["valid_nats"]
    model = ("--path", tmp_path / "model" / "checkpoint_last.pt")
    common = [*world.task_args(), "--prior", tmp_path / "prior", *model, "--gen-subset", "valid"]
    done = shell.run("fairseq-eval-lm", *common, "--sample-break-mode", "eos", *EVERY_SENTENCE)
    (loss,) = re.findall(r"Loss \(base 2\): ([\d.]+)", done.out)
    assert float(loss) == pytest.approx(nats / math.log(2), abs=2e-3)
    shown = shell.run("llrnn", "explain", *model, "le chat").out
    assert "Background:Power" in shown

    forgotten = [argument for argument in args if argument != LEARN]
    refused = shell.run("fairseq-train", *forgotten, "--max-epoch", 3, code=None)
    assert refused.code != 0 and f"error: {LEARN}: expected this option, with which the checkpoint was" in refused.err


@pytest.mark.parametrize("kind", ["grammar", "n-grams"])
def test_searches_find_the_model_s_scores(translation: TranslationWorld, kind: str) -> None:
    setting = made(translation.train_args(), prior_of(translation.data / "prior", kind))
    assert_found_scores_are_the_model_s(setting, pairs(setting.task, GRAMMATICAL))


@pytest.mark.parametrize("opened", [False, True])
def test_samples_of_all_classes_are_the_exact_loss(shell: Shell, world: World, opened: bool) -> None:
    """And with an open vocabulary, whose <unk> is a class of its own kind."""
    place = world.prior(open_prior(shell, world, world.data, "open-temperature") if opened else "prior")
    setting = made(world.train_args(), prior_of(place, "n-grams"))
    sample = batch(setting.task.dictionary, LINES)
    exact = setting.criterion(setting.model, sample)[0]
    ours = torch.autograd.grad(exact, setting.model.parameters())
    sampled = build([*world.train_args(), LEARN, "--sampled-classes", "100000"], prior_of(place, "n-grams"))
    sampled.model.load_state_dict(setting.model.state_dict())
    sampled.criterion.set_normaliser(sampled.model.train().decoder.head)
    found = sampled.criterion(sampled.model, sample)[0]
    torch.testing.assert_close(found, exact)
    for a, b in zip(ours, torch.autograd.grad(found, sampled.model.parameters()), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
