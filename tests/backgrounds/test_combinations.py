"""Products, mixtures and temperatures of every kind of background: the laws, and brute force in value and gradient."""

import copy
import itertools
from collections.abc import Callable, Sequence

import positions
import pytest
import torch
from automata import ngram_like, random_automaton
from background_atoms import ATOMS, CLASS_OF, NUM_CLASSES, SOURCE, grammar, lexical, root
from torch import Tensor

from fairseq_llrnn.backgrounds.algebra import Product, Tempered
from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground
from fairseq_llrnn.backgrounds.background import Background, BoundBackground, StaticBackground
from fairseq_llrnn.backgrounds.by_source import BySource
from fairseq_llrnn.backgrounds.mixture import Mixture, product, tempered
from fairseq_llrnn.backgrounds.several_roots import SeveralRoots
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output.normalisers import Distribution, ExactRows, LogLinearOutput
from fairseq_llrnn.testing import check_background

HISTORY = torch.tensor([[2, 4, 5, 6], [2, 7, 7, 2], [2, 3, 11, 4], [2, 9, 10, 8], [2, 5, 2, 5]])
TARGETS = torch.tensor([[4, 5, 6, 2], [7, 7, 2, 9], [3, 11, 4, 4], [9, 10, 8, 3], [5, 2, 5, 10]])
H = 6

Combine = Callable[[Sequence[Tensor]], Tensor]
KINDS = [name for name in ATOMS if name not in ("uniform", "automaton")]  # like static, folds
PAIRS = [*itertools.combinations(KINDS, 2), ("cache", "cache"), ("uniform", "static"), ("automaton", "folds")]
# Each pair once, in products and mixtures by turns, where every kind meets others.
PRODUCTS, MIXTURES = PAIRS[::2], PAIRS[1::2]


def bound(background: Background) -> BoundBackground:
    """For the sentences, in training."""
    return background.bind(SOURCE, HISTORY)


def slow_log_weights(parts: Sequence[Background], combine: Combine) -> Tensor:
    """log b of every word at every position, from the parts' weights in their own states: (B, T, V)."""
    each = []
    for part in parts:
        own = bound(part)
        steps = [own.view(state).log_weights.expand(len(HISTORY), -1) for state in positions.states(own, HISTORY)]
        each.append(torch.stack(steps, dim=1))
    return combine(each)


def product_of(weights: Sequence[Tensor]) -> Tensor:
    return sum(weights[1:], weights[0])


def mixture_of(logits: Callable[[], Tensor]) -> Combine:
    """logits: of (K,) weights or (B, T, K)."""

    def combine(weights: Sequence[Tensor]) -> Tensor:
        shares = logits().softmax(-1)
        total = sum((shares[..., i, None] * w.exp() for i, w in enumerate(weights)), torch.zeros(()).double())
        return torch.where(total > 0, total.clamp_min(1e-300).log(), float("-inf"))

    return combine


def output_layer() -> LogLinearOutput:
    torch.manual_seed(3)
    rows = [{name: (f + 1) / (c + 1) for f, name in enumerate("abc") if (c + f) % 2 == 0} for c in range(NUM_CLASSES)]
    return LogLinearOutput(FeatureTable.from_rows(rows), CLASS_OF, H).double()


def check(combined: Background, parts: Sequence[Background], combine: Combine, hidden: Tensor | None = None) -> None:
    """Answers, losses and their gradients equal those of the formula."""
    view, expected = bound(combined).view_of(HISTORY, hidden), slow_log_weights(parts, combine).flatten(0, 1)
    weights = view.class_mass.dense()[:, CLASS_OF] + view.log_shares
    torch.testing.assert_close(weights, expected.double(), atol=1e-6, rtol=1e-6)  # a model's are in float32
    rows = torch.arange(HISTORY.numel())
    torch.testing.assert_close(view.weights_at(TARGETS.flatten(), rows), expected[rows, TARGETS.flatten()])
    output, states = output_layer(), torch.randn(HISTORY.numel(), H, dtype=torch.float64, requires_grad=True)
    classes, share = view.locate(TARGETS.flatten())
    found = ExactRows(output).log_prob(states, classes, view.class_mass, share)
    scores = output.class_scores(states)[:, CLASS_OF] + expected
    some = ~scores.isneginf().all(1)
    slow = scores[some].log_softmax(-1).gather(1, TARGETS.view(-1, 1)[some]).squeeze(1)
    torch.testing.assert_close(found[some], slow)
    possible = ~slow.isneginf()
    parameters = [states, *output.parameters(), *(p for p in combined.parameters() if p.requires_grad)]
    fast_gradients = torch.autograd.grad(found[some][possible].sum(), parameters, retain_graph=True, allow_unused=True)
    slow_gradients = torch.autograd.grad(slow[possible].sum(), parameters, allow_unused=True)
    for fast, plain, of in zip(fast_gradients, slow_gradients, parameters, strict=True):
        fast, plain = (torch.zeros_like(of) if g is None else g for g in (fast, plain))
        torch.testing.assert_close(fast, plain)


