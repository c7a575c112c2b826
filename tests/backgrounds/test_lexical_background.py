"""The lexical background: equal to the plain formula in value and gradient, lawful, clean at its edges, fast."""

import math
from collections.abc import Sequence

import numpy as np
import positions
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from positions import best_members
from torch import Tensor

from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.backgrounds.background import StaticBackground
from fairseq_llrnn.backgrounds.lexical_background import LexicalBackground, LexicalView
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output.normalisers import Distribution, LogLinearOutput, class_log_probs
from fairseq_llrnn.testing import check_background

INF = float("inf")
BOS, PAD, EOS, UNK = range(4)
CLASS_OF = torch.tensor([0, 0, 1, 2, 3, 4, 3, 5, 3, 4, 2, 6])  # 12 target words in 7 classes; <unk> shares class 2
NUM_CLASSES = 8  # the last one is empty
WORDS = torch.tensor([False] * 4 + [True] * 8)
FORBIDDEN = (BOS, PAD, 11)
NUM_SOURCES = 9  # <s> <pad> </s> <unk>, words 4-7, and 8, of which nothing is known
SPEAKS = torch.tensor([False, False, False] + [True] * 6)
SOURCE = torch.tensor(
    [
        [4, 5, 6, 4, EOS],  # a word twice
        [7, EOS, PAD, PAD, PAD],
        [PAD, UNK, 5, 8, EOS],  # padded on the left; unknown words
        [8, UNK, EOS, PAD, PAD],  # nothing is known
        [EOS, PAD, PAD, PAD, PAD],  # no word at all
    ]
)


def log_weights(seed: int = 0) -> Tensor:
    weights = torch.randn(len(CLASS_OF), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    weights[list(FORBIDDEN)] = -INF
    return weights - weights.logsumexp(0)


def table(seed: int = 0) -> LexicalTable:
    """Translations of the words 4 to 7, three of each."""
    random = np.random.default_rng(seed)
    sources = np.repeat(np.arange(4, 8), 7)
    return LexicalTable.from_pairs(sources, np.tile(np.arange(4, 11), 4), random.random(28), NUM_SOURCES, 3)


def background(weight: float = 0.3, learned: bool = False, seed: int = 0) -> LexicalBackground:
    return LexicalBackground(
        CLASS_OF, NUM_CLASSES, log_weights(seed), table(seed), WORDS, SPEAKS, weight, learned
    ).double()


def row_without(translations: LexicalTable, source: list[int], s: int, leave_out: list[int]) -> dict[int, float]:
    """t(x | s) from the links that are left when all that one sentence can have given are taken away."""
    links = {x: p * float(translations.links[s]) for x, p in translations.row(s)}
    left = {x: max(0.0, count - min(source.count(s), leave_out.count(x))) for x, count in links.items()}
    total = sum(left.values())
    return {x: count / total for x, count in left.items()} if total > 0 else {}


def plain_weights(
    base: Tensor, translations: LexicalTable, source: list[int], weight: Tensor, leave_out: Sequence[int] = ()
) -> Tensor:
    """b(C; x) of all words by the formula, source word by source word: (V,)."""
    b0 = base.exp()
    words = [s for s in source if SPEAKS[s]]
    if not words:
        return b0
    mean = torch.zeros_like(b0)
    for s in words:
        says, row = b0 * ~WORDS, row_without(translations, source, s, list(leave_out))
        for x, probability in row.items():
            says[x] = b0[WORDS].sum() * probability
        mean += (says if row else b0) / len(words)
    return (1 - weight) * b0 + weight * mean


def plain(weight: float | Tensor, source: Tensor = SOURCE, seed: int = 0) -> Tensor:
    """b(C; x) of all words of all sentences: (B, V)."""
    exact = torch.as_tensor(weight, dtype=torch.float64)
    return torch.stack([plain_weights(log_weights(seed), table(seed), row.tolist(), exact) for row in source])


def plain_masses(weights: Tensor) -> Tensor:
    """(B, V) -> (B, S)."""
    return torch.stack([weights[:, c == CLASS_OF].sum(1) for c in range(NUM_CLASSES)], dim=1)


# ---- values ---------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.integers(4, 10), min_size=3, max_size=3), min_size=5, max_size=5),
    st.floats(0.2, 4.0),
    st.integers(0, 99),
)
def test_in_training_the_sentence_at_hand_is_left_out(targets: list[list[int]], scale: float, seed: int) -> None:
    """As if each pair of a word of the source and one of the target had been linked less: by the rarer's number."""
    full = table(seed)
    links = (full.links * scale).astype(np.float32)
    counted = LexicalTable(full.offsets, full.targets, full.probabilities, links)
    unbound = LexicalBackground(CLASS_OF, NUM_CLASSES, log_weights(seed), counted, WORDS, SPEAKS, 0.3, False).double()
    bound = unbound.bind(SOURCE, torch.tensor([[EOS, *row] for row in targets]))
    exact = torch.tensor(0.3, dtype=torch.float64)
    expected = torch.stack(
        [
            plain_weights(log_weights(seed), counted, row.tolist(), exact, leave_out)
            for row, leave_out in zip(SOURCE, targets, strict=True)
        ]
    )
    state = bound.start(5)
    torch.testing.assert_close(bound.view(state).log_weights.exp(), expected, rtol=1e-5, atol=1e-9)
    torch.testing.assert_close(bound.view(state).class_mass.dense().exp(), plain_masses(expected), rtol=1e-5, atol=1e-9)
    torch.testing.assert_close(expected.sum(1), torch.ones(5, dtype=torch.float64))


