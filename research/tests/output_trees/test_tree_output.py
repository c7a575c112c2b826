"""The output over a tree: p by its definition, in value and gradient, over random trees and backgrounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_trees import H, TreeCase, corrections_of
from sparse_masses import sparse_masses
from thinned_grids import one_in
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.output.normalisers import ExactRows, SlotScores
from llrnn_research.output_trees.composed_rows import compose_once
from llrnn_research.output_trees.tree import Tree
from llrnn_research.output_trees.tree_layer import TreeLayer
from llrnn_research.output_trees.tree_log_linear import TreeOutput
from llrnn_research.output_trees.tree_scores import VisitProbabilities
from llrnn_research.output_trees.tree_visits import paths_of

SEEDS = range(20)


def gradients(value: Tensor, of: list[Tensor], weights: Tensor) -> list[Tensor]:
    """Of a weighted sum of the finite values."""
    total = (value.masked_fill(value.isinf(), 0.0) * weights).sum()
    found = torch.autograd.grad(total, of, allow_unused=True, retain_graph=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, of, strict=True)]


def same(found: Tensor, expected: Tensor, of: list[Tensor]) -> None:
    """Equal in value and gradient; what is −inf has no gradient."""
    torch.testing.assert_close(found, expected)
    weights = torch.linspace(0.5, 1.5, found.numel(), dtype=found.dtype).view_as(found)
    for mine, theirs in zip(gradients(found, of, weights), gradients(expected, of, weights), strict=True):
        assert mine.isfinite().all()
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize(("seed", "rows"), one_in(3, SEEDS, ["free", "composed"]))
def test_is_the_product_of_choices_along_the_path(seed: int, rows: str) -> None:
    case = TreeCase.of(seed, rows)
    for groups in (1, 7):
        log_mass = case.class_weights(groups).requires_grad_()
        found, classes = case.made(bool(seed % 2)), case.classes()
        expected = case.expected(log_mass)
        of = [*case.parameters(), log_mass]
        same(found.class_log_prob(case.hidden, classes, log_mass), expected.gather(1, classes[:, None])[:, 0], of)
        same(found.class_log_probs(case.hidden, log_mass), expected, of)


@pytest.mark.parametrize("seed", SEEDS)
def test_slots_are_children_of_the_root(seed: int) -> None:
    case = TreeCase.of(seed)
    log_mass, classes = case.class_weights(7).requires_grad_(), case.classes(3)
    scores = torch.from_numpy(case.rng.standard_normal((7, 3))).requires_grad_()
    of_slots = torch.from_numpy(case.rng.standard_normal((7, 3)))
    of_slots[case.rng.random((7, 3)) < 0.3] = float("-inf")
    of_slots[0] = float("-inf")
    of_slots.requires_grad_()
    slots = SlotScores(scores, of_slots)
    found, of = case.made(bool(seed % 2)), [*case.parameters(), log_mass, scores, of_slots]
    expected = case.expected(log_mass, scores + of_slots)
    same(found.class_log_prob(case.hidden, classes, log_mass, slots), expected.gather(1, classes[:, None])[:, 0], of)
    same(found.class_log_probs(case.hidden, log_mass, slots), expected, of)


@pytest.mark.parametrize("seed", SEEDS)
def test_untrained_it_is_the_background(seed: int) -> None:
    case = TreeCase.of(seed)
    for parameter in (*case.output.parameters(), *case.layer.parameters()):
        parameter.data.zero_()
    class_weights, classes = case.class_weights(7), case.classes()
    found = case.made(False).class_log_prob(case.hidden, classes, class_weights)
    torch.testing.assert_close(found, class_weights.log_softmax(1).gather(1, classes[:, None])[:, 0])


def test_where_nothing_is_possible_there_are_no_nans() -> None:
    case = TreeCase.of(0)
    class_weights, classes = case.class_weights(7), case.classes()
    class_weights[2] = float("-inf")
    class_weights.requires_grad_()
    for value in (
        case.made(True).class_log_prob(case.hidden, classes, class_weights),
        case.made(True).class_log_probs(case.hidden, class_weights),
    ):
        assert value[2].isneginf().all()
        for gradient in gradients(value, [*case.parameters(), class_weights], torch.ones_like(value)):
            assert gradient.isfinite().all()


@pytest.mark.parametrize("groups", [1, 7])
@pytest.mark.parametrize("seed", range(5))
def test_a_tree_of_one_level_is_the_exact_layer(seed: int, groups: int) -> None:
    case = TreeCase.of(seed, flat=True)
    log_mass, targets = case.class_weights(groups).requires_grad_(), case.classes()
    of = [case.hidden, *case.output.parameters(), log_mass]
    tree = case.made(False)
    exact = ExactRows(case.output)
    found = tree.class_log_prob(case.hidden, targets, log_mass)
    same(found, exact.log_prob(case.hidden, targets, log_mass, None), of)
    log_q = torch.from_numpy(case.rng.standard_normal((7, case.tree.leaves)))
    each = log_mass.detach().repeat_interleave(7 // groups, 0)
    log_q, targets = log_q.masked_fill(each.isneginf(), float("-inf")), each.argmax(1)
    gain = tree.smoothing_gain(case.hidden, targets, log_q, log_mass)
    same(gain, exact.smoothing_gain(case.hidden, targets, log_q), of)
    scores = torch.from_numpy(case.rng.standard_normal((7, 2))).requires_grad_()
    targets[::3] = case.tree.leaves + 1
    slots = SlotScores(scores, torch.zeros(7, 2, dtype=torch.float64))
    log_q = functional.pad(log_q, (0, 2))
    gain = tree.smoothing_gain(case.hidden, targets, log_q, log_mass, slots)
    same(gain, exact.smoothing_gain(case.hidden, targets, log_q, slots=slots), [*of, scores])


@pytest.mark.parametrize(("seed", "largest"), one_in(3, range(24), [3.0, 60.0]))
def test_corrections_are_dense_masses(seed: int, largest: float) -> None:
    case = TreeCase.of(seed)
    sparse = corrections_of(case, seed, largest)
    dense, classes = sparse.dense(), case.classes(2)
    scores = torch.from_numpy(case.rng.standard_normal((7, 2))).requires_grad_()
    slots = SlotScores(scores, torch.from_numpy(case.rng.standard_normal((7, 2))))
    of, tree = [*case.parameters(), sparse.entries.added, sparse.entries.constant, scores], case.made(bool(seed % 2))
    expected = tree.class_log_prob(case.hidden, classes, dense, slots)
    same(tree.class_log_prob(case.hidden, classes, sparse, slots), expected, of)
    classes = classes.clamp_max(case.tree.leaves - 1)
    expected = tree.class_log_prob(case.hidden, classes, dense)
    same(tree.class_log_prob(case.hidden, classes, sparse), expected, of)
    same(tree.class_log_probs(case.hidden, sparse), tree.class_log_probs(case.hidden, dense), of)


def test_corrections_that_take_almost_everything_away() -> None:
    """A difference would have no digit: e⁻⁴⁰ is left of some masses, and nothing of others."""
    case = TreeCase.of(3, leaves=30)
    shared = torch.zeros(1, 30, dtype=torch.float64)
    classes = torch.arange(30)
    rows, classes = torch.zeros(30, dtype=torch.int64), classes
    added = torch.full((30,), -40.0, dtype=torch.float64)
    added[::3] = float("-inf")
    added[-1] = 2.0
    added.requires_grad_()
    sparse = sparse_masses(shared, rows, classes, added, None, torch.zeros(7, dtype=torch.float64))
    tree, dense = case.made(False), sparse.dense()
    for target in range(30):
        targets = torch.full((7,), target)
        expected = tree.class_log_prob(case.hidden, targets, dense)
        same(tree.class_log_prob(case.hidden, targets, sparse), expected, [case.hidden, added])


def test_counts_what_a_learned_tree_asks_for() -> None:
    case = TreeCase.of(1)
    log_mass, classes = case.class_weights(1), case.classes(2)
    log_mass[:] = 0.0
    slots = SlotScores(torch.zeros(7, 2).double(), torch.zeros(7, 2).double())
    visited: list[VisitProbabilities] = []
    found = case.made(False).class_log_prob(case.hidden, classes, log_mass, slots, visited)
    words = classes < case.tree.leaves
    assert sum(len(some.labels) for some in visited) == int((case.tree.path[classes[words]] >= 0).sum())
    total = torch.zeros(case.tree.leaves, dtype=torch.float64)
    for some in visited:
        torch.testing.assert_close(some.probabilities.sum(1), torch.ones(len(some.labels)).double())
        place = torch.from_numpy(case.tree.place)
        for label, node, row in zip(some.labels.tolist(), some.nodes.tolist(), some.probabilities, strict=True):
            level = case.tree.path[label].tolist().index(node)
            total[label] += row[place[case.tree.chosen[label, level]]].log()
    plain = case.made(False).class_log_probs(case.hidden, log_mass)
    expected = torch.zeros(case.tree.leaves, dtype=torch.float64)
    expected.index_add_(0, classes[words], plain[words.nonzero()[:, 0], classes[words]].detach())
    torch.testing.assert_close(total, expected)
    assert found.shape == (7,)


def test_empty_nodes_cost_no_scores() -> None:
    """Of five children of the root, two have leaves: the same as a tree of these, what is counted in its old places."""
    case = TreeCase.of(3)
    leaf_parent = np.array([2, 5] * 6)
    tree = Tree.from_parents(np.concatenate([[-1, 0, 0, 0, 0, 0], leaf_parent]), 12)
    small = Tree.from_parents(np.concatenate([[-1, 0, 0], (leaf_parent == 5) + 1]), 12)
    classes, log_mass = torch.arange(7), case.class_weights(1).clamp_min(-3.0)
    layers = [TreeLayer(each, H, case.log_mass).double() for each in (tree, small)]
    layers[0].node_rows.data = case.normal(6, H)
    layers[1].node_rows.data = layers[0].node_rows.data[[0, 2, 5]]
    visited: list[list[VisitProbabilities]] = [[], []]
    found = [
        TreeOutput(case.output, layer).class_log_prob(case.hidden, classes, log_mass, visited=into)
        for layer, into in zip(layers, visited, strict=True)
    ]
    torch.testing.assert_close(*found)
    assert len({paths_of(layer, classes).visits.cells for layer in layers}) == 1
    at_root = [some.probabilities[some.nodes == 0] for into in visited for some in into if (some.nodes == 0).any()]
    torch.testing.assert_close(at_root[0][:, [1, 4]], at_root[1][:, :2])
    assert not at_root[0][:, [0, 2, 3]].any()
    torch.testing.assert_close(at_root[0].sum(1), torch.ones(7).double())


def test_masses_that_are_kept_follow_the_background() -> None:
    case = TreeCase.of(2)
    log_mass, classes = torch.zeros(1, 12, dtype=torch.float64), case.classes()
    with torch.no_grad():
        first = case.made(False).class_log_prob(case.hidden, classes, log_mass)
        torch.testing.assert_close(case.made(False).class_log_prob(case.hidden, classes, log_mass), first)
        log_mass[0, 3] = 2.0
        second = case.made(False).class_log_prob(case.hidden, classes, log_mass)
        torch.testing.assert_close(second, case.made(False).class_log_prob(case.hidden, classes, log_mass.clone()))
    assert not torch.equal(first, second)


def test_half_precision_is_near() -> None:
    case = TreeCase.of(4, positions=50, leaves=40)
    class_weights, classes = case.class_weights(1), case.classes()
    exact = case.made(False).class_log_prob(case.hidden, classes, class_weights)
    case.output.bfloat16()
    case.layer.bfloat16()
    hidden = case.hidden.detach().bfloat16().requires_grad_()
    found = case.made(False).class_log_prob(hidden, classes, class_weights.float())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, rtol=0.05, atol=0.2)
    found.masked_fill(found.isinf(), 0.0).sum().backward()
    assert hidden.grad is not None
    assert hidden.grad.isfinite().all()


def test_loading_brings_the_tree() -> None:
    first, second = TreeCase.of(5, leaves=30), TreeCase.of(5, leaves=30)
    internal = first.tree.internal
    mirrored = np.concatenate([first.tree.parent[:internal], first.tree.parent[: internal - 1 : -1]])
    other = Tree.from_parents(mirrored, 30)
    first.layer.move(other)
    second.layer.load_state_dict(first.layer.state_dict())
    assert second.layer.tree.parent.tolist() == other.parent.tolist()
    second.output.load_state_dict(first.output.state_dict())
    class_weights, classes = first.class_weights(1), first.classes()
    expected = first.made(False).class_log_prob(first.hidden, classes, class_weights)
    torch.testing.assert_close(second.made(False).class_log_prob(first.hidden, classes, class_weights), expected)


@pytest.mark.parametrize("seed", range(6))
def test_single_positions_have_the_same_probability(seed: int) -> None:
    case = TreeCase.of(seed, ("free", "composed")[seed % 2])
    class_weights, classes = case.class_weights(1), case.classes()
    tree = case.made(True)
    expected = tree.class_log_prob(case.hidden, classes, class_weights)
    with torch.no_grad():
        for some in (slice(0, 1), slice(1, 3)):
            found = tree.class_log_prob(case.hidden[some], classes[some], class_weights)
            torch.testing.assert_close(found, expected[some].detach())
        alone = case.hidden[:1].requires_grad_()
        torch.testing.assert_close(tree.class_log_prob(alone, classes[:1], class_weights), expected[:1].detach())
        class_weights[0, classes[0]] = 3.0
        found = tree.class_log_prob(case.hidden[:1], classes[:1], class_weights)
    torch.testing.assert_close(found, tree.class_log_prob(case.hidden, classes, class_weights)[:1].detach())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale, mass", [(300.0, 0.0), (1.0, -200.0), (1.0, 200.0), (1.0, float("-inf"))])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_single_positions_with_scores_of_any_size(scale: float, mass: float, dtype: torch.dtype) -> None:
    case = TreeCase.of(3)
    class_weights, classes = (case.class_weights(1) + mass).to(dtype), case.classes()
    output, layer, hidden = case.output.to(dtype), case.layer.to(dtype), (case.hidden * scale).to(dtype).detach()
    with torch.no_grad():
        tree = TreeOutput(output, layer, output.composed())
        expected = tree.class_log_prob(hidden, classes, class_weights)
        found = torch.cat([tree.class_log_prob(hidden[i : i + 1], classes[i : i + 1], class_weights) for i in range(7)])
    assert tree.visits_of_one is not None and found.dtype == dtype
    # biases of −200 have a few digits less
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("optimiser", [torch.optim.SGD, torch.optim.Adagrad])
def test_sparse_gradients_train_alike(optimiser: type[torch.optim.Optimizer]) -> None:
    weights = []
    for sparse in (False, True):
        case = TreeCase.of(7, leaves=30)
        case.layer.sparse_gradients = sparse
        trained = optimiser(case.output.parameters(), lr=0.1)
        class_weights, classes = torch.zeros(1, 30, dtype=torch.float64), case.classes()
        for _ in range(3):
            trained.zero_grad()
            case.made(False).class_log_prob(case.hidden, classes, class_weights).sum().backward()
            assert case.output.weight.grad is not None
            assert case.output.weight.grad.is_sparse == sparse
            trained.step()
        weights.append(case.output.weight.detach())
    torch.testing.assert_close(weights[0], weights[1])


@pytest.mark.parametrize("many", [3, 20])
def test_rows_composed_once_have_the_gradient_of_rows(many: int) -> None:
    case = TreeCase.of(6, leaves=30)
    subset = torch.from_numpy(case.rng.permutation(30)[:many])
    of_features = case.output.rows, case.output.weight, case.output.bias
    found = compose_once(*of_features, torch.cat([subset, subset.new_full((1,), -1)]))
    assert not found[0][-1].any() and not found[1][-1].any()
    for mine, theirs in zip(found, case.output.composed(subset), strict=True):
        same(mine[:-1], theirs, list(case.output.parameters()))


# The best classes of a tree by branch and bound are those of the full enumeration
@pytest.mark.parametrize(("seed", "kind", "k"), one_in(5, range(12), ["shared", "dense", "corrections"], [1, 3, 50]))
def test_best_classes_are_those_of_all(seed: int, kind: str, k: int) -> None:
    case = TreeCase.of(seed, ("free", "composed")[seed % 2], leaves=30)
    class_weights = (
        corrections_of(case, seed) if kind == "corrections" else case.class_weights(1 if kind == "shared" else 7)
    )
    if seed % 3 == 0:  # many ties
        for parameter in (*case.output.parameters(), *case.layer.parameters()):
            parameter.data.zero_()
        if kind != "corrections":
            class_weights = torch.where(class_weights.isneginf(), class_weights, 0.0)
    scores, of_slots = case.normal(7, 2), case.normal(7, 2)
    of_slots[0] = float("-inf")
    slots = None if seed % 4 == 0 else SlotScores(scores, of_slots)
    share = -case.normal(1 if seed % 2 else 7, 30 if slots is None else 32).abs()
    temperature = (1.0, 0.5, torch.linspace(0.5, 2.0, 7).double().unsqueeze(1))[seed % 3]
    tree = case.made(True)
    with torch.no_grad():
        everything = tree.class_log_probs(case.hidden, class_weights, slots, temperature)
        found, log_probs, classes = tree.best_classes(case.hidden, class_weights, share, k, slots, temperature)
    expected = (everything + share).topk(min(k, everything.size(1)), dim=1).values
    torch.testing.assert_close(found, expected)
    for row, (values, own, which) in enumerate(zip(found, log_probs, classes, strict=True)):
        real = values.isfinite()
        assert len(set(which[real].tolist())) == int(real.sum())
        torch.testing.assert_close(own[real], everything[row, which[real]])
        torch.testing.assert_close(values[real], (everything + share)[row, which[real]])
    some = case.classes(0 if slots is None else 2).unsqueeze(1).repeat(1, 3)
    some[:, 1] = 0
    of_some = tree.log_probs_of(case.hidden, some, class_weights, slots, temperature)
    torch.testing.assert_close(of_some, everything.gather(1, some))
