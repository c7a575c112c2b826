"""The head beside the definition p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)) over all words, in values and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from automaton_prior import with_grammar
from small_priors import COUNTS, SYMBOLS, TARGETS, B, H, T, hidden_states, make_prior, open_prior, random_head
from torch import Tensor

from fairseq_llrnn.backgrounds.background import Background, StaticBackground
from fairseq_llrnn.backgrounds.mixture import Mixture
from fairseq_llrnn.errors import DataError, OptionError, PriorError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.head import FeatureInput, LogLinearHead
from fairseq_llrnn.output.class_source import ClassSource, Head, Place
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.output.context_source import ContextClassSource
from fairseq_llrnn.output.records import FEW, RowPair
from fairseq_llrnn.output.sampled import Sampled
from fairseq_llrnn.prior import EvidenceOptions, OpenOptions, Recipe
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.prior import Prior


def make_head(**options: object) -> LogLinearHead:
    return random_head(make_prior(), **options)


def by_definition(head: LogLinearHead, hidden: Tensor) -> Tensor:
    """log p of all words (B, T, V), with a dense matrix of features."""
    phi = head.output.rows.dense().double()[head.output.class_of]  # shape: (V, F)
    adaptor = hidden @ head.output.weight.T + head.output.bias
    log_weights = torch.from_numpy(head.prior.log_weights)
    return (adaptor @ phi.T + log_weights).log_softmax(-1)


def test_log_probabilities_of_all_words() -> None:
    head, hidden = make_head(), hidden_states()
    torch.testing.assert_close(head.log_probs(hidden), by_definition(head, hidden), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(head.log_probs(hidden).exp().sum(-1), torch.ones(B, T, dtype=torch.float64))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_loss_and_its_gradients(reduction: str) -> None:
    head, hidden = make_head(), hidden_states()
    real = TARGETS.ne(1)
    each = -by_definition(head, hidden).gather(2, TARGETS.unsqueeze(2)).squeeze(2).masked_fill(~real, 0.0)
    expected = {"mean": each.sum() / real.sum(), "sum": each.sum(), "none": each}[reduction]
    loss = head.loss(hidden, TARGETS, reduction=reduction)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)
    leaves = [hidden, head.output.weight, head.output.bias]
    ours, theirs = (torch.autograd.grad(value.sum(), leaves) for value in (loss, expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def test_label_smoothing_and_the_penalty_are_what_their_formulas_say() -> None:
    head, hidden = make_head(), hidden_states()
    real = TARGETS.ne(1)
    plain = head.loss(hidden, TARGETS, reduction="sum")
    norm = (hidden @ head.output.weight.T + head.output.bias).norm(dim=-1)[real].sum()
    penalised = head.loss(hidden, TARGETS, adaptor_penalty=0.3, reduction="sum")
    torch.testing.assert_close(penalised, plain + 0.3 * norm, rtol=1e-6, atol=1e-6)
    phi = head.output.rows.dense().double()[head.output.class_of]
    scores = (hidden @ head.output.weight.T + head.output.bias) @ phi.T  # shape: (B, T, V)
    words = torch.tensor([i for i, s in enumerate(SYMBOLS) if s not in ("<s>", "<pad>", "</s>", "<unk>")])
    gain = scores[..., words].mean(-1) - scores.gather(2, TARGETS.unsqueeze(2)).squeeze(2)
    smoothed = head.loss(hidden, TARGETS, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(smoothed, plain - 0.1 * gain[real].sum(), rtol=1e-6, atol=1e-6)


def test_more_than_all_words_are_the_most_probable_ones() -> None:
    head, hidden = make_head(), hidden_states()
    for k in (len(SYMBOLS), FEW, FEW + 1, 10**6):  # the last two do not look at the members of classes
        values, tokens = head.top_k(hidden[:, 0], head.start(B), k)
        best, _ = head.log_probs(hidden[:, :1])[:, 0].topk(len(SYMBOLS))
        torch.testing.assert_close(values[:, : len(SYMBOLS)], best)
        said = head.log_probs(hidden[:, :1])[:, 0].gather(1, tokens[:, : len(SYMBOLS)])
        torch.testing.assert_close(said[best.isfinite()], best[best.isfinite()])


def test_top_k_needs_one_position() -> None:
    head, hidden = make_head(), hidden_states()
    message = rf"top_k: expected the hidden state of each hypothesis, \(N, {H}\), found .*; of \(B, T, H\) pass one"
    for states in (hidden, hidden[:, 0, :-1]):
        with pytest.raises(DataError, match=message):
            head.top_k(states, head.start(B), 2)


def test_decoding_gives_what_the_batch_gives() -> None:
    head, hidden = make_head(), hidden_states()
    whole, state = head.log_probs(hidden), head.start(B)
    for t in range(T):
        values, tokens = head.top_k(hidden[:, t], state, k=4)
        best, _ = whole[:, t].topk(4)
        torch.testing.assert_close(values, best)
        torch.testing.assert_close(whole[:, t].gather(1, tokens), values)
        state = head.advance(state, TARGETS[:, t])
    assert state.length == T


def grammar_head() -> LogLinearHead:
    """Sentences `le chat` and `la maison`, each with any number of `le` in between."""
    states = [{"le": 1, "la": 2}, {"le": 1, "chat": 3}, {"le": 2, "maison": 3}, {"</s>": 0}]
    return LogLinearHead(with_grammar(make_prior(), states), H).eval()


def test_several_tokens_advance_a_state_one_after_the_other() -> None:
    head, tokens = grammar_head(), torch.tensor([[4, 4, 8], [5, 4, 4]])
    at_once, stepwise = head.advance(head.start(2), tokens), head.start(2)
    for token in tokens.unbind(1):
        stepwise = head.advance(stepwise, token)
    assert at_once.length == stepwise.length == 3
    hidden = torch.randn(2, H)
    for one, other in zip(head.top_k(hidden, at_once, 3), head.top_k(hidden, stepwise, 3), strict=True):
        assert torch.equal(one, other)
    assert head.top_k(hidden, at_once, 1)[1][0].item() == 2, "only the end may follow le le chat"


@pytest.mark.parametrize("training", [False, True])
def test_sentences_that_a_grammar_lacks_are_found_and_refused(training: bool) -> None:
    head = grammar_head().train(training)
    sentences = torch.tensor([[4, 8, 2, 1, 1], [5, 4, 4, 6, 2], [4, 6, 2, 1, 1], [4, 8, 8, 2, 1], [5, 6, 1, 1, 1]])
    assert head.possible(sentences).tolist() == [True, True, False, False, True]
    for sentence, possible in zip(sentences, [True, True, False, False, True], strict=True):
        hidden = torch.randn(1, 5, H)
        if possible:
            assert head.loss(hidden, sentence.unsqueeze(0)).isfinite()
        else:
            with pytest.raises(DataError, match=r"gives word '(maison|chat)' no mass, .*; leave such sentences out \("):
                head.loss(hidden, sentence.unsqueeze(0))
    hidden = torch.randn(3, 5, H, requires_grad=True)
    head.loss(hidden, sentences[head.possible(sentences)]).backward()
    assert hidden.grad is not None and hidden.grad.isfinite().all(), "what follows the end has no gradient"


def test_a_sample_without_any_class_that_may_come_has_no_gradient_and_hides_no_forbidden_target() -> None:
    head = grammar_head()
    head.set_normaliser(Sampled(2))
    head.train()
    sentences, hidden = torch.tensor([[4, 8, 2, 1, 1], [5, 6, 2, 1, 1]]), torch.randn(2, 5, H, requires_grad=True)
    for seed in range(20):
        torch.manual_seed(seed)
        loss = head.loss(hidden, sentences)
        gradients = torch.autograd.grad(loss, [hidden, *head.parameters()], allow_unused=True)
        assert loss.isfinite() and all(g is None or g.isfinite().all() for g in gradients)
        with pytest.raises(DataError, match="gives word 'chat' no mass"):
            head.loss(hidden[:1], torch.tensor([[8, 4, 2, 1, 1]]))


def test_weights_that_were_put_beside_another_prior_are_found() -> None:
    head = make_head()
    head.check_prior()
    head.prior_fingerprint.copy_(LogLinearHead(make_prior(Recipe(top_words=3)), H).prior_fingerprint)
    with pytest.raises(PriorError, match="was trained with another prior"):
        head.check_prior()


def test_a_temperature_divides_scores_and_not_the_background() -> None:
    head, hidden = make_head(), hidden_states()
    cold = make_head()
    with torch.no_grad():
        cold.output.weight.div_(0.5)
        cold.output.bias.div_(0.5)
    values, tokens = head.top_k(hidden[:, 0], head.start(B), k=3, temperature=0.5)
    expected, same = cold.top_k(hidden[:, 0], cold.start(B), k=3)
    torch.testing.assert_close(values, expected)
    assert torch.equal(tokens, same)


def test_a_softmax_is_the_special_case() -> None:
    torch.manual_seed(1)
    prior = make_prior(Recipe(top_words="all", features=(), background="uniform"))
    head, hidden = LogLinearHead(prior, H).eval(), torch.randn(B, T, H)
    feature = torch.from_numpy(prior.output.features.indices)[head.output.class_of]
    logits = hidden @ head.output.weight[feature].T + head.output.bias[feature]
    logits[..., :2] = -torch.inf  # <s> and <pad> are never predicted
    torch.testing.assert_close(head.log_probs(hidden), logits.log_softmax(-1))


def test_sampled_training_with_all_classes_is_exact_training() -> None:
    exact, sampled, hidden = make_head(), make_head(normaliser=Sampled(100)), hidden_states()
    sampled.train()
    torch.testing.assert_close(sampled.loss(hidden, TARGETS), exact.loss(hidden, TARGETS), rtol=1e-6, atol=1e-6)


def test_embeddings_are_sums_of_features_and_may_be_tied() -> None:
    head = make_head(embedding=FeatureInput(H, tied=True))
    phi = head.output.rows.dense().double()[head.output.class_of]
    torch.testing.assert_close(head.embed(TARGETS), (phi @ head.output.weight)[TARGETS])
    rows = head.embedding_rows()
    torch.testing.assert_close(head.embed(TARGETS, rows), head.embed(TARGETS))
    assert torch.equal(head.embed(torch.tensor([500])), head.embed(torch.tensor([3]))), "read as <unk>"
    with pytest.raises(OptionError, match="embed needs a head with `embedding`; pass one to the constructor"):
        make_head().embed(TARGETS)
    with pytest.raises(OptionError, match=f"tied needs size {H}, the hidden_size, found 7"):
        make_head(embedding=FeatureInput(7, tied=True))


def test_explanations_add_up() -> None:
    head, hidden = make_head(), hidden_states()
    found = head.explain(hidden[:1].detach(), TARGETS[0], top=3)
    expected = head.log_probs(hidden[:1])[0].gather(1, TARGETS[0].unsqueeze(1)).squeeze(1)
    assert [e.token for e in found] == ["le", "chat", "le", "</s>"]
    assert {len(e.predictions) for e in found} == {3}
    assert {len(e.predictions) for e in head.explain(hidden[:1].detach(), TARGETS[0])} == {5}
    for explanation, log_prob in zip(found, expected.tolist(), strict=True):
        assert explanation.log_prob == pytest.approx(log_prob)
        parts = explanation.log_background + sum(v for _, v in explanation.own_features) + explanation.normaliser
        assert parts == pytest.approx(log_prob, abs=1e-6)


def test_weights_of_another_prior_are_refused() -> None:
    head, other = make_head(), LogLinearHead(make_prior(Recipe(top_words=3)), H)
    head.load_state_dict(make_head().state_dict())
    with pytest.raises(PriorError, match="was trained with another prior"):
        head.load_state_dict(other.state_dict())


def test_the_tokens_before_the_targets() -> None:
    assert make_head().previous(TARGETS).tolist() == [[2, 4, 8, 4], [2, 5, 6, 2], [2, 9, 3, 7]]


def test_shapes_that_do_not_fit_are_named() -> None:
    head, hidden = make_head(), hidden_states()
    with pytest.raises(DataError, match=rf"expected hidden states \(B, T, {H}\), found \(3, 4, 2\)"):
        head.loss(hidden[..., :2], TARGETS)
    with pytest.raises(DataError, match=r"expected targets \(B, T\) = \(3, 4\), .* found \(3, 3\)"):
        head.loss(hidden, TARGETS[:, 1:], previous=TARGETS)
    with pytest.raises(DataError, match=r"expected targets \(B, T\), found \(4,\); for one sentence pass targets"):
        head.loss(hidden[0], TARGETS[0])
    for rows in (1, 2, 4):
        for name, given in (("source", torch.zeros(rows, 2).long()), ("source_states", torch.zeros(rows, 2, 1))):
            with pytest.raises(DataError, match=f"^{name}: expected a row for each of 3 sentences, found {rows};"):
                head.loss(hidden, TARGETS, **{name: given})
            with pytest.raises(DataError, match=f"^{name}: expected a row for each of 3 hypotheses, found {rows};"):
                head.start(3, **{name: given})
    for token in (-1, 99):
        with pytest.raises(DataError, match=rf"^tokens: expected token ids from 0 to \d+, found {token}; "):
            head.advance(head.start(2), torch.tensor([4, token]))
    with pytest.raises(OptionError, match="reduction: expected mean, sum or none, found 'all'"):
        head.loss(hidden, TARGETS, reduction="all")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        *(("label_smoothing", share, "expected a share from 0 to below 1") for share in (-0.1, 1, math.inf, math.nan)),
        *(("adaptor_penalty", value, "expected a number from 0 to") for value in (-0.1, 1e30, math.inf, math.nan)),
    ],
)
def test_a_number_out_of_range(option: str, value: float, message: str) -> None:
    with pytest.raises(OptionError, match=f"{option} .*: {message}"):
        make_head().loss(hidden_states(), TARGETS, **{option: value})


def test_targets_in_the_place_of_what_stands_before_them() -> None:
    head, hidden = make_head(), hidden_states()
    with pytest.raises(DataError, match="expected `previous`, the token before each target.* found the targets them"):
        head.loss(hidden, TARGETS, previous=TARGETS)
    ends = torch.full((1, 1), head.eos)
    head.loss(hidden[:1, :1], ends, previous=ends)  # an empty sentence
    alike = torch.full((1, 4), 4)
    head.loss(hidden[:1], alike, previous=alike)  # a block of a text


def test_a_target_without_mass_is_named() -> None:
    head, hidden = make_head(), hidden_states()
    targets = TARGETS.clone()
    targets[1, 1] = 0
    with pytest.raises(DataError, match=r"gives word '<s>' no mass, but it is the target in 'la <s>'"):
        head.loss(hidden, targets)


def test_the_head_follows_to_another_precision() -> None:
    head, hidden = make_head(), hidden_states()
    single = make_head().float()
    torch.testing.assert_close(
        single.loss(hidden.float(), TARGETS).double(), head.loss(hidden, TARGETS), rtol=1e-4, atol=1e-4
    )
    assert COUNTS.sum() > 0


def test_label_smoothing_under_a_grammar_is_towards_what_may_follow_and_nothing_else() -> None:
    """By whole signatures. `</s>` alone, and padding, have no other word to be smoothed towards: such labels stay."""
    head = grammar_head().double()
    targets = head.encode(["le le chat", "la maison"])
    hidden = torch.randn(*targets.shape, H, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    hidden.requires_grad_()
    phi = head.output.rows.dense().double()[head.output.class_of]
    scores = (hidden @ head.output.weight.T + head.output.bias) @ phi.T  # shape: (B, T, V)
    may_follow = head.log_probs(hidden, previous=head.previous(targets)).isfinite()
    gain = torch.zeros(targets.shape, dtype=torch.float64)
    for row, position in targets.ne(head.pad).nonzero().tolist():
        classes = head.output.class_of[may_follow[row, position]]
        words = torch.isin(head.output.class_of, classes).nonzero()[:, 0].tolist()
        words = [word for word in words if word not in (head.eos, head.unk)]
        if words:
            score = scores[row, position]
            gain[row, position] = score[words].mean() - score[targets[row, position]]
    plain = head.loss(hidden, targets, reduction="sum")
    smoothed = head.loss(hidden, targets, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(smoothed, plain - 0.1 * gain.sum())
    smoothed.backward()
    assert hidden.grad is not None and hidden.grad.isfinite().all()


class OneWord(ContextClassSource):
    """One word has a score of its own at all places."""

    rows, width = 1, 1

    def __init__(self, word: int) -> None:
        self.word = word

    def start(self, n: int) -> Tensor:
        return torch.zeros(n, dtype=torch.int64)

    def words(self, contexts: Tensor) -> Tensor:
        return torch.full((*contexts.shape, 1), self.word)


class OneRow(ClassSource):
    name, kind = "one_row", OneWord

    def __init__(self, head: Head, word: str) -> None:
        super().__init__()
        self.word = head.prior.index(word)
        self.row = torch.nn.Parameter(torch.zeros(head.hidden_size))

    def bind(self, background: Background, source: Tensor | None) -> Background:
        return ContextClasses(background, OneWord(self.word))

    def rows_at(self, place: Place) -> RowPair:
        shape = (*place.shape, 1)
        return self.row.expand(*shape, -1), self.row.new_zeros(shape)


@pytest.mark.parametrize("prior", [make_prior, open_prior])
@pytest.mark.parametrize("word", ["chat", "<unk>"])
def test_a_class_of_unk_and_an_open_vocabulary_in_its_place_are_refused(prior: Callable[[], Prior], word: str) -> None:
    head, hidden = random_head(prior(), classes=[partial(OneRow, word=word)]), hidden_states()
    if prior is open_prior and word == "<unk>":
        with pytest.raises(OptionError, match="expected classes of OneWord without <unk>, for which the open vocabul"):
            head.loss(hidden, TARGETS)
    else:
        head.loss(hidden, TARGETS)
        total = head.log_probs(hidden, previous=head.previous(TARGETS)).exp().sum(-1)
        torch.testing.assert_close(total, torch.ones(B, T, dtype=torch.float64))


class Unbound(OneRow):
    """Rows for classes that the prior's own background has."""

    def bind(self, background: Background, source: Tensor | None) -> Background:
        return background