def test_a_pair_seen_once_says_nothing_of_its_own_sentence() -> None:
    once = LexicalTable.from_pairs(np.array([4, 5, 5]), np.array([6, 6, 7]), np.array([1.0, 1.0, 1.0]), NUM_SOURCES, 3)
    unbound = LexicalBackground(CLASS_OF, NUM_CLASSES, log_weights(), once, WORDS, SPEAKS, 0.5, False).double()
    source, leave_out = torch.tensor([[4, EOS], [5, EOS]]), torch.tensor([[EOS, 6], [EOS, 6]])
    bound = unbound.bind(source, leave_out)
    weights = bound.view(bound.start(2)).log_weights.exp()
    b0 = log_weights().exp()
    torch.testing.assert_close(weights[0], b0)  # nothing is left: as if the source word were unknown
    torch.testing.assert_close(weights[1, 6], 0.5 * b0[6])  # all that is left speaks for word 7
    torch.testing.assert_close(weights[1, 7], 0.5 * b0[7] + 0.5 * b0[WORDS].sum())


@settings(max_examples=20, deadline=None)
@given(st.floats(0.0, 1.0), st.integers(0, 99))
def test_a_share_of_the_sentences_is_hidden_in_training_alone(share: float, seed: int) -> None:
    unbound = background(seed=seed)
    unbound.hidden_share = share
    torch.manual_seed(seed)
    bound = unbound.bind(SOURCE, torch.full((len(SOURCE), 1), EOS))
    torch.manual_seed(seed)
    hidden = torch.rand(len(SOURCE)) < share
    b0, whole = log_weights(seed).exp(), plain(0.3, seed=seed)
    expected = torch.where(hidden.unsqueeze(1), b0, whole)
    state = bound.start(len(SOURCE))
    torch.testing.assert_close(bound.view(state).log_weights.exp(), expected, rtol=1e-5, atol=1e-9)
    torch.testing.assert_close(bound.view(state).class_mass.dense().exp(), plain_masses(expected), rtol=1e-5, atol=1e-9)
    used = unbound.bind(SOURCE)
    torch.testing.assert_close(used.view(used.start(len(SOURCE))).log_weights.exp(), whole, rtol=1e-5, atol=1e-9)


def test_where_nothing_is_hidden_nothing_is_drawn() -> None:
    """A training without a warm-up draws the random numbers that it drew before there was one."""
    torch.manual_seed(1)
    before = torch.get_rng_state()
    background().bind(SOURCE, torch.full((len(SOURCE), 1), EOS))
    assert torch.equal(torch.get_rng_state(), before)


def test_hidden_sentences_teach_a_learned_weight_nothing() -> None:
    unbound = background(learned=True)
    unbound.hidden_share = 1.0
    bound = unbound.bind(SOURCE, torch.full((len(SOURCE), 1), EOS))
    bound.view(bound.start(len(SOURCE))).class_mass.dense()[:, CLASS_OF[4:]].sum().backward()
    assert unbound.weight_logit.grad is not None and unbound.weight_logit.grad.abs() < 1e-12


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.999999])
@pytest.mark.parametrize("learned", [False, True])
def test_equals_the_plain_formula(weight: float, learned: bool) -> None:
    if learned and not weight:
        return
    bound = background(weight, learned).bind(SOURCE)
    state = bound.start(5)
    weights = plain(weight)
    class_weights = plain_masses(weights)
    shares = torch.where(weights > 0, weights / class_weights[:, CLASS_OF], 0.0)
    torch.testing.assert_close(bound.view(state).log_weights, weights.log())
    torch.testing.assert_close(bound.view(state).class_mass.dense(), class_weights.log())
    torch.testing.assert_close(bound.view(state).log_shares, shares.log())
    every_word = torch.arange(len(CLASS_OF)).expand(5, -1)
    torch.testing.assert_close(positions.log_share(bound, every_word, every_word), shares.log())
    assert (bound.flat_states(every_word), bound.view_of(every_word).class_mass)[1].shared.shape == (5, NUM_CLASSES)


