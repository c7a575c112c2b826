"""A head over a mixture whose weights the network chooses, beside its definition over all words; and over others."""

from __future__ import annotations

from pathlib import Path

import positions
import pytest
import torch
from dynamic_prior import AfterLastWord
from small_priors import make_prior
from torch import Tensor

from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.backgrounds.mixture import Mixture
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.output.sampled import Sampled
from fairseq_llrnn.prior import EvidenceOptions, Recipe, TranslationOptions
from fairseq_llrnn.prior.building import build_prior

H = 4
TARGETS = torch.tensor([[4, 8, 4, 2], [5, 6, 10, 2], [9, 3, 7, 2]])
EOS = 2


def make_head() -> LogLinearHead:
    torch.manual_seed(3)
    prior = make_prior()
    head = LogLinearHead(prior, H)
    class_of, num_classes = head.output.class_of, prior.output.num_classes
    table = torch.randn(head.num_words, head.num_words, dtype=torch.float64)
    table[:, :2] = -torch.inf
    dynamic = AfterLastWord(class_of, num_classes, table.log_softmax(-1), EOS)
    head.background = Mixture([prior.background(), dynamic], [1, 2], "network")
    head.background.gates(H)
    head = head.double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_()
    return head.eval()


def by_definition(head: LogLinearHead, hidden: Tensor, previous: Tensor) -> Tensor:
    """log p of all words (B, T, V)."""
    mixture = head.background
    assert isinstance(mixture, Mixture)
    static, dynamic = mixture.part_modules()
    weights = mixture.gate(hidden).softmax(-1)  # shape: (B, T, 2)
    of_static = static.view(static.start(1)).log_weights.exp().double()
    states = torch.stack(positions.states(dynamic, previous), dim=1)
    of_dynamic = torch.stack([dynamic.view(s).log_weights.exp() for s in states.unbind(1)], dim=1)
    b = weights[..., :1] * of_static + weights[..., 1:] * of_dynamic
    log_b = torch.where(b > 0, b.clamp_min(1e-300).log(), -torch.inf)  # log 0 would have no gradient
    phi = head.output.rows.dense().double()[head.output.class_of]
    return ((hidden @ head.output.weight.T + head.output.bias) @ phi.T + log_b).log_softmax(-1)


def test_batches_and_steps_are_the_definition() -> None:
    head = make_head()
    hidden = torch.randn(*TARGETS.shape, H, dtype=torch.float64, requires_grad=True)
    previous = torch.cat([torch.full_like(TARGETS[:, :1], EOS), TARGETS[:, :-1]], dim=1)
    expected = by_definition(head, hidden, previous)
    torch.testing.assert_close(head.log_probs(hidden, previous=previous), expected, rtol=1e-6, atol=1e-6)
    loss = head.loss(hidden, TARGETS, previous=previous, reduction="sum")
    slow = -expected.gather(2, TARGETS.unsqueeze(2)).sum()
    leaves = [hidden, *(p for p in head.parameters() if p.requires_grad)]
    for one, other in zip(torch.autograd.grad(loss, leaves), torch.autograd.grad(slow, leaves), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    state = head.start(len(TARGETS))
    with torch.no_grad():
        for t in range(TARGETS.size(1)):
            step = head.step(hidden[:, t], state)
            values, tokens = step.top_k(6)
            torch.testing.assert_close(values, expected[:, t].topk(6).values, rtol=1e-6, atol=1e-6)
            torch.testing.assert_close(step.log_probs_of(tokens), values)
            state = head.advance(state, TARGETS[:, t])
    order = torch.tensor([2, 0])
    torch.testing.assert_close(
        head.step(hidden[order, 0], state.select(order)).word_log_probs(),
        head.step(hidden[:, 0], state).word_log_probs()[order],
    )


WORDS = (*SPECIALS, *"a b c d e f".split())


@pytest.mark.parametrize("expression", ["{} plus uniform", "uniform plus {}", "({} at temperature 2) plus unigram"])
def test_words_that_one_part_forbids_are_summed_in_samples_too(expression: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b c\nd e f\na a b\n", encoding="utf-8")
    (tmp_path / "some.tsv").write_text("a\t1\nb\t1\n</s>\t1\n<unk>\t0.1\n", encoding="utf-8")
    background = expression.format(tmp_path / "some.tsv")
    prior = build_prior(WORDS, Recipe(text=tmp_path / "text", top_words=6, background=background))
    head = LogLinearHead(prior, H).double()
    mass = head.static_log_mass()
    assert mass.isneginf().tolist() == [word in ("<s>", "<pad>") for word in WORDS]
    hidden, targets = torch.randn(1, 4, H, dtype=torch.float64), torch.tensor([[4, 7, 9, 2]])
    exact = head.loss(hidden, targets)
    head.set_normaliser(Sampled(10_000))
    torch.testing.assert_close(head.loss(hidden, targets), exact)


@pytest.mark.parametrize("evidence", [None, EvidenceOptions(("numbers", "copies"))])
@pytest.mark.parametrize("background", ["ngram:2 plus cache(3, learned) with weights learned", "translations"])
def test_gradients_are_the_same_after_a_look_without_any(
    background: str, evidence: EvidenceOptions | None, tmp_path: Path
) -> None:
    """As activation checkpointing has one, and a look at the loss, or at the best words, before a step."""
    for name in ("text", "source"):
        (tmp_path / name).write_text("a b c\nd e f\na a b\n", encoding="utf-8")
    bitext = ParallelText.read(tmp_path / "source", tmp_path / "text", WORDS, WORDS)
    lexical = TranslationOptions(bitext, aligner="ibm1", learned=True) if background == "translations" else None
    recipe = Recipe(
        text=tmp_path / "text", top_words=6, background=background if lexical is None else "unigram",
        translations=lexical, evidence=evidence, source_dictionary=None if evidence is None else WORDS,
    )  # fmt: skip
    prior = build_prior(WORDS, recipe)
    head = LogLinearHead(prior, H, source_size=2 if prior.source_symbols else None).double()
    learned = list(head.background.parameters())
    assert learned
    tokens = head.encode(["a b c", "a 4 b"])
    source = head.encode_source(["a b c", "a 4 b"]) if prior.source_symbols else None
    states = None if source is None else torch.randn(2, source.size(1), 2, dtype=torch.float64)
    hidden = torch.randn(*tokens.shape, H, dtype=torch.float64)
    condition = head.bind(head.previous(tokens), source)

    def loss() -> Tensor:
        return -head.target_log_probs(head.batch(hidden, condition, states), tokens).sum()

    expected = torch.autograd.grad(loss(), learned, retain_graph=True, allow_unused=True)
    assert any(g is not None and bool(g.any()) for g in expected)
    with torch.no_grad():
        loss()
    for ours, whole in zip(torch.autograd.grad(loss(), learned, allow_unused=True), expected, strict=True):
        torch.testing.assert_close(ours, whole)
    head.eval()
    state = head.start(2, source=source, source_states=states)
    state = head.advance(state, tokens[:, 0])

    def score() -> Tensor:
        return head.step(hidden[:, 1], state).word_log_probs()[:, 5].sum()

    expected = torch.autograd.grad(score(), learned, retain_graph=True, allow_unused=True)
    with torch.no_grad():
        head.top_k(hidden[:, 1], state, k=2)
    for ours, whole in zip(torch.autograd.grad(score(), learned, allow_unused=True), expected, strict=True):
        torch.testing.assert_close(ours, whole)
