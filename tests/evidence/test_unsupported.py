"""Words that weigh less without evidence (`evidence.unsupported`): one law for all backgrounds.

A word of such a kind has f times its weight if no slot of the sentence offers it. All other weights do not change.
"""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import EvidenceOptions, Recipe, TranslationOptions
from fairseq_llrnn.testing import check_context_classes

FRENCH = [*SPECIALS, "12", "7", "2024-01-31", "chat", "dort", "la", "le", "mer"]
ENGLISH = [*SPECIALS, "12", "7", "2024-01-31", "cat", "sea", "sleeps", "the"]
CHAT = FRENCH.index("chat")
EPSILON = 0.25
GRAMMAR = "".join(f"0 0 {word} {cost}\n" for cost, word in enumerate(FRENCH[4:], 3)) + "0 1 12 0.5\n1 0 la 2\n1\n0\n"
BACKGROUNDS = [
    "unigram", "uniform", "ngram(2, folds=0)", "cache:3", "0.5 ngram(2, folds=0) plus 0.5 uniform",
    "automaton:grammar", "automaton:grammar times ngram:2", "ngram:2 at temperature 2",
    "ngram:2 plus cache(3, learned) with weights learned",
]  # fmt: skip
Factors = dict[str, float]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.fr").write_text("le chat dort\nla mer dort\nle chat 12\nla mer 7\nle 2024-01-31\n", encoding="utf-8")
    Path("t.en").write_text("the cat sleeps\nthe sea sleeps\nthe cat 12\nthe sea 7\nthe 2024-01-31\n", "utf-8")
    Path("grammar").write_text(GRAMMAR, encoding="utf-8")


def build(background: str, unsupported: Factors, translations: bool = False, learned: bool = False) -> Prior:
    text = ParallelText.read("t.en", "t.fr", ENGLISH, FRENCH)
    evidence = EvidenceOptions(("numbers", "dates"), weight=EPSILON, unsupported=unsupported)  # type: ignore[arg-type]
    options = Recipe(
        text="t.fr", top_words="all", background=background, source_dictionary=ENGLISH, evidence=evidence,
        translations=TranslationOptions(text, weight=0.3, learned=learned, aligner="ibm1") if translations else None,
        workers=1,
    )  # fmt: skip
    return build_prior(FRENCH, options)


def source(line: str) -> Tensor:
    return torch.tensor([[ENGLISH.index(word) for word in line.split()]])


def bound(prior: Prior, line: str = "the cat 12 sleeps") -> ContextClasses:
    background = prior.background().double().bind(source(line))
    assert isinstance(background, ContextClasses)
    return background


def weights(background: ContextClasses, history: str) -> Tensor:
    """b(C; x) of words: (V,)."""
    state = background.start(1)
    for word in history.split():
        state = background.advance(state, torch.tensor([FRENCH.index(word)]))
    return background.view(state).log_weights[0, : len(FRENCH)].exp()


@pytest.mark.parametrize("translations", [False, True])
@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("factors", [{"numbers": 0.01, "dates": 0.5}, {"numbers": 0.0, "dates": 0.5}])
def test_only_words_of_the_kind_without_a_slot_weigh_less(
    background: str, translations: bool, factors: Factors, tmp_path: Path
) -> None:
    whole, prior = build(background, {}, translations), build(background, factors, translations)
    prior.save(tmp_path / "saved")
    plain = bound(whole)
    lost = torch.ones(len(FRENCH), dtype=torch.float64)
    lost[5:7] = torch.tensor([factors["numbers"], factors["dates"]])  # 12 has a slot
    for less in (bound(prior), bound(Prior.load(tmp_path / "saved"))):
        for history in ("", "le chat", "la mer 12"):
            torch.testing.assert_close(weights(less, history), weights(plain, history) * lost)
        check_context_classes(less, torch.tensor([[2, 4, CHAT, 4]]))


