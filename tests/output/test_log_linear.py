"""The output layer: by signatures = by the definition = enumeration by hand, in value and gradient."""

import math

import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_masses import sparse_masses
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import Background, StaticBackground
from fairseq_llrnn.backgrounds.class_weights import ClassWeights
from fairseq_llrnn.features.feature_table import FeatureTable, Signatures, group_equal_rows
from fairseq_llrnn.functional import log_linear_nll
from fairseq_llrnn.output import feature_weights
from fairseq_llrnn.output.feature_weights import SparseRows
from fairseq_llrnn.output.normalisers import Distribution, ExactRows, LogLinearOutput, SlotScores, class_log_probs

WIDTH = 5
ROWS = [
    {"TOPFORM:le": 1.0, "Gender:Masc": 1.0},
    {"NOTTOP": 1.0, "Gender:Fem": 1.0},
    {"NOTTOP": 1.0, "Gender:Fem": 1.0},
    {"NOTTOP": 1.0, "Gender:Fem": 1.0, "Shape:SmallNumber": 0.63},
    {"NOTTOP": 1.0, "Gender:Masc": 1.0},
    {"NOTTOP": 1.0, "Gender:Fem": 1.0},
    {},
]
WEIGHTS = [0.3, 0.2, 0.05, 0.0, 0.25, 0.15, 0.05]


def make(dtype: torch.dtype = torch.float64) -> tuple[LogLinearOutput, Background, Signatures]:
    signatures = group_equal_rows(FeatureTable.from_rows(ROWS))
    class_of = torch.from_numpy(signatures.class_of)
    background = StaticBackground(class_of, signatures.num_classes, torch.tensor(WEIGHTS, dtype=torch.float64).log())
    torch.manual_seed(3)
    output = LogLinearOutput(signatures.features, class_of, WIDTH)
    with torch.no_grad():
        output.weight.normal_()
        output.bias.normal_()
    return output.to(dtype), background.to(dtype), signatures


def targets_of(output: LogLinearOutput, background: Background, hidden: Tensor, targets: Tensor) -> Tensor:
    state = background.start(hidden.size(0))
    return targets_in(output, background, state, hidden, targets)


def targets_in(
    output: LogLinearOutput, background: Background, state: Tensor, hidden: Tensor, targets: Tensor
) -> Tensor:
    view = background.view(state)
    classes, share = view.locate(targets)
    return ExactRows(output).log_prob(hidden, classes, view.class_mass, share)


def everything(output: LogLinearOutput, background: Background, hidden: Tensor) -> Tensor:
    state = background.start(hidden.size(0))
    classes = class_log_probs(output.class_scores(hidden), background.view(state).class_mass.dense())
    return background.view(state).expand(classes)


def test_equal_rows_share_a_signature() -> None:
    _, _, signatures = make()
    assert signatures.class_of.tolist() == [0, 1, 1, 2, 3, 1, 4]


def test_equals_enumeration_by_hand() -> None:
    output, background, _ = make()
    table = FeatureTable.from_rows(ROWS)
    hidden = torch.randn(4, WIDTH, dtype=torch.float64)
    indexed = [{table.names.index(n): v for n, v in row.items()} for row in ROWS]
    # the table holds float32 values
    indexed = [{i: float(torch.tensor(v, dtype=torch.float32)) for i, v in row.items()} for row in indexed]
    for h in hidden:
        adaptor = output.adaptor(h).tolist()
        expected = oracles.log_linear_by_hand(adaptor, indexed, WEIGHTS)
        full = everything(output, background, h.unsqueeze(0))[0].exp()
        torch.testing.assert_close(full, torch.tensor(expected, dtype=torch.float64), atol=1e-12, rtol=1e-10)
        for word, p in enumerate(expected):
            one = targets_of(output, background, h.unsqueeze(0), torch.tensor([word]))
            assert one.exp().item() == pytest.approx(p, abs=1e-12)


