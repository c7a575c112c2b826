"""The laws find a background that breaks one, and say which (fairseq_llrnn/testing)."""

import itertools
import math
from collections.abc import Callable, Sequence

import oracles
import pytest
import torch
from torch import Tensor

from fairseq_llrnn.automata.trimming import NO_END
from fairseq_llrnn.backgrounds.algebra import Product, Tempered
from fairseq_llrnn.backgrounds.background import Background, StaticBackground, View
from fairseq_llrnn.backgrounds.class_weights import ClassWeights
from fairseq_llrnn.backgrounds.mixture import Mixture
from fairseq_llrnn.backgrounds.states import JointStates, concatenate, distinct_runs, repeat, select
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.output.context_source import ContextClassSource
from fairseq_llrnn.testing import check_background, check_context_classes

CLASS_OF = torch.tensor([0, 1, 0, 2, 1, 3, 2, 0, 4])


class NoRepetition(Background):
    """A user's own: forbids the last word. A state is the last word, (N, 1)."""

    def start(self, n: int) -> Tensor:
        return self.class_of.new_full((n, 1), 2)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return tokens.unsqueeze(1)

    def log_weights(self, state: Tensor) -> Tensor:
        return torch.zeros(len(state), len(self.class_of)).scatter(1, state, float("-inf"))


def test_three_methods_make_a_background() -> None:
    check_background(NoRepetition(CLASS_OF, 5))


Seen = oracles.SparseHashView
BROKEN: dict[str, tuple[str, Callable[..., object]]] = {
    "weights_at": ("weights_at are", lambda self, tokens, rows=None: self.log_weights[0][tokens]),
    "mass_at": ("mass_at is", lambda self, classes, rows=None: self.class_mass.dense()[:, 0]),
    "classes": ("classes are those", lambda self, tokens, rows=None: tokens * 0),
    "locate": (
        "locate returns an entry of",
        lambda self, tokens, rows=None: (self.class_of[tokens], Seen.locate(self, tokens, rows)[1] - 0.1),
    ),
    "best": (
        "best members are sorted",
        lambda self, classes, k, rows=None: tuple(x.flip(1) for x in Seen.best(self, classes, k, rows)),
    ),
    "only_member": ("only_member names", lambda self, classes: classes),
    "mass_without": (
        "mass_without is the sum",
        lambda self, words, taken: self.class_mass.dense().gather(1, self.class_of[words]),
    ),
    "select": ("a view of some rows", lambda self, rows: Seen.select(self, rows.flip(0))),
}
BROKEN_VALUES: dict[str, tuple[str, Callable[[View], object]]] = {
    "class_mass": ("class_mass is the sum", lambda self: ClassWeights(self.log_weights[:, :5], self.num_rows)),
    "log_shares": ("shares of a class", lambda self: Seen.log_shares.func(self) - 0.1),
    "best_share": ("best_share is that", lambda self: self.best_of_all_words() - 0.1),
}
BROKEN_STATES: dict[str, tuple[str, Callable[..., object]]] = {
    "start": ("start(5) returns 5 states; found 1", lambda self, n: Hash.start(self, 1)),
    "advance": ("advance equals", lambda self, state, tokens: Hash.advance(self, state, tokens).roll(1, 0)),
    "view": (
        "no limit changes a mass",
        lambda self, states, hidden=None, remaining=None: (
            Hash.view(self, states) if remaining is None else oracles.HashBackground(CLASS_OF, 5, 1).view(states)
        ),
    ),
    "steps_to_end": ("steps_to_end are at most `most_steps`", lambda self, states: torch.full((len(states),), 2)),
    "view_of": (
        "values of all positions",
        lambda self, previous, hidden=None: self.view(self.flat_states(previous).flip(0)),
    ),
}
Hash = oracles.SparseHashBackground


def changed(name: str) -> tuple[str, Background]:
    if name in BROKEN_STATES:
        law, method = BROKEN_STATES[name]
        return law, type("Broken", (Hash,), {name: method})(CLASS_OF, 5)
    law, method = (BROKEN | BROKEN_VALUES)[name]
    made: Background = Hash(CLASS_OF, 5)
    made.view_type = type("Broken", (Seen,), {name: property(method) if name in BROKEN_VALUES else method})
    return law, made


@pytest.mark.parametrize("name", [*BROKEN, *BROKEN_VALUES, *BROKEN_STATES])
def test_a_broken_law_is_named(name: str) -> None:
    law, background = changed(name)
    with pytest.raises(AssertionError, match="law broken: ") as caught:
        check_background(background)
    assert law in str(caught.value)