@given(
    st.lists(st.lists(st.integers(0, NUM_SOURCES - 1), min_size=6, max_size=6), min_size=5, max_size=5),
    st.floats(0, 0.99),
    st.integers(0, 50),
)
@settings(max_examples=40, deadline=None)
def test_any_sentences_obey_the_laws_and_the_formula(rows: list[list[int]], weight: float, seed: int) -> None:
    source, unbound = torch.tensor(rows), background(weight, seed=seed)
    check_background(unbound, seed=seed, source=source)
    bound = unbound.bind(source)
    torch.testing.assert_close(bound.view(bound.start(5)).log_weights, plain(weight, source, seed).log())


@pytest.mark.parametrize("learned", [False, True])
def test_obeys_the_laws(learned: bool) -> None:
    check_background(background(0.5, learned), source=SOURCE)
    check_background(background(0.5, learned).float(), source=SOURCE)


def test_by_itself_it_is_its_base() -> None:
    base = StaticBackground(CLASS_OF, NUM_CLASSES, log_weights())
    check_background(background(), source=SOURCE)
    unbound, plainly = (bound.view(bound.start(2)) for bound in (background(), base))
    assert torch.equal(unbound.class_mass.dense(), plainly.class_mass.dense())
    assert torch.equal(unbound.log_shares, plainly.log_shares)


# ---- what the formula promises --------------------------------------------------------------------------------------


def test_every_sentence_has_a_distribution_in_which_the_end_keeps_its_mass() -> None:
    bound = background(0.7).bind(SOURCE)
    weights = bound.view(bound.start(5)).log_weights
    torch.testing.assert_close(weights.logsumexp(1), torch.zeros(5, dtype=torch.float64))
    for kept in (EOS, UNK):
        torch.testing.assert_close(weights[:, kept], log_weights()[kept].expand(5))
    assert torch.isneginf(weights[:, list(FORBIDDEN)]).all()


def test_what_is_not_known_says_what_is_said_anyway() -> None:
    bound = background(0.7).bind(SOURCE)
    weights = bound.view(bound.start(5)).log_weights
    torch.testing.assert_close(weights[3:], log_weights().expand(2, -1))
    # one of the three words of sentence 2 is known
    first = table().row(5)[0][0]
    mass = log_weights()[WORDS].exp().sum()
    expected = (1 - 0.7 / 3) * log_weights()[first].exp() + 0.7 / 3 * mass * table().row(5)[0][1]
    assert weights[2, first].exp().item() == pytest.approx(expected.item())


def test_weights_that_sum_to_something_else() -> None:
    """Only ratios count: a base that is twice as heavy makes a background that is."""
    heavy = LexicalBackground(
        CLASS_OF, NUM_CLASSES, log_weights() + 300.0, table(), WORDS, SPEAKS, 0.3, False
    ).bind(SOURCE)
    one = background(0.3).bind(SOURCE)
    found, expected = heavy.view(heavy.start(5)), one.view(one.start(5))
    torch.testing.assert_close(found.class_mass.dense(), expected.class_mass.dense() + 300.0)
    torch.testing.assert_close(found.log_shares, expected.log_shares)


def test_masses_below_what_float32_can_hold() -> None:
    weights = log_weights()
    weights[4] = -200.0
    unbound = LexicalBackground(CLASS_OF, NUM_CLASSES, weights.float(), table(), WORDS, SPEAKS, 0.3, False)
    bound = unbound.bind(SOURCE[4:])
    assert bound.view(bound.start(1)).log_weights[0, 4].item() == pytest.approx(-200.0)