def test_gradients_equal_those_of_the_definition() -> None:
    targets, positions = torch.tensor([0, 1, 2, 4, 5, 6, 1]), torch.arange(1.0, 8.0, dtype=torch.float64)
    output, background, _ = make()
    hidden = torch.randn(7, WIDTH, dtype=torch.float64, requires_grad=True)
    phi = torch.from_numpy(FeatureTable.from_rows(ROWS).dense()).double()
    weights = background.view(background.start(7)).log_weights
    words = oracles.plain_log_probs(hidden, output.weight, output.bias, phi, weights)
    by_definition = words.gather(1, targets.unsqueeze(1)).squeeze(1)
    leaves = [hidden, output.weight, output.bias]
    gradients = [
        torch.autograd.grad((found * positions).sum(), leaves)
        for found in (targets_of(output, background, hidden, targets), by_definition)
    ]
    for fast, slow in zip(*gradients, strict=True):
        torch.testing.assert_close(fast, slow, atol=1e-12, rtol=1e-9)


def test_gradient_in_the_adaptor_is_expected_minus_observed_features() -> None:
    output, background, signatures = make()
    hidden = torch.randn(1, WIDTH, dtype=torch.float64)
    target = torch.tensor([1])
    (-targets_of(output, background, hidden, target)).sum().backward()
    phi = torch.from_numpy(FeatureTable.from_rows(ROWS).dense()).double()
    p = everything(output, background, hidden)[0].exp()
    expected = p.nan_to_num() @ phi - phi[1]
    # the bias enters the adaptor as it is: its gradient is the adaptor's
    torch.testing.assert_close(output.bias.grad, expected)


@st.composite
def some_corrections(draw: st.DrawFn) -> tuple[ClassWeights, int]:
    """Corrections of up to six rows and five classes, of which the last is forbidden to all."""
    rows, classes = draw(st.integers(1, 6)), 5
    torch.manual_seed(draw(st.integers(0, 2**31)))
    entries = draw(st.lists(st.tuples(st.integers(0, rows - 1), st.integers(0, classes - 2)), max_size=12))
    places = torch.tensor(entries, dtype=torch.long).view(-1, 2)
    shared = torch.randn(1, classes, dtype=torch.float64)
    shared[0, -1] = -math.inf
    only = draw(st.none() | st.lists(st.booleans(), min_size=rows, max_size=rows).map(torch.tensor))
    added, constant = torch.randn(len(entries), dtype=torch.float64), torch.randn(rows, dtype=torch.float64) * 3
    return sparse_masses(shared, places[:, 0], places[:, 1], added, only, constant), rows


@pytest.mark.parametrize("slots", [False, True])
@given(some_corrections(), st.integers(0, 2**31))
@settings(max_examples=60)
def test_corrections_equal_their_dense_form(slots: bool, drawn: tuple[ClassWeights, int], seed: int) -> None:
    """In training and in search, value and gradient; with slots, whose masses know nothing of `constant`."""
    corrections, n = drawn
    output, _, _ = make()
    torch.manual_seed(seed)
    hidden = torch.randn(n, WIDTH, dtype=torch.float64, requires_grad=True)
    log_share = torch.zeros(n, dtype=torch.float64)
    classes, given_slots = output.class_of[torch.randint(0, 7, (n,))], None
    if slots:
        of_slots = torch.randn(n, 2, dtype=torch.float64)
        given_slots = SlotScores(of_slots, torch.randn(n, 2, dtype=torch.float64))
        classes = torch.randint(0, 7, (n,))
    found, expected = (
        ExactRows(output).log_prob(hidden, classes, mass, log_share, given_slots)
        for mass in (corrections, corrections.dense())
    )
    torch.testing.assert_close(found, expected)
    assert not found.isnan().any()
    possible = ~expected.isneginf()
    leaves = [hidden, output.weight, output.bias]
    ours, theirs = (torch.autograd.grad(x[possible].sum(), leaves, allow_unused=True) for x in (found, expected))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)
        assert a is None or torch.isfinite(a).all(), "no NaN, where all is forbidden, either"
    class_weights = corrections, ClassWeights(corrections.dense(), n)
    found, expected = (class_log_probs(output.class_scores(hidden), each) for each in class_weights)
    torch.testing.assert_close(found, expected, equal_nan=True)
    if expected.isnan().any():  # nothing is allowed
        return
    possible = torch.isfinite(expected)
    for a, b in zip(*(torch.autograd.grad(x[possible].sum(), leaves) for x in (found, expected)), strict=True):
        torch.testing.assert_close(a, b)


