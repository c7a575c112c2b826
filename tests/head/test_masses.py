"""Masses that a head computes by itself: without context, of smoothed labels, and changed by a temperature."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
import torch
from small_priors import SYMBOLS, TARGETS, H, hidden_states, open_prior, random_head

from fairseq_llrnn.backgrounds.class_weights import ClassWeights
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.output.learned_temperature import LearnedTemperature, learned_temperature
from fairseq_llrnn.prior import EvidenceOptions, Recipe
from fairseq_llrnn.prior.building import build_prior

LINES = ["le chat", "la maison le chien", "la vache le chat"]


def built(place: Path, background: str) -> LogLinearHead:
    (place / "text").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    (place / "some.tsv").write_text("chat\t3\nle\t1\n</s>\t1\n<unk>\t0.5\n", encoding="utf-8")
    expression = background.replace("SOME", str(place / "some.tsv"))
    return random_head(build_prior(SYMBOLS, Recipe(text=place / "text", top_words=3, background=expression)))


@pytest.mark.parametrize("background", ["unigram", "SOME plus uniform", "SOME"])
def test_masses_without_context_are_sums_over_words(background: str, tmp_path: Path) -> None:
    """A word that the first part forbids has the mean weight of those that it allows."""
    head = built(tmp_path, background)
    weights = head.prior.log_weights
    allowed = [math.exp(weight) for weight in weights if weight > -math.inf]
    fill = sum(allowed) / len(allowed) if "plus" in background else 0.0
    masses = [0.0] * head.prior.output.num_classes
    for word, sigma in enumerate(head.output.class_of.tolist()):
        own = math.exp(weights[word])
        masses[sigma] += own or (0.0 if SYMBOLS[word] in ("<s>", "<pad>") else fill)
    before = weights.copy()
    torch.testing.assert_close(head.static_log_mass().exp(), torch.tensor(masses, dtype=torch.float64))
    assert (head.prior.log_weights == before).all(), "the prior stays"


def test_masses_without_context_lack_a_replaced_signature() -> None:
    head = random_head(open_prior())
    mass = head.static_log_mass()
    assert head.replaced == int(head.output.class_of[3]) and mass[head.replaced].isneginf()
    assert mass.isneginf().sum() == 3, "that of <unk>, <s> and <pad>"


@pytest.mark.parametrize("background", ["unigram plus uniform with weights learned", "unigram", "ngram:2"])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_smoothed_labels_of_learned_backgrounds(background: str, epsilon: float, tmp_path: Path) -> None:
    """(1 − ε) log p(target) + ε E_q[log p], word by word; q is uniform over words but </s>, <unk> and what is never."""
    head, hidden = built(tmp_path, background), hidden_states()
    previous = head.previous(TARGETS)
    log_probs = head.log_probs(hidden, previous=previous)
    words = [i for i, word in enumerate(SYMBOLS) if word not in ("<s>", "<pad>", "</s>", "<unk>")]
    of_target = log_probs.gather(2, TARGETS.unsqueeze(2)).squeeze(2)
    each = -(1 - epsilon) * of_target - epsilon * log_probs[..., words].mean(-1)
    batch, learned = head.batch(hidden, head.bind(previous)), [hidden, *head.background.parameters()]
    found = head.loss_of(batch, TARGETS, epsilon, reduction="none")
    real = TARGETS.ne(head.pad)
    assert head.has_learned_background == ("learned" in background) and not found[~real].any()
    if head.has_learned_background:
        torch.testing.assert_close(found[real], each[real])
    ours, theirs = (torch.autograd.grad(loss[real].sum(), learned, retain_graph=True) for loss in (found, each))
    torch.testing.assert_close(ours, theirs)
    summed = head.loss_of(batch, TARGETS, epsilon, reduction="sum")
    torch.testing.assert_close(summed, found.sum())
    torch.testing.assert_close(head.loss_of(batch, TARGETS, epsilon), found.sum() / real.sum())
    one = head.loss(hidden[:1, :1], TARGETS[:1, :1], previous=previous[:1, :1], label_smoothing=epsilon)
    torch.testing.assert_close(one, found[0, 0])


def test_terms_of_the_loss_add_up(tmp_path: Path) -> None:
    head, hidden = built(tmp_path, "ngram:2"), hidden_states()
    batch = head.batch(hidden, head.bind(head.previous(TARGETS)))
    loss = torch.ones(TARGETS.shape, dtype=torch.float64)
    gain, norm = head.smoothing_gain(batch, TARGETS), head.adaptor_norm(batch, 1.0)
    torch.testing.assert_close(head.regularised(loss, batch, TARGETS, 0.25, 0.5, 1.0), loss - 0.25 * gain + 0.5 * norm)
    assert torch.equal(head.regularised(loss, batch, TARGETS, 0.0, 0.0), loss)
    adaptor = hidden @ head.output.weight.T + head.output.bias
    torch.testing.assert_close(norm, adaptor.abs().sum(2))
    torch.testing.assert_close(head.adaptor_norm(batch), adaptor.square().sum(2).sqrt())


# ---- changed masses -------------------------------------------------------------------------------------------------


def test_a_learned_temperature_is_explained(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    prior = build_prior(SYMBOLS, Recipe(text=tmp_path / "text", top_words=3, background="ngram:2"))
    head = random_head(prior, mass_change=learned_temperature)
    assert isinstance(head.change, LearnedTemperature) and head.has_learned_background
    tokens, hidden = head.encode(["le chat"])[0], hidden_states()[:1, :3].detach()
    log_probs = head.log_probs(hidden, previous=head.previous(tokens.unsqueeze(0)))[0]
    plain = random_head(prior)
    for t, found in enumerate(head.explain(hidden, tokens)):
        assert found.log_prob == pytest.approx(float(log_probs[t, tokens[t]].detach()))
        own = [value for _, value in found.own_features]
        assert found.log_background + sum(own) + found.normaliser == pytest.approx(found.log_prob)
        before = plain.explain(hidden, tokens)[t]
        assert found.log_background == pytest.approx(before.log_background)
        assert len(own) == len(before.own_features) + 1, "and what the temperature adds"


def test_class_weights_without_entries_have_no_temperature() -> None:
    weights = ClassWeights(torch.zeros(1, 4), 2)
    assert LearnedTemperature(3, 4).applied(weights, torch.zeros(2, 3)) is weights


def test_a_temperature_needs_sparse_weights_without_strings(tmp_path: Path) -> None:
    said = (
        "--learn-background-temperature needs a prior with n-grams, an automaton or a cache, and without evidence; "
        "build one with `llrnn prior --background ngram:…` or `automaton:…`, or leave the option out"
    )
    (tmp_path / "text").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    more = {"evidence": EvidenceOptions(("numbers",)), "source_dictionary": SYMBOLS}
    for options, size in (({"background": "unigram"}, None), ({"background": "ngram:2", **more}, 2)):
        prior = build_prior(SYMBOLS, Recipe(text=tmp_path / "text", top_words=3, **options))
        with pytest.raises(OptionError, match=f"^{re.escape(said)}$"):
            LogLinearHead(prior, H, source_size=size, mass_change=learned_temperature)


def test_a_checkpoint_without_a_temperature_gets_zeros(tmp_path: Path) -> None:
    head = LogLinearHead(built(tmp_path, "ngram:2").prior, H, mass_change=learned_temperature)
    saved = LogLinearHead(head.prior, H).state_dict()
    torch.nn.init.ones_(head.change.weight)  # type: ignore[union-attr]
    head.load_state_dict(saved)
    assert isinstance(head.change, LearnedTemperature) and not any(each.any() for each in head.change.parameters())
    own = head.state_dict() | {"temperature.weight": torch.full((H,), 2.0)}
    head.load_state_dict(own)
    assert head.change.weight.tolist() == [2.0] * H, "weights of a checkpoint stay"
