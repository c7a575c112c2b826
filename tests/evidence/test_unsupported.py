"""Words that weigh less without evidence (`evidence.unsupported`): where a slot stands for one, it weighs as ever."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.backgrounds.lexical import LexicalBackground, LexicalMixture
from fairseq_llrnn.evidence.translation_slots import EvidenceBackground
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import EvidenceOptions, Recipe, TranslationOptions
from fairseq_llrnn.testing import check_context_classes

FRENCH = [*SPECIALS, "12", "7", "2024-01-31", "chat", "dort", "la", "le", "mer"]
ENGLISH = [*SPECIALS, "12", "7", "2024-01-31", "cat", "sea", "sleeps", "the"]
CHAT, DORT = FRENCH.index("chat"), FRENCH.index("dort")
EPSILON = 0.25
BACKGROUNDS = ["unigram", "uniform", "ngram(2, folds=0)", "cache:3", "0.5 ngram(2, folds=0) plus 0.5 uniform"]
Weights = dict[str, float]


def build(folder: Path, background: str, unsupported: Weights, translations: bool, learned: bool = False) -> Prior:
    (folder / "t.fr").write_text("le chat dort\nla mer dort\nle chat 12\nla mer 7\nle 2024-01-31\n", encoding="utf-8")
    (folder / "t.en").write_text("the cat sleeps\nthe sea sleeps\nthe cat 12\nthe sea 7\nthe 2024-01-31\n", "utf-8")
    text = ParallelText.read(str(folder / "t.en"), str(folder / "t.fr"), ENGLISH, FRENCH)
    evidence = EvidenceOptions(("numbers", "dates"), weight=EPSILON, unsupported=unsupported)  # type: ignore[arg-type]
    options = Recipe(
        text=str(folder / "t.fr"), top_words="all", background=background, source_dictionary=ENGLISH, evidence=evidence,
        translations=TranslationOptions(text, weight=0.3, learned=learned, aligner="ibm1") if translations else None,
        workers=1,
    )  # fmt: skip
    return build_prior(FRENCH, options)


def bound(prior: Prior, line: str = "the cat 12 sleeps") -> ContextClasses:
    background = prior.background().double().bind(torch.tensor([[ENGLISH.index(word) for word in line.split()]]))
    assert isinstance(background, ContextClasses)
    return background


def weights(background: ContextClasses, history: str) -> Tensor:
    """b(C; x) without what the slot adds: (V,)."""
    state = background.start(1)
    for word in history.split():
        state = background.advance(state, torch.tensor([FRENCH.index(word)]))
    answer = background.log_weights(state)[0, : len(FRENCH)].exp()
    return answer - EPSILON * (torch.arange(len(FRENCH)) == FRENCH.index("12"))


@pytest.mark.parametrize("translations", [False, True])
@pytest.mark.parametrize("background", BACKGROUNDS)
def test_a_word_with_a_slot_weighs_what_it_weighs_without_the_setting(
    tmp_path: Path, background: str, translations: bool
) -> None:
    factors = {"numbers": 0.01, "dates": 0.5}
    whole, prior = build(tmp_path, background, {}, translations), build(tmp_path, background, factors, translations)
    prior.save(tmp_path / "saved")
    plain, b0 = bound(whole), torch.from_numpy(whole.log_weights).exp()
    scale = torch.from_numpy(prior.log_weights)[CHAT].exp() / b0[CHAT]  # a static b₀ keeps its sum
    for less in (bound(prior), bound(Prior.load(tmp_path / "saved"))):
        for history in ("", "le chat", "la mer 7"):
            before, after = weights(plain, history), weights(less, history)
            # of a mixture of b₀ with translations only b₀ is multiplied
            of_b0 = less.base.log_rest.exp() * b0 if isinstance(less.base, LexicalMixture) else before
            rest = before - of_b0
            kept = [FRENCH.index("12"), CHAT, DORT]
            torch.testing.assert_close(after[kept], (of_b0 * scale + rest)[kept])
            lost = of_b0[5:7] * scale * torch.tensor([0.01, 0.5], dtype=torch.float64)
            torch.testing.assert_close(after[5:7], lost + rest[5:7])
        check_context_classes(less, torch.tensor([[2, 4, CHAT, 5]]))
        assert less.log_weights(less.start(1)).sum().isneginf()  # <pad>


def test_a_word_that_is_forbidden_without_evidence_has_the_weight_of_its_slot(tmp_path: Path) -> None:
    for background in BACKGROUNDS:
        less = bound(build(tmp_path, background, {"numbers": 0.0}, translations=False))
        torch.testing.assert_close(weights(less, "")[4:6], torch.zeros(2, dtype=torch.float64))


def test_a_learned_weight_has_the_gradient_of_the_formula(tmp_path: Path) -> None:
    """b(12) = (1 − λr) b₀(12)/f + λ e(12) + ε, b₀ the one that was multiplied."""
    prior = build(tmp_path, "unigram", {"numbers": 0.01}, translations=True, learned=True)
    background = prior.background().double()
    assert isinstance(background, EvidenceBackground) and isinstance(background.base, LexicalBackground)
    source = torch.tensor([[ENGLISH.index(word) for word in "the cat 12 sleeps".split()]])
    made = background.bind(source)
    found = made.log_weights(made.start(1))[0, 4].exp()
    keys, entries, coverage = background.base.entries(source)
    log_rest, log_weight = background.base.log_mixture(coverage)
    b0 = torch.from_numpy(prior.log_weights).exp()[4]
    own = entries[keys == background.base.rank_of[4]].sum()
    expected = log_rest.exp()[0] * b0 / 0.01 + log_weight.exp() * own + EPSILON
    torch.testing.assert_close(found, expected)
    parameter = background.base.weight_logit
    torch.testing.assert_close(
        torch.autograd.grad(found, parameter)[0], torch.autograd.grad(expected, parameter)[0], atol=1e-8, rtol=1e-6
    )