def test_classes_of_the_prior_s_own_background_keep_nothing_from_batch_to_batch() -> None:
    head, hidden = random_head(make_prior(), classes=[partial(Unbound, word="chat")]), hidden_states()
    other = StaticBackground(head.output.class_of, head.prior.output.num_classes, torch.arange(12.0).double())
    mixture = Mixture([head.background, other], weighting="learned").double()

    class InFront(Background):
        def bind(self, source: Tensor | None = None, text: Tensor | None = None) -> ContextClasses:
            return ContextClasses(mixture.bind(source, text), OneWord(head.prior.index("chat")))

    head.background = InFront(mixture.class_of, mixture.num_classes)
    learned = list(mixture.parameters())

    def gradients() -> tuple[Tensor, ...]:
        return torch.autograd.grad(head.loss(hidden, TARGETS), learned)

    for one, again in zip(gradients(), gradients(), strict=True):
        assert torch.equal(one, again) and one.any()
    losses = []
    with torch.no_grad():
        for _ in range(2):
            state = head.start(3)
            losses.append((head.loss(hidden, TARGETS), head.top_k(hidden[:, 0], state, 12)[0]))
            learned[0][0] += 1.0
    with torch.no_grad():
        learned[0][0] -= 1.0
        assert torch.equal(losses[1][0], head.loss(hidden, TARGETS)) and losses[0][0] != losses[1][0]
        assert torch.equal(losses[1][1], head.top_k(hidden[:, 0], head.start(3), 12)[0])