@pytest.mark.parametrize("background", ["ngram(2, folds=2)", "0.5 ngram(2, folds=2) plus 0.5 uniform"])
def test_cross_fitted_models_restore_the_word_of_a_slot(background: str) -> None:
    text = torch.tensor([[2, 10, CHAT, 4]])
    plain, less = (
        build(background, factors).background().double().bind(source("the cat 12 sleeps"), text)
        for factors in ({}, {"numbers": 0.0})
    )
    expected, found = (bg.view(bg.flat_states(text)).log_weights[:, : len(FRENCH)].exp() for bg in (plain, less))
    expected[:, 5] = 0.0
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_zero_is_the_limit_of_small_factors(background: str) -> None:
    found = []
    for factor in (1e-9, 0.0):
        prior = build(background, {"numbers": factor})
        head = LogLinearHead(prior, 2, source_size=2, initial_scale=0.0).double().eval()
        line = head.encode_source(["the cat 12 sleeps"])
        states = torch.zeros(1, line.shape[1], 2, dtype=torch.float64)
        with torch.no_grad():
            previous, hidden = torch.tensor([[2, 4]]), torch.zeros(1, 2, 2, dtype=torch.float64)
            log_probs = head.log_probs(hidden, previous=previous, source=line, source_states=states)
            found.append(log_probs[0, :, : len(FRENCH)].exp())
    torch.testing.assert_close(found[0], found[1], atol=1e-8, rtol=1e-6)
    assert (found[1][:, 4] > 0).any() and (found[1][:, 5] == 0).all()


@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("has_source", [False, True])
def test_no_word_has_a_slot_without_a_source(background: str, has_source: bool) -> None:
    plain, less = (
        build(background, factors).background(has_source).double().bind() for factors in ({}, {"numbers": 0.1})
    )
    expected = plain.view(plain.start(1)).log_weights[0].exp()
    expected[4:6] *= 0.1
    torch.testing.assert_close(less.view(less.start(1)).log_weights[0].exp(), expected)


def test_weights_chosen_by_the_network_restore_the_word_of_a_slot() -> None:
    """Each hypothesis restores the word with its own weights."""
    hidden = torch.randn(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    priors = [build("ngram:2 plus uniform with weights per position", factors) for factors in ({}, {"numbers": 0.0})]
    heads = [LogLinearHead(prior, 2, source_size=2).double().eval() for prior in priors]
    gates = [name for name, _ in heads[0].background.named_parameters()]
    for (name, old), new in zip(heads[0].background.named_parameters(), heads[1].background.parameters(), strict=True):
        assert name in gates
        with torch.no_grad():
            old.normal_(generator=torch.Generator().manual_seed(old.numel()))
            new.copy_(old)
    plain, less = (head.background.bind(source("the cat 12 sleeps").repeat(3, 1)) for head in heads)
    with torch.no_grad():
        before, after = (bg.view(bg.start(3), hidden).log_weights[:, : len(FRENCH)].exp() for bg in (plain, less))
    assert len(before[:, 4].unique()) == 3
    before[:, 5] = 0.0
    torch.testing.assert_close(after, before)


def test_a_learned_weight_has_the_gradient_of_the_formula() -> None:
    """b(12) = b₁(12) + ε, whatever f is."""
    found = []
    for factor in (1.0, 0.01, 0.0):
        background = build("unigram", {"numbers": factor}, translations=True, learned=True).background().double()
        made = background.bind(source("the cat 12 sleeps"))
        weight = made.view(made.start(1)).log_weights[0, 4].exp()
        [parameter] = background.parameters()
        found.append(torch.stack([weight, torch.autograd.grad(weight, parameter)[0].squeeze()]))
    torch.testing.assert_close(found[1], found[0])
    torch.testing.assert_close(found[2], found[0])


LONG = "0 1 le\n1 2 12\n1 3 chat\n3 2 dort\n2\n"  # le 12, le chat dort
ONLY = "0 1 le\n1 2 12\n2\n"


@pytest.mark.parametrize(("grammar", "factor", "needed"), [(LONG, 0.0, 4), (LONG, 0.1, 3), (ONLY, 0.0, 3)])
@pytest.mark.parametrize(
    "background", ["automaton:grammar times ngram(2, folds=0)", "automaton:grammar at temperature 2"]
)
def test_no_search_begins_what_only_a_forbidden_word_ends_in_time(
    background: str, grammar: str, factor: float, needed: int
) -> None:
    """If only forbidden words lead to an end, a slot may still restore one."""
    Path("grammar").write_text(grammar, encoding="utf-8")
    Path("t.fr").write_text("le 12\n" * 5, encoding="utf-8")
    alone = build(background, {"numbers": factor}).background(False).double().bind()
    start = alone.start(1)
    assert alone.steps_to_end(start).tolist() == [needed]
    for remaining in (needed - 1, needed, needed + 1):
        weight = alone.view(start, remaining=remaining).log_shares[0, FRENCH.index("le")]
        assert bool(weight.isneginf()) == (remaining < needed)
    after = alone.advance(start, torch.tensor([FRENCH.index("le")]))
    words = alone.view(after, remaining=needed - 1).log_shares[0, : len(FRENCH)]
    expected = {CHAT} if needed == 4 else ({4} if factor else set())
    assert set((~words.isneginf()).nonzero().flatten().tolist()) == expected