def test_gradcheck_through_the_composition() -> None:
    output, background, _ = make()
    targets = torch.tensor([0, 2, 6])
    hidden = torch.randn(3, WIDTH, dtype=torch.float64, requires_grad=True)

    def loss(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        parameters = {"weight": weight, "bias": bias}
        mass = background.view(background.start(3)).class_mass.dense()
        share = background.view(background.start(3)).locate(targets)[1]
        rows, c = output.rows.compose(parameters["weight"]), output.rows.compose(bias.unsqueeze(1)).squeeze(1)
        return log_linear_nll(h, output.class_of[targets], rows, mass, share, c)

    assert torch.autograd.gradcheck(
        loss, (hidden, output.weight.detach().requires_grad_(), output.bias.detach().requires_grad_())
    )


@pytest.mark.parametrize("compiling", [False, True], ids=["by columns", "added up"])
def test_the_gradient_of_rows_is_the_transposed_product(compiling: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to add it up; the second one is also a GPU's."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: compiling)
    rows = make()[0].rows
    each = torch.randn(rows.num_rows, WIDTH, dtype=torch.float64)
    torch.testing.assert_close(rows.transposed(each), rows.dense().double().T @ each)
    monkeypatch.setattr(feature_weights, "AT_ONCE", 4 * WIDTH)  # fewer than there are entries
    torch.testing.assert_close(rows.transposed(each), rows.dense().double().T @ each)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("compiling", [False, True], ids=["by columns", "added up"])
def test_gradients_of_many_rows_are_added_up_in_float32(
    dtype: torch.dtype, compiling: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One feature of 20,000 rows: the sum is as exact as its type can say."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: compiling)
    rows = SparseRows(FeatureTable.from_rows([{"Shape:lower": 1.0}] * 20_000))
    each = torch.rand(20_000, 3, generator=torch.Generator().manual_seed(1)).to(dtype)
    found, expected = rows.transposed(each), each.double().sum(0, keepdim=True)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), expected, rtol=max(torch.finfo(dtype).eps, 1e-4), atol=0.0)


def test_a_background_that_depends_on_the_hypothesis() -> None:
    output, _, signatures = make()
    background = oracles.HashBackground(torch.from_numpy(signatures.class_of), signatures.num_classes)
    state = background.advance(background.start(4), torch.tensor([0, 2, 5, 6]))
    hidden = torch.randn(4, WIDTH, dtype=torch.float64)
    phi = torch.from_numpy(FeatureTable.from_rows(ROWS).dense()).double()
    expected = oracles.plain_log_probs(hidden, output.weight, output.bias, phi, background.view(state).log_weights)
    classes = class_log_probs(output.class_scores(hidden), background.view(state).class_mass.dense())
    found = background.view(state).expand(classes)
    torch.testing.assert_close(found.exp(), expected.exp())
    targets = torch.tensor([0, 4, 5, 6])
    one = targets_in(output, background, state, hidden, targets)
    torch.testing.assert_close(one, expected.gather(1, targets.unsqueeze(1)).squeeze(1))
    classes = class_log_probs(output.class_scores(hidden), background.view(state).class_mass.dense())
    values, tokens = Distribution(classes).best_words(background.view(state), 3)
    torch.testing.assert_close(values, expected.topk(3).values)
    torch.testing.assert_close(expected.gather(1, tokens), values)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.integers(1, 9), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_laws_on_random_layers(groups: list[int], k: int, seed: int) -> None:
    """Probabilities sum to one; top-k is exact; p(x) = p(σ) · share."""
    torch.manual_seed(seed)
    rows = [{f"F{g}": 1.0, "all": 0.5} for g in groups]
    signatures = group_equal_rows(FeatureTable.from_rows(rows))
    class_of = torch.from_numpy(signatures.class_of)
    background = StaticBackground(class_of, signatures.num_classes, torch.randn(len(rows)) * 3)
    output = LogLinearOutput(signatures.features, class_of, WIDTH)
    with torch.no_grad():
        output.weight.normal_()
    hidden = torch.randn(3, WIDTH)
    full = everything(output, background, hidden)
    torch.testing.assert_close(full.exp().sum(-1), torch.ones(3))
    state = background.start(3)
    classes = class_log_probs(output.class_scores(hidden), background.view(state).class_mass.dense())
    values, tokens = Distribution(classes).best_words(background.view(state), k)
    k = min(k, len(rows))
    torch.testing.assert_close(values[:, :k], full.topk(k).values)
    torch.testing.assert_close(full.gather(1, tokens[:, :k]), values[:, :k])
    assert torch.isneginf(values[:, k:]).all()
    assert all(len(set(row)) == k for row in tokens[:, :k].tolist()), "no word twice"


def test_smoothing_is_the_expectation_over_what_labels_are_smoothed_towards() -> None:
    """(1 − ε) log p(t) + ε Σ q log p by enumeration, less what the network cannot change; in value and gradient."""
    output, background, _ = make()
    hidden = torch.randn(4, WIDTH, dtype=torch.float64, requires_grad=True)
    targets, eps = torch.tensor([0, 1, 4, 6]), 0.1
    state = background.start(4)
    log_b = background.view(state).log_weights.expand(4, -1)
    q = log_b.softmax(-1)
    log_p = everything(output, background, hidden)
    log_p_target = log_p.gather(1, targets.unsqueeze(1)).squeeze(1)
    smoothed = (1 - eps) * log_p_target + eps * (q * log_p).nan_to_num(neginf=0.0).sum(-1)
    constant = (q * log_b).nan_to_num(neginf=0.0).sum(-1) - log_b.gather(1, targets.unsqueeze(1)).squeeze(1)
    for mass in (background.view(state).class_mass.dense(), background.view(state).class_mass.dense().expand(4, -1)):
        ours = log_p_target + eps * ExactRows(output).smoothing_gain(hidden, output.class_of[targets], mass)
        torch.testing.assert_close(ours + eps * constant, smoothed)
        inputs = [hidden, output.weight, output.bias]
        wanted = torch.autograd.grad(smoothed.sum(), inputs, retain_graph=True)
        for a, b in zip(torch.autograd.grad(ours.sum(), inputs, retain_graph=True), wanted, strict=True):
            torch.testing.assert_close(a, b)


def test_softmax_is_the_special_case_bit_for_bit() -> None:
    words = 11
    signatures = group_equal_rows(FeatureTable.from_rows([{f"TOPFORM:{i:02}": 1.0} for i in range(words)]))
    class_of = torch.from_numpy(signatures.class_of)
    background = StaticBackground(class_of, words, torch.zeros(words))
    output = LogLinearOutput(signatures.features, class_of, WIDTH)
    with torch.no_grad():
        output.bias.normal_()
    hidden = torch.randn(6, WIDTH, requires_grad=True)
    softmax = functional.log_softmax(functional.linear(hidden, output.weight, output.bias), dim=-1)
    ours = everything(output, background, hidden)
    plain_linear = functional.log_softmax(hidden @ output.weight.T + output.bias, dim=-1)
    assert torch.equal(ours, plain_linear)
    torch.testing.assert_close(ours, softmax)
    targets = torch.tensor([0, 3, 10, 3, 5, 5])
    loss = -targets_of(output, background, hidden, targets).sum()
    expected = functional.cross_entropy(functional.linear(hidden, output.weight, output.bias), targets, reduction="sum")
    torch.testing.assert_close(loss, expected)
    found = torch.autograd.grad(loss, [hidden, output.weight, output.bias])
    wanted = torch.autograd.grad(expected, [hidden, output.weight, output.bias])
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_keeps_the_partition_exact(dtype: torch.dtype) -> None:
    output, background, _ = make(dtype=torch.float32)
    hidden = torch.randn(64, WIDTH)
    targets = torch.tensor([0, 1, 4, 6] * 16)
    exact = targets_of(output, background, hidden, targets)
    output.to(dtype)
    found = targets_of(output, background, hidden.to(dtype), targets)
    assert found.dtype == torch.float32
    assert (found - exact).abs().mean() < (0.03 if dtype == torch.bfloat16 else 0.005)
    full = everything(output, background, hidden.to(dtype))
    torch.testing.assert_close(full.exp().sum(-1), torch.ones(64))


@pytest.mark.parametrize("parameters", [torch.float32, torch.bfloat16, torch.float16])
def test_short_hidden_states_with_any_parameters(parameters: torch.dtype) -> None:
    """As with --bf16-products, where only the network's products are short."""
    output, background, _ = make(torch.float32)
    hidden = torch.randn(6, WIDTH)
    targets = torch.tensor([0, 1, 4, 6, 5, 2])
    exact = targets_of(output, background, hidden, targets), output.adaptor_norm(hidden, 1.0)
    output.to(parameters)
    short = hidden.to(torch.float16 if parameters == torch.float16 else torch.bfloat16)
    found = targets_of(output, background, short, targets), output.adaptor_norm(short, 1.0)
    for a, b in zip(found, exact, strict=True):
        assert a.dtype == torch.float32
        torch.testing.assert_close(a, b, atol=0.1, rtol=0.02)


def test_scores_of_any_size_stay_finite() -> None:
    output, background, _ = make(dtype=torch.float32)
    with torch.no_grad():
        output.weight.mul_(1e4)
    hidden = torch.randn(8, WIDTH, requires_grad=True)
    loss = targets_of(output, background, hidden, torch.zeros(8, dtype=torch.long))
    loss.sum().backward()
    assert torch.isfinite(loss).all() and torch.isfinite(hidden.grad).all()


def test_a_forbidden_target_is_minus_infinity_and_others_are_not_touched() -> None:
    output, background, _ = make()
    found = targets_of(output, background, torch.randn(2, WIDTH, dtype=torch.float64), torch.tensor([3, 0]))
    assert torch.isneginf(found[0]) and torch.isfinite(found[1])


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_norm_of_the_adaptor(p: float) -> None:
    output, _, _ = make()
    hidden = torch.randn(4, WIDTH, dtype=torch.float64, requires_grad=True)
    expected = torch.linalg.vector_norm(output.adaptor(hidden), ord=p, dim=-1)
    found = output.adaptor_norm(hidden, p)
    torch.testing.assert_close(found, expected)
    for a, b in zip(
        torch.autograd.grad(found.sum(), [hidden, output.weight, output.bias]),
        torch.autograd.grad(expected.sum(), [hidden, output.weight, output.bias]),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


def test_adaptor_zero_gives_the_background() -> None:
    output, background, _ = make()
    with torch.no_grad():
        output.weight.zero_()
        output.bias.zero_()
    full = everything(output, background, torch.randn(2, WIDTH, dtype=torch.float64))
    expected = torch.tensor(WEIGHTS, dtype=torch.float64).expand(2, -1)
    torch.testing.assert_close(full.exp(), expected / expected.sum(-1, keepdim=True))


def test_the_place_of_a_replaced_signature_is_behind_the_slots() -> None:
    slots = SlotScores(torch.zeros(2, 3), torch.zeros(2, 3), replaced=4)
    assert slots.places(torch.tensor([1, 4, 7]), 7).tolist() == [1, 9, 7]
    assert SlotScores(torch.zeros(2, 3), torch.zeros(2, 3)).places(torch.tensor([1, 4]), 7).tolist() == [1, 4]