class LastWord(NoRepetition):
    """Changes its state in place."""

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return state.copy_(tokens.unsqueeze(1))


class LastWordOfAll(NoRepetition):
    """Returns the same tensor from every start, and changes it."""

    def start(self, n: int) -> Tensor:
        self.state = super().start(n)
        return self.state

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        self.state[:] = tokens.unsqueeze(1)
        return self.state.clone()


@pytest.mark.parametrize("kind", [LastWord, LastWordOfAll])
def test_states_that_are_changed_in_place(kind: type[NoRepetition]) -> None:
    with pytest.raises(AssertionError, match="law broken: advance returns new states, and does not change the old"):
        check_background(kind(CLASS_OF, 5))


def test_tokens_that_must_have_no_weight() -> None:
    class WithoutSpecials(NoRepetition):
        def log_weights(self, state: Tensor) -> Tensor:
            weights = super().log_weights(state)
            weights[:, :2] = float("-inf")
            return weights

    check_background(WithoutSpecials(CLASS_OF, 5), impossible=(0, 1))
    with pytest.raises(AssertionError, match=r"law broken: impossible tokens have the weight −inf .* found .* \[3\]"):
        check_background(WithoutSpecials(CLASS_OF, 5), impossible=(0, 3))


def test_tables_that_lose_their_precision() -> None:
    class Rounded(NoRepetition):
        def __init__(self) -> None:
            super().__init__(CLASS_OF, 5)
            self.inner = torch.nn.Module()
            self.inner.register_buffer("table", torch.zeros(3, dtype=torch.float64))

    with pytest.raises(AssertionError, match=r"law broken: tables in float64 stay in float64 .*: inner\.table"):
        check_background(Rounded())


def test_gradients_that_are_not_finite() -> None:
    class Explosive(NoRepetition):
        def __init__(self) -> None:
            super().__init__(CLASS_OF, 5)
            self.scale = torch.nn.Parameter(torch.zeros(()))

        def log_weights(self, state: Tensor) -> Tensor:
            return super().log_weights(state) + self.scale.sqrt()

    with pytest.raises(AssertionError, match="law broken: gradients are finite"):
        check_background(Explosive())