def check_search(background: Background) -> None:
    """The best words of a search are those of all words."""
    made = background.bind(SOURCE)
    classes = torch.randn(len(SOURCE), NUM_CLASSES, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    with torch.inference_mode():
        for state in positions.states(made, HISTORY):
            for view in (made.view(state), made.view(state, remaining=2)):
                scores = classes + view.class_mass.dense()
                values, tokens = Distribution(scores).best_words(view, 5)
                whole = scores[:, CLASS_OF] + view.log_shares
                torch.testing.assert_close(values, whole.topk(5).values)
                torch.testing.assert_close(whole.gather(1, tokens)[~values.isneginf()], values[~values.isneginf()])


@pytest.mark.parametrize(("one", "other"), PRODUCTS)
def test_a_product_is_the_product(one: str, other: str) -> None:
    parts = [ATOMS[one](), ATOMS[other]()]
    check(Product(parts), parts, product_of)
    check_search(Product(parts))
    check_background(Product(parts), source=SOURCE)


@pytest.mark.parametrize(("one", "other"), MIXTURES)
def test_a_mixture_is_the_mixture(one: str, other: str) -> None:
    parts = [ATOMS[one](), ATOMS[other]()]
    mixed = Mixture(parts, [1, 3], "learned").double()
    check(mixed, parts, mixture_of(lambda: mixed.weight_logits))
    check_search(mixed)
    check_background(mixed, source=SOURCE)


@pytest.mark.parametrize("seed", range(3))
def test_a_mixture_of_several_roots(seed: int) -> None:
    """Static weights that put words in different orders, under automata that change some."""
    other = AutomatonBackground(torch.arange(12) % 3, 3, root(seed), random_automaton(seed)[0])
    third = StaticBackground(other.class_of, 3, torch.where(root().isneginf(), root(), -root(seed + 20)))
    ngram = AutomatonBackground(other.class_of, 3, root(seed + 10), ngram_like(seed, 12)[0])
    mixed = Mixture([other, third, ngram], [2, 1, 1], "learned")
    assert mixed.root is None and mixed.roots is not None
    check_background(mixed, seed=seed)
    check_background(mixed.float(), seed=seed)


def test_few_words_are_the_best_of_several_roots() -> None:
    class_of = torch.arange(2000) % 20
    roots = torch.randn(2, 2000, generator=torch.Generator().manual_seed(1))
    found = SeveralRoots(class_of, 20, roots)
    assert len(found.front) < 700
    parts = [StaticBackground(class_of, 20, each) for each in roots]
    for weight in (0.01, 0.3, 0.9):
        mixed = Mixture(parts, [weight, 1 - weight]).bind()
        view = mixed.view(mixed.start(1))
        torch.testing.assert_close(view.best_share, view.best_of_all_words())


@pytest.mark.parametrize("one", ATOMS)
def test_a_tempered_background_is_the_root_of_its_weights(one: str) -> None:
    parts = [ATOMS[one]()]
    check(Tempered(parts[0], 1.7), parts, lambda weights: weights[0] / 1.7)
    check_search(Tempered(parts[0], 1.7))
    check_background(Tempered(parts[0], 1.7), source=SOURCE)


@pytest.mark.parametrize(("one", "other"), [("ngram", "cache"), ("grammar", "ngram"), ("slow", "model")])
def test_the_network_may_choose_the_weights(one: str, other: str) -> None:
    parts = [ATOMS[one](), ATOMS[other]()]
    mixed = Mixture(parts, [1, 3], "network")
    mixed.gates(H)
    mixed.double()
    # at the beginning the hidden state says nothing
    torch.testing.assert_close(mixed.gate.bias.softmax(-1), torch.tensor([0.25, 0.75]).double())
    hidden = torch.randn(HISTORY.numel(), H, dtype=torch.float64)
    even = mixed.bind()
    state = even.start(5)
    chosen_mass = even.view(state, hidden[:5]).class_mass.dense()
    torch.testing.assert_close(even.view(state).class_mass.dense(), chosen_mass)
    torch.nn.init.normal_(mixed.gate.weight)
    chosen = mixture_of(lambda: mixed.gate(hidden).view(*HISTORY.shape, 2))
    check(mixed, parts, chosen, hidden)
    # in a mixture of mixtures, too, and where others are around it
    check(Product([mixed, ATOMS["static"]()]), parts, lambda w: chosen(w) + root(), hidden)
    check_background(mixed, source=SOURCE, hidden=hidden)


def test_combinations_of_combinations() -> None:
    atoms = {name: make() for name, make in ATOMS.items()}
    statistics = Mixture([atoms["ngram"], Tempered(atoms["cache"], 1.0), atoms["lexical"]], [2, 1, 1], "learned")
    statistics.double()
    whole = Product([grammar(1), statistics, Tempered(atoms["model"], 2.0)])
    parts = [grammar(1), atoms["ngram"], atoms["cache"], atoms["lexical"], atoms["model"]]

    mixed = mixture_of(lambda: statistics.weight_logits)
    check(whole, parts, lambda w: w[0] + mixed(w[1:4]) + w[4] / 2.0)
    check_search(whole)
    check_background(whole, source=SOURCE)
    assert whole.root is not None and whole.is_exhaustive and statistics.root is not None
    assert {id(p) for p in whole.parameters()} >= {id(p) for p in atoms["lexical"].parameters()}


# ---- what holds for all ---------------------------------------------------------------------------------------------


def same_background(one: Background, other: Background, constant: float = 0.0, without: int = -1) -> None:
    """Equal weights up to a constant, after words that are not `forbid`."""
    one, other, history = bound(one), bound(other), HISTORY.masked_fill(HISTORY.eq(without), 4)
    for mine, theirs in zip(positions.states(one, history), positions.states(other, history), strict=True):
        expected = other.view(theirs).class_mass.dense().expand(5, -1) + constant
        torch.testing.assert_close(one.view(mine).class_mass.dense().expand(5, -1), expected)
        found = one.view(mine).log_shares.expand(5, -1)
        torch.testing.assert_close(found, other.view(theirs).log_shares.expand(5, -1), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", ATOMS)
def test_identities(name: str) -> None:
    atom = ATOMS[name]()
    uniform = StaticBackground(CLASS_OF, NUM_CLASSES, torch.full_like(root(), -3.0))
    same_background(Product([atom]), atom)
    same_background(Product([atom, uniform]), atom, -3.0)
    same_background(Product([uniform, atom]), atom, -3.0)
    same_background(Mixture([atom]), atom)
    same_background(Mixture([atom, atom, atom], [1, 2, 3]), atom)
    same_background(Tempered(atom, 1.0), atom)
    same_background(Tempered(Tempered(atom, 2.0), 0.5), atom)
    same_background(Product([atom, atom]), Tempered(atom, 0.5))


@pytest.mark.parametrize("name", ["grammar", "automaton", "ngram", "folds", "static"])
def test_static_weights_and_temperatures_leave_an_atom_an_atom(name: str) -> None:
    weights = torch.linspace(-3, 0, len(CLASS_OF)).double()
    weights[11] = float("-inf")
    static = StaticBackground(CLASS_OF, NUM_CLASSES, weights)
    for made, slow in (
        (product([ATOMS[name](), static]), Product([ATOMS[name](), static])),
        (product([static, static, ATOMS[name]()]), Product([ATOMS[name](), static, static])),
        (tempered(ATOMS[name](), 1.7), Tempered(ATOMS[name](), 1.7)),
    ):
        assert type(made) is type(ATOMS[name]())
        same_background(made, slow)
        check_background(made)


@pytest.mark.parametrize("name", ["grammar", "automaton", "ngram", "folds"])
def test_where_a_forbidden_word_leads(name: str) -> None:
    """Where it leads without the factor that forbids it: another part of a mixture, or a slot, may give it."""
    weights = torch.linspace(-1.0, 1.0, len(CLASS_OF), dtype=torch.float64)
    weights[[5, 7, 9]] = float("-inf")  # HISTORY has them
    parts = [ATOMS[name](), StaticBackground(CLASS_OF, NUM_CLASSES, weights)]
    made = product(parts)
    assert isinstance(made, AutomatonBackground)
    check(made, parts, product_of)
    check_search(made)
    check_background(made)
    uniform, both = ATOMS["uniform"](), mixture_of(lambda: torch.zeros(2, dtype=torch.float64))
    check(Mixture([made, uniform]), [Product(parts), uniform], both)
    hot, state = tempered(made, 2.0).bind(), made.bind().start(2)
    torch.testing.assert_close(hot.view(state).log_weights, made.bind().view(state).log_weights / 2.0)


def test_what_is_no_atom_stays_a_combination() -> None:
    cache, static = ATOMS["cache"](), ATOMS["static"]()
    assert isinstance(product([cache, static]), Product) and isinstance(tempered(cache, 2.0), Tempered)
    assert product([cache]) is cache and tempered(cache, 1.0) is cache
    several = product([static, cache, static, ATOMS["lexical"]()])
    assert isinstance(several, Product) and len(several.parts) == 3
    with_grammar = product([static, cache, grammar()])
    assert isinstance(with_grammar, Product) and len(with_grammar.parts) == 2
    learned = Mixture([ATOMS["ngram"](), cache], [3, 1], "learned")
    spread = product([static, Product([learned, static])])
    assert isinstance(spread, Mixture) and spread.weighting == "learned" and spread.root is not None
    assert isinstance(spread.parts[0], AutomatonBackground)
    torch.testing.assert_close(spread.weight_logits, learned.weight_logits)
    same_background(spread, Product([learned, static, static]))
    same_background(several, Product([cache, ATOMS["lexical"](), static, static]))
    same_background(with_grammar, Product([static, cache, grammar()]))


def test_a_source_may_bring_a_context_into_a_part() -> None:
    """And what is made of the part then advances as well."""
    static = ATOMS["static"]()
    made = BySource(static, lambda base, source: ATOMS["cache"]().bind())
    others = Product([made, static]), Mixture([made, static], [1, 2], "fixed"), Tempered(made, 2.0)
    for background in (made, *others):
        assert background.bind().is_context_independent and not bound(background).is_context_independent
        check_background(background, source=SOURCE)


@pytest.mark.parametrize(("one", "other"), PAIRS[::3])
def test_parts_commute(one: str, other: str) -> None:
    parts = [ATOMS[one](), ATOMS[other]()]
    same_background(Product(parts), Product(parts[::-1]))
    same_background(Mixture(parts, [1, 2]), Mixture(parts[::-1], [2, 1]))


# ---- as modules -----------------------------------------------------------------------------------------------------


def test_a_warm_up_reaches_the_parts() -> None:
    table = lexical()
    whole = Product([grammar(), Mixture([ATOMS["ngram"](), table])])
    assert any(module is table for module in whole.modules())


def test_half_precision_and_copies() -> None:
    whole = Product([grammar(), Mixture([ATOMS["ngram"](), ATOMS["cache"]()], [1, 2], "network")])
    whole.gates(H)
    made = copy.deepcopy(whole).float().half()
    assert made.root is not None and made.root.word_log_weight.dtype == torch.float64
    hidden = torch.randn(HISTORY.numel(), H)
    found = positions.log_mass(made.bind(), HISTORY, hidden.half())
    assert found.dtype == torch.float64
    expected = positions.log_mass(whole.bind(), HISTORY, hidden.double())
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=2e-3)


def test_states_of_any_shape_and_type() -> None:
    class Counting(StaticBackground):
        """A state is how often each of two words came, as floating-point numbers (N, 2, 1)."""

        def start(self, n: int) -> Tensor:
            return torch.zeros(n, 2, 1, dtype=torch.float32)

        def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
            return state + 0.1 * torch.stack([tokens == 4, tokens == 5], 1).unsqueeze(2)

    counting = Counting(CLASS_OF, NUM_CLASSES, root())
    whole = Product([counting, ATOMS["cache"](), ATOMS["model"]()]).bind()
    state = whole.advance(whole.start(2), torch.tensor([4, 5]))
    (_, own), (_, of_cache), (_, of_model) = whole.of_parts(state)
    assert torch.equal(own, counting.advance(counting.start(2), torch.tensor([4, 5])))
    assert of_cache.shape == (2, 3) and of_model.tolist() == [[2, 4], [2, 5]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Product([]), "Product: expected at least one background, found none"),
        (lambda: Product([ATOMS["static"](), StaticBackground(CLASS_OF[:5], NUM_CLASSES, torch.zeros(5))]),
         "Product: expected backgrounds over the same 12 words in 8 signatures, found one over 5 in 8"),
        (lambda: Mixture([ATOMS["static"]()], [1, 2]), "weights: expected 1 numbers above 0"),
        (lambda: Mixture([ATOMS["static"]()], [0.0]), "weights: expected 1 numbers above 0"),
        (lambda: Mixture([ATOMS["static"]()], weighting="some"), "weighting: expected one of fixed, learned, network"),
        (lambda: Tempered(ATOMS["static"](), 0.0), "temperature 0.0: expected a temperature from 0.01 to 100"),
        (lambda: Mixture([ATOMS["static"]()], weighting="network").bind().log_part_weights(torch.zeros(20, H)),
         r"hidden states need a gate; call `gates\(hidden_size\)`"),
    ],
)  # fmt: skip
def test_what_cannot_be_combined(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