SOURCES = ["kaza 77", "kaza kaza"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_log_weights_and_probabilities_stay_exact_in_half_precision(dtype: torch.dtype, tmp_path: Path) -> None:
    """A model in half precision has short parameters, but no short log weights or probabilities of sampling."""
    unsupported = {"numbers": 1e-3}
    text = tmp_path / "text"
    text.write_text("le chat 12 zoé\n" * 3, encoding="utf-8")
    recipe = Recipe(
        text=text, top_words=2, open_vocabulary=OpenOptions(types=1), background="cache(3)",
        evidence=EvidenceOptions(("numbers",), unsupported=unsupported), source_dictionary=[*SPECIALS, "kaza", "12"],
    )  # fmt: skip
    head = LogLinearHead(build_prior(SYMBOLS, recipe), H, source_size=H, normaliser=Sampled(3))
    before = {name: value for name, value in head.named_buffers() if value.is_floating_point()}
    assert len(before) > 3
    head.to(dtype)
    assert head.output.weight.dtype == dtype
    after = dict(head.named_buffers())
    short = {name for name, value in before.items() if not torch.equal(after[name], value)}
    assert not short


def test_wrong_tokens_are_named() -> None:
    recipe = Recipe(top_words=2, evidence=EvidenceOptions(("numbers",)), source_dictionary=[*SPECIALS, "kaza"])
    head = LogLinearHead(build_prior(SYMBOLS, recipe), H, source_size=H)
    source = head.encode_source(SOURCES)
    targets = head.encode(["le chat 77", "le chat"], source)
    hidden, states = torch.randn(*targets.shape, H), torch.randn(*source.shape, H)
    for call, message in (
        (lambda: head.loss(hidden, targets), "contain strings of source sentences, and need `source`"),
        (lambda: head.loss(hidden, targets, source=source - 99, source_states=states), "found -"),
        (lambda: head.encode(["le chat"], source), "sentences"),
        (lambda: head.possible(targets + 999, source), "token ids from"),
    ):
        with pytest.raises(DataError, match=message):
            call()
    known = head.encode(["le chat"])
    assert head.loss(torch.randn(*known.shape, H), known).isfinite(), "without strings, a source may be absent"


def test_a_head_in_training_is_explained() -> None:
    torch.manual_seed(1)
    head = LogLinearHead(make_prior(), H, normaliser=Sampled(3))
    hidden, tokens = torch.randn(1, 3, H), head.encode(["le chat"])
    training = head.train().explain(hidden, tokens[0])
    assert [word.log_prob for word in training] == [word.log_prob for word in head.eval().explain(hidden, tokens[0])]