@pytest.mark.parametrize("row", range(5))
def test_a_wrong_limited_share_of_the_end_is_found_in_every_row(row: int) -> None:
    class Limited(oracles.SparseHashView):
        def locate(self, tokens: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
            classes, shares = super().locate(tokens, rows)
            wrong = (self._rows(tokens, rows) == row) & tokens.eq(2) & (self.remaining is not None)
            return classes, shares - 0.1 * wrong

    class Whole(oracles.SparseHashBackground):
        view_type = Limited
        most_steps = 3

    with pytest.raises(AssertionError, match="locate returns an entry of log_shares, with a limit, too"):
        check_background(Whole(CLASS_OF, 5))


class Chain(Background):
    """A word three times, then `</s>`. Any other word leads to a state without weight. A state is its number, (N,)."""

    most_steps, has_dead_ends = 4, True

    def start(self, n: int) -> Tensor:
        return self.class_of.new_zeros(n)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        goes_on = (tokens == 5) & (state < 3)
        return torch.where(goes_on, state + 1, 4).masked_fill((tokens == 2) & (state == 3), 0)

    def log_weights(self, state: Tensor) -> Tensor:
        weights = torch.full((len(state), len(self.class_of)), -math.inf, dtype=torch.float64)
        weights[state < 3, 5] = 0.0
        weights[state == 3, 2] = 0.0
        return weights

    def steps_to_end(self, state: Tensor) -> Tensor:
        return torch.where(state == 4, NO_END, 4 - state)


class Endless(Chain):
    has_dead_ends = False


class Boundless(Chain):
    def view(self, states: Tensor, hidden: Tensor | None = None, remaining: int | None = None) -> View:
        return View(self, states)


class Careless(Chain):
    def view(self, states: Tensor, hidden: Tensor | None = None, remaining: int | None = None) -> View:
        class Free(View):
            @property
            def log_shares(self) -> Tensor:
                return View(self.bound, self.states).log_shares

            def locate(self, tokens: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
                return View(self.bound, self.states).locate(tokens, rows)

            def best(self, classes: Tensor, k: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
                return View(self.bound, self.states).best(classes, k, rows)

        return Free(self, states, hidden, remaining)


class InColumns(Chain):
    def steps_to_end(self, state: Tensor) -> Tensor:
        return super().steps_to_end(state).unsqueeze(1)


class Undefined(NoRepetition):
    def log_weights(self, state: Tensor) -> Tensor:
        return super().log_weights(state).index_fill(1, torch.tensor([7]), math.nan)


class WithoutEnd(NoRepetition):
    def log_weights(self, state: Tensor) -> Tensor:
        return super().log_weights(state).index_fill(1, torch.tensor([2]), -math.inf)


class Narrow(NoRepetition):
    def log_weights(self, state: Tensor) -> Tensor:
        return super().log_weights(state)[:, :-1]


class Random(NoRepetition):
    def log_weights(self, state: Tensor) -> Tensor:
        return super().log_weights(state) + torch.rand(len(state), len(self.class_of))


def test_a_background_whose_end_is_far() -> None:
    check_background(Chain(CLASS_OF, 5))
    check_background(Mixture([Chain(CLASS_OF, 5), NoRepetition(CLASS_OF, 5)]))


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (Endless, "no word leads to a state without an end, unless has_dead_ends"),
        (Boundless, "a view keeps a limit of at most `most_steps`, 4; found None"),
        (Careless, "a limit takes the words after which no end is in reach, and no others"),
        (InColumns, "steps_to_end are (N,)"),
        (Undefined, "log_weights are no NaN"),
        (WithoutEnd, "</s> has weight in a state with steps_to_end 1; found −inf in all 20 of them"),
        (Narrow, "answers have N rows or one, and 9 columns"),
        (Random, "two views of a state have the same weights"),
    ],
)
def test_a_wrong_background_breaks_a_law(kind: type[Background], law: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_background(kind(CLASS_OF, 5))
    assert f"law broken: {law}" in str(caught.value)


class NoPairTwice(Background):
    """Forbids a pair of words that came before. A state is all words so far, (N, 1 + t)."""

    def start(self, n: int) -> Tensor:
        return self.class_of.new_full((n, 1), -1)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return torch.cat([state, tokens.unsqueeze(1)], dim=1)

    def flat_states(self, previous: Tensor) -> Tensor:
        rows, length = [], previous.size(1)
        for row in previous:
            rows += [torch.cat([row.new_full((length - t,), -1), row[1 : t + 1]]) for t in range(length)]
        return torch.stack(rows)

    def log_weights(self, state: Tensor) -> Tensor:
        weights = torch.full((len(state), len(self.class_of)), -2.0, dtype=torch.float64)
        for row, words in enumerate(state.tolist()):
            for word, following in itertools.pairwise(words):
                if 0 <= word == words[-1]:
                    weights[row, following] = -torch.inf
        return weights


class Texts:
    """States that are no tensors: the words of each hypothesis."""

    def __init__(self, texts: list[list[int]]) -> None:
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, index: Tensor) -> "Texts":
        return Texts([self.texts[i] for i in index.tolist()])

    def concatenate(self, others: Sequence["Texts"]) -> "Texts":
        return Texts([text for states in (self, *others) for text in states.texts])


class InLists(Background):
    """As NoPairTwice, with the slow default of `flat_states`."""

    def start(self, n: int) -> Texts:
        return Texts([[]] * n)

    def advance(self, state: Texts, tokens: Tensor) -> Texts:
        return Texts([[*text, token] for text, token in zip(state.texts, tokens.tolist(), strict=True)])

    def log_weights(self, state: Texts) -> Tensor:
        width = max(1, *map(len, state.texts))
        padded = torch.tensor([[-1] * (width - len(text)) + text for text in state.texts])
        return NoPairTwice.log_weights(self, padded)  # type: ignore[arg-type]


class Fading(NoPairTwice):
    """Its states are integers at the beginning, and floating-point numbers later."""

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return super().advance(state.long(), tokens).double()

    def log_weights(self, state: Tensor) -> Tensor:
        return super().log_weights(state.long())


GROWING = [NoPairTwice, InLists, Fading]


class Narrowing(NoRepetition):
    """Its states lose a column."""

    def start(self, n: int) -> Tensor:
        return super().start(n).expand(n, 2)

    def log_weights(self, state: Tensor) -> Tensor:
        return super().log_weights(state[:, :1])


def nothing() -> StaticBackground:
    return StaticBackground(CLASS_OF, 5, torch.zeros(9, dtype=torch.float64))


COMBINATIONS: dict[str, Callable[[Background], Background]] = {
    "product": lambda part: Product([part, nothing()]),
    "product behind": lambda part: Product([NoRepetition(CLASS_OF, 5), part]),
    "two that grow": lambda part: Product([part, nothing(), InLists(CLASS_OF, 5)]),
    "mixture": lambda part: Mixture([part, Product([part, nothing()])]),
    "temperature": lambda part: Tempered(part, 0.5),
    "nested": lambda part: Product([NoRepetition(CLASS_OF, 5), Tempered(Mixture([Product([nothing(), part])]), 2.0)]),
}


@pytest.mark.parametrize("name", COMBINATIONS)
@pytest.mark.parametrize("kind", GROWING)
def test_states_that_grow_in_combinations(name: str, kind: type[Background]) -> None:
    combined = COMBINATIONS[name](kind(CLASS_OF, 5))
    check_background(combined)
    bound = combined.bind()
    state = bound.start(2)
    for tokens in ([4, 4], [5, 6], [4, 4]):
        state = select(bound.advance(state, torch.tensor(tokens)), torch.tensor([1, 0]))  # beams change places
    for weights in (bound.view(state).log_weights, bound.view(state, remaining=5).log_shares):
        forbidden = [set(row.isneginf().nonzero().flatten().tolist()) - {4} for row in weights]
        assert forbidden == [{5}, {6}]


@pytest.mark.parametrize("kind", [*GROWING, Narrowing])
def test_selected_repeated_and_concatenated_states(kind: type[Background]) -> None:
    bound = Product([kind(CLASS_OF, 5), nothing()]).bind()
    states = [bound.start(3)]
    for tokens in ([4, 5, 6], [5, 4, 4], [4, 5, 6]):
        states.append(bound.advance(states[-1], torch.tensor(tokens)))
    weights, index = bound.view(states[-1]).log_weights, torch.tensor([2, 0, 2])
    assert torch.equal(bound.view(select(states[-1], index)).log_weights, weights[index])
    assert torch.equal(bound.view(repeat(states[-1], 2)).log_weights, weights.repeat_interleave(2, 0))
    joined = concatenate([states[-1], select(states[-1], index)])
    assert torch.equal(bound.view(joined).log_weights, torch.cat([weights, weights[index]]))


def test_runs_of_equal_states() -> None:
    sentences, rows = torch.tensor([[0], [0], [1], [0]]), torch.arange(4)
    for states, expected in (
        (sentences, [0, 0, 1, 2]),
        (sentences[:, 0], [0, 0, 1, 2]),
        (torch.zeros(4, 0), [0, 0, 0, 0]),
        (JointStates([sentences, torch.zeros(4, 0)]), [0, 0, 1, 2]),
        (JointStates([torch.zeros(4, 1), sentences[rows // 2]]), [0, 0, 0, 0]),
        (Texts([[1], [1]]), [0, 1]),
    ):
        distinct, index = distinct_runs(states)
        assert index.tolist() == expected
        assert len(distinct) == max(expected) + 1


def test_states_of_several_shapes_need_flat_states() -> None:
    for bound in (Narrowing(CLASS_OF, 5).bind(), Product([Narrowing(CLASS_OF, 5), nothing()]).bind()):
        with pytest.raises(ValueError, match=r"states of one shape, found \(N, 1\) and \(N, 2\); pad them in `flat_"):
            bound.flat_states(torch.tensor([[2, 4, 5]]))


class OneWord(ContextClassSource):
    """A class for word 3 in the first sentence, for word 7 in the second one."""

    rows, width, changes = 2, 1, True

    def start(self, n: int) -> Tensor:
        return torch.arange(n)

    def advance(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        return contexts

    def words(self, contexts: Tensor) -> Tensor:
        return torch.tensor([[3], [7]])[contexts]


class Forgetful(OneWord):
    def advance(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        return torch.zeros_like(contexts)

    def per_position(self, previous: Tensor) -> Tensor:
        return torch.arange(len(previous)).unsqueeze(1).expand_as(previous)


class Unchanging(Forgetful):
    changes = False


class Wide(OneWord):
    width = 2


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (Forgetful, "masses of training are those of a search"),
        (Unchanging, "a source that defines advance sets `changes`"),
        (Wide, "words have the shape (N, width), (2, 2); found (2, 1)"),
    ],
)
def test_a_wrong_source_breaks_a_law(kind: type[OneWord], law: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_context_classes(ContextClasses(nothing(), kind()), torch.tensor([[2, 4, 5, 4], [2, 4, 6, 4]]))
    assert f"law broken: {law}" in str(caught.value)


@pytest.mark.parametrize("name", COMBINATIONS)
@pytest.mark.parametrize("kind", GROWING)
def test_context_classes_over_states_that_grow(name: str, kind: type[Background]) -> None:
    below = COMBINATIONS[name](kind(CLASS_OF, 5)).bind()
    check_context_classes(ContextClasses(below, OneWord()), torch.tensor([[2, 4, 5, 4], [2, 4, 6, 4]]))
