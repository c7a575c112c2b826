"""Expert features: equal to their definition, word by word, over every background; search equals training."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import positions
import pytest
import torch
from automata import ngram_like
from dynamic_prior import AfterLastWord
from few_words import (
    CLASS_OF,
    EOS,
    NUM_CLASSES,
    PAD,
    PRIOR,
    SENTENCES,
    TARGET_WORDS,
    UNK,
    base,
    encode,
    new_table,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from thinned_grids import one_in
from torch import Tensor

from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground
from fairseq_llrnn.backgrounds.background import Background, BoundBackground
from fairseq_llrnn.backgrounds.states import repeat, select
from fairseq_llrnn.evidence.slots import EvidenceMixture
from fairseq_llrnn.evidence.translation_slots import EvidenceBackground
from fairseq_llrnn.head.head import row_scores_at
from fairseq_llrnn.output.class_source import Place
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.output.normalisers import Distribution, ExactRows, LogLinearOutput, SlotScores, class_log_probs
from fairseq_llrnn.output.records import Rows
from fairseq_llrnn.systems.experts.expert import Expert, Firing
from fairseq_llrnn.systems.experts.features import ExpertFeatures
from fairseq_llrnn.systems.experts.panel import Contexts, Panel

KINDS = ["static", "lexical", "dynamic", "n-grams", "evidence", "evidence over lexical", "evidence over n-grams"]
WIDTH = 3
TABLE = new_table()


class Answers(Expert):
    """Fires on what is no number, and on one number that depends on the source."""

    def fires(self, source: Sequence[str], prefix: Sequence[str]) -> Firing:
        assert not prefix
        answer = {"two": "12", "12": "99"}.get(source[0]) if source else "7"
        return Firing(1.0, {"POS:Num": -1.0}, {answer: 1.0}) if answer else Firing()


class Unsaid(Expert):
    """Looks at what was said: several exceptions, more of them later, some of them slots or in no dictionary."""

    looks_at_prefix = True

    def fires(self, source: Sequence[str], prefix: Sequence[str]) -> Firing:
        words = ["deux", "chien", "Zoé", "Ann", "12", "</s>", "Nobody"][: 2 * len(prefix)]
        values = {word: 0.5 + i - 0.1 * len(source) for i, word in enumerate(words)}
        return Firing(groups={"POS:N": 0.7, "NOTTOP": -0.2 * len(prefix)}, exceptions=values)


@dataclass
class Case:
    """An output layer with experts over a batch of five sentences."""

    output: LogLinearOutput
    experts: ExpertFeatures
    bound: ContextClasses
    contexts: Contexts
    below: BoundBackground
    word_of: dict[int, str]
    hidden: Tensor  # (5, T, H)
    previous: Tensor  # (5, T)
    lambdas: list[Tensor]  # what the background learns

    @property
    def leaves(self) -> tuple[Tensor, ...]:
        return (self.hidden, *self.output.parameters(), *self.experts.parameters(), *self.lambdas)


def make(kind: str, experts: Sequence[Expert], time: int = 3, seed: int = 0) -> Case:
    generator = torch.Generator().manual_seed(seed)
    table = new_table()
    if "n-grams" in kind:
        automaton, root = ngram_like(seed, len(TARGET_WORDS))
        inner: Background = AutomatonBackground(CLASS_OF, NUM_CLASSES, torch.from_numpy(root), automaton)
    else:
        inner = base("lexical" if "lexical" in kind else "static" if kind == "evidence" else kind, seed)
    background: Background = inner
    if "evidence" in kind:
        background = EvidenceBackground(inner, table, UNK, UNK)
    source = encode(table)
    ids = {word: i for i, word in enumerate(TARGET_WORDS)}
    panel = Panel(
        experts,
        PRIOR,  # type: ignore[arg-type]
        lambda token: table.target.symbols[token],
        table.target.index if "evidence" in kind else ids.get,
        lambda token: table.source.symbols[token],
        eos=EOS,
        pad=PAD,
        ignored=frozenset((PAD, EOS)),
    )
    output = LogLinearOutput(PRIOR.output.features, CLASS_OF, WIDTH).double()
    features = ExpertFeatures(panel, PRIOR.output.features, WIDTH).double()
    for parameter in (*output.parameters(), *features.parameters()):
        torch.nn.init.normal_(parameter, generator=generator)
    read = source if "evidence" in kind else source.masked_fill(source >= 10, UNK)
    below = background.bind(read)
    words = [*range(4, len(TARGET_WORDS) - 1), EOS]
    choice = torch.randint(len(words), (5, time), generator=generator)
    previous = torch.tensor(words)[choice]
    previous[:, 0] = EOS
    hidden = torch.randn(5, time, WIDTH, generator=generator, dtype=torch.float64, requires_grad=True)
    names = dict(enumerate(table.target.symbols))
    bound = features.bind(below, source)
    assert isinstance(bound.source, Contexts)
    return Case(output, features, bound, bound.source, below, names, hidden, previous, list(inner.parameters()))


def widened(case: Case) -> tuple[Tensor, Place]:
    """The wide hidden states, and all positions with the rows of signatures and slots, as a head makes them."""
    view = case.bound.view_of(case.previous)
    weight = torch.cat([case.output.weight, case.experts.columns(case.output.weight)], dim=1)
    exact, below = ExactRows(case.output, case.output.composed(weight=weight)), []
    if isinstance(case.below, EvidenceMixture):
        slots = case.below.slots
        bias = slots.compose(case.output.bias.unsqueeze(1)).squeeze(2)
        below = [(slots.compose(weight).unsqueeze(1), bias.unsqueeze(1))]
    rows = Rows(exact, {}, weight.size(1), lambda: rows)
    place = Place(view, case.previous.shape, rows, below)
    return case.experts.widen(case.hidden, place), place


def class_scores(case: Case) -> Tensor:
    """Scores of all classes at every position: (5, T, S + J₁ + J)."""
    wide, place = widened(case)
    beside = [row_scores_at(wide, *rows) for rows in (*place.below, case.experts.rows_at(place))]
    return torch.cat([case.output.class_scores(wide, place.rows.normalised.composed), *beside], dim=2)


def by_the_definition(case: Case, experts: Sequence[Expert], strings: Sequence[str]) -> Tensor:
    """log p(string) at every position by enumeration: log b + aᵀφ + Σ_e a_e v_e, string by string, normalised."""
    features = PRIOR.output.features
    dense = torch.from_numpy(features.dense()).double()
    answers = []
    states = positions.states(case.below, case.previous)
    for t, state in enumerate(states):
        log_b = case.below.view(state).log_weights.expand(5, -1)
        for i in range(5):
            source = tuple(w for w in SENTENCES[i].split() if w != "</s>")
            if not isinstance(case.below, EvidenceMixture):
                source = tuple(w if w in PRIOR.source_symbols else w for w in source)
            prefix: list[str] = []
            for token in case.previous[i, 1 : t + 1].tolist():
                prefix = [] if token == EOS else [*prefix, case.word_of[token]]
            hidden = case.hidden[i, t]
            adaptor = case.output.weight @ hidden + case.output.bias
            gates = case.experts.weight @ hidden + case.experts.bias
            scores: dict[str, Tensor] = {}
            for string, weight, phi in words_of(case, i, state, log_b[i], dense):
                value = weight + phi @ adaptor
                for e, expert in enumerate(experts):
                    firing = expert.fires(source, tuple(prefix) if expert.looks_at_prefix else ())
                    if string in firing.exceptions:
                        says = torch.tensor(firing.exceptions[string], dtype=torch.float64)
                    else:
                        says = firing.everywhere + sum(
                            (v * phi[features.index[g]] for g, v in firing.groups.items()), torch.tensor(0.0)
                        )
                    value = value + gates[e] * says
                scores[string] = value
            total = torch.stack(list(scores.values())).logsumexp(0)
            none = torch.tensor(-math.inf, dtype=torch.float64)
            answers.append(torch.stack([scores[s] - total if s in scores else none for s in strings]))
    return torch.stack(answers).view(len(states), 5, len(strings)).transpose(0, 1)


def words_of(case: Case, i: int, state: Tensor, log_b: Tensor, dense: Tensor) -> list[tuple[str, Tensor, Tensor]]:
    """String, log b and φ of all that sentence i can say."""
    found = []
    slots: dict[int, Tensor] = {}
    if isinstance(case.below, EvidenceMixture):
        pick = torch.eye(dense.size(1), dtype=torch.float64)
        phis = case.below.slots.compose(pick)[i]
        slots = {w: phis[j] for j, w in enumerate(case.below.slots.words[i].tolist()) if w >= 0}
        for j, token in enumerate(case.below.slots.words[i].tolist()):
            if token >= len(TARGET_WORDS):
                found.append((case.word_of[token], log_b[len(TARGET_WORDS) + j], slots[token]))
    for token, word in enumerate(TARGET_WORDS):
        found.append((word, log_b[token], slots.get(token, dense[CLASS_OF[token]])))
    return found


@pytest.mark.parametrize(
    ("kind", "experts"), one_in(2, KINDS, [(Answers(), Unsaid()), (Answers(),), (Unsaid(),)])
)
def test_the_loss_is_the_definition_in_value_and_gradient(kind: str, experts: tuple[Expert, ...]) -> None:
    case = make(kind, experts)
    targets = case.previous.roll(-1, 1)
    targets[:, -1] = torch.tensor([TARGET_WORDS.index(w) for w in ("12", "Ann", "chien", "99", "deux")])
    wide, place = widened(case)
    scores = class_scores(case)[..., NUM_CLASSES:]
    mass = positions.log_mass(case.bound, case.previous).expand(*targets.shape, -1).flatten(0, 1)
    slots, classes = None, positions.classes(case.bound, targets).flatten()
    if mass.size(1) > NUM_CLASSES:
        slots = SlotScores(scores.flatten(0, 1), mass[:, NUM_CLASSES:])
    share = positions.log_share(case.bound, case.previous, targets).flatten()
    exact = place.rows.normalised
    fast = exact.log_prob(wide.flatten(0, 1), classes, mass[:, :NUM_CLASSES], share, slots).view_as(targets)
    strings = [case.word_of[token] for token in range(len(case.word_of))]
    slow = by_the_definition(case, experts, strings).gather(2, targets.unsqueeze(2)).squeeze(2)
    torch.testing.assert_close(fast, slow, rtol=1e-6, atol=1e-6)
    leaves = case.leaves
    weights = torch.linspace(0.5, 1.5, targets.numel(), dtype=torch.float64).view_as(targets)
    found = torch.autograd.grad((fast * weights).sum(), leaves, allow_unused=True, retain_graph=True)
    expected = torch.autograd.grad((slow * weights).sum(), leaves, allow_unused=True)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_search_equals_training_and_finds_the_best(kind: str, seed: int) -> None:
    experts = (Answers(), Unsaid())
    case = make(kind, experts, seed=seed)
    with torch.no_grad():
        scores = class_scores(case)
        mass = positions.log_mass(case.bound, case.previous)
        classes = class_log_probs(scores, mass)
        along = positions.word_log_probs(case.bound, classes, case.previous)
        torch.testing.assert_close(along.exp().sum(2), torch.ones(along.shape[:2], dtype=torch.float64))
        targets = case.previous.roll(-1, 1)
        share = positions.log_share(case.bound, case.previous, targets)
        state = case.bound.start(5)
        for t in range(case.previous.size(1)):
            state = state if t == 0 else case.bound.advance(state, case.previous[:, t])
            view = case.bound.view(state)
            torch.testing.assert_close(view.class_mass.dense(), mass[:, t])
            torch.testing.assert_close(view.locate(targets[:, t])[1], share[:, t])
            assert torch.equal(view.classes(targets[:, t]), positions.classes(case.bound, targets)[:, t])
            order = torch.tensor([3, 3, 0, 4, 1])
            torch.testing.assert_close(case.bound.view(select(state, order)).class_mass.dense(), mass[order, t])
            words = view.expand(classes[:, t])
            torch.testing.assert_close(words, along[:, t])
            values, tokens = Distribution(classes[:, t]).best_words(view, 4)
            torch.testing.assert_close(values, words.topk(4, dim=1).values)
            each, found = repeat(state, 4), tokens.flatten()
            of_class = classes[:, t].gather(1, case.bound.view(each).classes(found).view(5, 4))
            torch.testing.assert_close(of_class + case.bound.view(each).locate(found)[1].view(5, 4), values)


@pytest.mark.parametrize("kind", KINDS)
def test_masses_are_sums_of_weights_and_shares_sum_to_one(kind: str) -> None:
    case = make(kind, (Answers(), Unsaid()), time=4)
    with torch.no_grad():
        for state in positions.states(case.bound, case.previous):
            view = case.bound.view(state)
            weights = view.log_weights.expand(5, -1)
            mass, shares = view.class_mass.dense(), view.log_shares
            columns = torch.arange(weights.size(1)).expand(5, -1)
            if isinstance(case.below, EvidenceMixture):
                columns = case.below.view(case.bound.below(state)).columns
            classes = torch.stack([view.classes(columns[:, c]) for c in range(columns.size(1))], dim=1)
            alive = ~weights.isneginf()
            sums = torch.zeros_like(mass).scatter_add(1, classes.masked_fill(~alive, 0), weights.exp())
            torch.testing.assert_close(mass.exp(), sums, rtol=1e-5, atol=1e-8)
            own = shares.exp().masked_fill(~alive, 0.0)
            ones = torch.zeros_like(mass).scatter_add(1, classes.masked_fill(~alive, 0), own)
            torch.testing.assert_close(ones, (~mass.isneginf()).double(), rtol=1e-5, atol=1e-8)


def test_experts_without_exceptions_leave_corrections_as_they_are() -> None:
    class Groups(Expert):
        looks_at_prefix = True

        def fires(self, source: Sequence[str], prefix: Sequence[str]) -> Firing:
            return Firing(groups={"POS:N": float(len(prefix))})

    case = make("n-grams", (Groups(),))
    states = case.bound.flat_states(case.previous)
    assert case.bound.num_classes == NUM_CLASSES
    class_weights = case.bound.view(states).class_mass
    assert class_weights.entries is not None
    torch.testing.assert_close(class_weights.dense(), case.bound.view(states).class_mass.dense())
    with_exceptions = make("n-grams", (Unsaid(),))
    states = with_exceptions.bound.flat_states(with_exceptions.previous)
    assert with_exceptions.bound.view(states).class_mass.entries is None


def test_masses_know_no_limit_of_length_and_shares_do() -> None:
    class Limited(AfterLastWord):
        """No end follows words from 5 on."""

        most_steps = 3

        def steps_to_end(self, states: Tensor) -> Tensor:
            return 1 + (states >= 5).long().view(-1)

    case = make("dynamic", (Answers(),))
    assert isinstance(case.below, AfterLastWord)
    bound = case.experts.bind(Limited(CLASS_OF, NUM_CLASSES, case.below.table, EOS), encode(TABLE))
    state = bound.start(5)  # 12 is the exception of the first sentence, 99 of the fourth; both are out of reach
    limited, whole, word = bound.view(state, remaining=2), bound.view(state), torch.tensor([5] * 5)
    torch.testing.assert_close(limited.class_mass.dense(), whole.class_mass.dense())
    assert torch.equal(limited.classes(word), whole.classes(word))
    shares, free = limited.log_shares, whole.log_shares
    assert shares[:, 5:].isneginf().all()
    torch.testing.assert_close(shares[:, :5], free[:, :5])
    assert limited.locate(word)[1].isneginf().all()
    classes = torch.zeros(5, bound.num_classes, dtype=torch.float64).log_softmax(1)
    assert limited.expand(classes)[:, 5:].isneginf().all()
    assert limited.best_share[:, NUM_CLASSES:].isneginf().all()