def test_one_hypothesis_for_each_sentence() -> None:
    with pytest.raises(ValueError, match="expected one hypothesis for each of 5 sentences, found 4"):
        background().bind(SOURCE).start(4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_does_not_touch_it(dtype: torch.dtype) -> None:
    unbound = background(0.3).float()
    before = unbound.bind(SOURCE).view(torch.arange(5).unsqueeze(1)).class_mass.dense()
    after = unbound.to(dtype).bind(SOURCE).view(torch.arange(5).unsqueeze(1)).class_mass.dense()
    assert after.dtype == torch.float64 and torch.equal(before, after)


@pytest.mark.parametrize("k", [1, 3, 20])
def test_the_best_words_of_a_search_are_those_of_the_whole_distribution(k: int) -> None:
    features = FeatureTable.from_rows([{f"f{c}": 1.0, "all": 0.5} for c in range(NUM_CLASSES)])
    output = LogLinearOutput(features, CLASS_OF, 4).double()
    scores = output.class_scores(torch.randn((5, 4), generator=torch.Generator().manual_seed(3), dtype=torch.float64))
    bound = background(0.9).bind(SOURCE)
    state = bound.start(5)
    view = bound.view(state)
    log_probs = class_log_probs(scores, view.class_mass)
    everything = view.expand(log_probs)
    values, tokens = Distribution(log_probs).best_words(view, k)
    expected = everything.topk(min(k, len(CLASS_OF))).values
    torch.testing.assert_close(values[:, : expected.size(1)], expected)
    real = ~values.isneginf()
    torch.testing.assert_close(everything.gather(1, tokens)[real], values[real])


# ---- gradients ------------------------------------------------------------------------------------------------------


def test_a_fixed_weight_is_no_parameter() -> None:
    assert list(background().parameters()) == []
    assert [name for name, _ in background(learned=True).named_parameters()] == ["weight_logit"]
    assert background(0.3, learned=True).weight_logit.item() == pytest.approx(math.log(3 / 7))
    assert list(background().state_dict()) == []


@pytest.mark.parametrize("logit", [-3.0, 0.4, 5.0])
def test_masses_and_shares_have_the_gradient_of_the_plain_formula(logit: float) -> None:
    unbound = background(learned=True)
    tokens = torch.tensor([[4, 5, 6], [7, 8, 9], [10, EOS, UNK], [4, 8, 6], [7, 7, 4]])
    possible = plain_masses(plain(0.5)) > 0

    def ours(z: Tensor) -> tuple[Tensor, Tensor]:
        del unbound.weight_logit
        unbound.weight_logit = z
        bound = unbound.bind(SOURCE)
        return bound.view(bound.start(5)).class_mass.dense()[possible], positions.log_share(bound, tokens, tokens)

    def by_the_formula(z: Tensor) -> tuple[Tensor, Tensor]:
        weights = plain(torch.sigmoid(z))
        class_weights = plain_masses(weights)
        shares = weights.gather(1, tokens).log() - class_weights.gather(1, CLASS_OF[tokens]).log()
        return class_weights[possible].log(), shares

    at = torch.tensor(logit, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ours, (at,))
    for one, other in zip(ours(at), by_the_formula(at), strict=True):
        torch.testing.assert_close(one, other)
        found = torch.autograd.grad(one.sum(), at, retain_graph=True)[0]
        torch.testing.assert_close(found, torch.autograd.grad(other.sum(), at, retain_graph=True)[0])


@pytest.mark.parametrize("logit", [-800.0, -30.0, 30.0, 800.0])
def test_a_learned_weight_may_go_far(logit: float) -> None:
    """No NaN, nothing forbidden, and a finite gradient, however sure training becomes."""
    unbound = background(learned=True)
    with torch.no_grad():
        unbound.weight_logit.fill_(logit)
    bound = unbound.bind(SOURCE)
    mass = bound.view(bound.start(5)).class_mass.dense()
    possible = ~unbound.class_log_mass.isneginf()
    assert torch.isfinite(mass[:, possible]).all()
    mass[:, possible].sum().backward()
    assert torch.isfinite(unbound.weight_logit.grad).all()


# ---- speed ----------------------------------------------------------------------------------------------------------


def large(words: int = 20_000, classes: int = 4000, top: int = 10) -> LexicalBackground:
    random = np.random.default_rng(0)
    class_of = torch.from_numpy(np.concatenate([np.arange(classes), random.integers(4, classes, words - classes)]))
    weights = torch.log_softmax(torch.randn(words), 0)
    sources = 10_000
    translations = LexicalTable.from_pairs(
        np.repeat(np.arange(4, sources), top),
        np.concatenate([random.choice(words - 4, top, replace=False) + 4 for _ in range(sources - 4)]),
        random.random((sources - 4) * top),
        sources,
        top,
    )
    ordinary, is_content_word = torch.arange(words) > 3, torch.arange(sources) > 2
    return LexicalBackground(class_of, classes, weights, translations, ordinary, is_content_word, 0.5, False)


def test_a_batch_takes_no_tensor_over_all_words(monkeypatch: pytest.MonkeyPatch) -> None:
    unbound = large()
    source = torch.randint(4, 10_000, (64, 15), generator=torch.Generator().manual_seed(1))
    for name in ("log_weights", "log_shares"):
        monkeypatch.setattr(LexicalView, name, property(lambda self: pytest.fail("a tensor over all words")))
    bound = unbound.bind(source)
    positions.log_share(bound, source, source)
    positions.log_mass(bound, source)
    view = bound.view(bound.start(64))
    assert view.best_share.shape == (64, 4000)
    best_members(view, torch.randint(0, 4000, (64, 10)), 10)
