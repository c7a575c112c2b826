"""A head with a tree beside the definition, choice by choice: values, gradients, searches, explanations, refusals."""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from automaton_prior import with_bigrams
from same_gradients import assert_leaves_autocast
from small_priors import SYMBOLS, TARGETS, B, H, T, hidden_states, make_prior, open_prior, random_head
from thinned_grids import one_in
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.head import Exact, LogLinearHead
from fairseq_llrnn.open_vocabulary.speller_sizes import SpellerSizes
from fairseq_llrnn.output.feature_weights import row_scores
from fairseq_llrnn.output.learned_temperature import learned_temperature
from fairseq_llrnn.output.sampled import Sampled
from fairseq_llrnn.prior import Prior
from fairseq_llrnn.prior.parts.open_vocabulary import open_words
from llrnn_research.output_trees.output_tree import OutputTree, TreeOptions
from llrnn_research.output_trees.tree import Tree

TREES = [
    TreeOptions("clusters"),
    TreeOptions("huffman", arity=2),
    TreeOptions("random", arity=3),
    TreeOptions("random", arity=2, depth=4),
]
AFTER = {"le": {"chat": 0.5, "chien": 0.3}, "la": {"maison": 0.6, "fenêtre": 0.2}, "maison": {"</s>": 0.7}}


PRIORS = {
    "unigram": make_prior,
    "n-grams": lambda: with_bigrams(make_prior(), AFTER),
    "open": open_prior,
    "open n-grams": lambda: with_bigrams(open_prior(), AFTER),
}


def make_head(prior: Prior | None = None, **options: Any) -> LogLinearHead:
    tree = options.pop("tree", TreeOptions("random", arity=2))
    rows, sparse = options.pop("tree_rows", "free"), options.pop("sparse_gradients", False)
    normaliser = Exact if tree is None else OutputTree(tree, rows, sparse)
    return random_head(prior or make_prior(), normaliser=normaliser, **options)


def by_definition(head: LogLinearHead, hidden: Tensor, temperature: float = 1.0) -> Tensor:
    """log p of all words (B, T, V), node by node."""
    tree, batch = head.tree.tree, head.batch(hidden, head.bind(head.previous(TARGETS)))
    rows, bias = head.output.composed()
    own, own_bias = head.tree.internal_rows((rows, bias))
    rows, bias = torch.cat([own, rows]), torch.cat([own_bias, bias])
    scores = (hidden @ rows.T + bias) / temperature  # shape: (B, T, I + S)
    class_weights = batch.log_mass.expand(B, T, -1)
    opened = None
    words = head.open_words
    if words is not None:  # <unk> hangs below the root, with a score of its own
        opened = row_scores(hidden, *words.mixture.composed(head.output.weight, head.output.bias))
        opened = opened.logsumexp(-1) / temperature + class_weights[..., head.replaced]
        class_weights = class_weights.index_fill(-1, torch.tensor([head.replaced]), -torch.inf)
    class_weights = class_weights.clamp_min(-1e4)  # as good as nothing, but with gradients

    def below(node: int) -> list[int]:
        if node >= tree.internal:
            return [node - tree.internal]
        return [leaf for child in np.flatnonzero(tree.parent == node) for leaf in below(int(child))]

    log_p = {0: torch.zeros(B, T, dtype=torch.float64)}
    for node in range(tree.internal):
        children = np.flatnonzero(tree.parent == node).tolist()
        terms = [scores[..., child] + class_weights[..., below(child)].logsumexp(-1) for child in children]
        if node == 0 and opened is not None:
            terms.append(opened)
        each = torch.stack(terms, -1)
        total = each.logsumexp(-1, keepdim=True)
        for child, value in zip([*children, -1], each.unbind(-1), strict=False):
            log_p[child] = torch.where(value.isneginf(), value, log_p[node] + value - total.squeeze(-1))
    classes = torch.stack([log_p[tree.internal + leaf] for leaf in range(tree.leaves)], -1)
    if opened is not None:
        classes = classes.index_copy(-1, torch.tensor([head.replaced]), log_p[-1].unsqueeze(-1))
    return batch.view.expand(classes.flatten(0, 1)).view(B, T, -1)


@pytest.mark.parametrize(("tree", "prior", "rows"), one_in(3, TREES, PRIORS, ["free", "composed"]))
def test_probabilities_and_loss_are_the_definition(tree: TreeOptions, prior: str, rows: str) -> None:
    head, hidden = make_head(PRIORS[prior](), tree=tree, tree_rows=rows), hidden_states()
    log_p = by_definition(head, hidden)
    found = head.word_log_probs(head.batch(hidden, head.bind(head.previous(TARGETS))))
    torch.testing.assert_close(found, log_p, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(B, T, dtype=torch.float64), rtol=1e-6, atol=1e-6)
    real = TARGETS.ne(1)
    expected = -log_p.gather(2, TARGETS.unsqueeze(2)).squeeze(2).masked_fill(~real, 0.0).sum()
    leaves = [hidden, *head.tree.parameters(), head.output.weight, head.output.bias]
    head.tree.train()  # in training, only rows on the paths of targets are composed
    loss = head.loss(hidden, TARGETS, reduction="sum")
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)
    ours, theirs = (torch.autograd.grad(value, leaves, allow_unused=True) for value in (loss, expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_searches_choose_the_best_words_of_the_definition(prior: str, temperature: float) -> None:
    head, hidden = make_head(PRIORS[prior](), tree=TreeOptions("huffman", arity=3)), hidden_states().detach()
    whole, state = by_definition(head, hidden, temperature), head.start(B)
    for t in range(T):
        values, tokens = head.top_k(hidden[:, t], state, k=4, temperature=temperature)
        best, _ = whole[:, t].topk(4)
        torch.testing.assert_close(values, best, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(whole[:, t].gather(1, tokens), values, rtol=1e-6, atol=1e-6)
        step = head.step(hidden[:, t], state).tempered(temperature)
        first = step.log_probs_of(torch.arange(4).expand(B, 4))
        torch.testing.assert_close(first, whole[:, t, :4], rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(step.word_log_probs(), whole[:, t], rtol=1e-6, atol=1e-6)
        state = head.advance(state, TARGETS[:, t])


@pytest.mark.parametrize("prior", PRIORS)
def test_label_smoothing_is_what_its_formula_says(prior: str) -> None:
    head, hidden = make_head(PRIORS[prior]()), hidden_states()
    batch, real = head.batch(hidden, head.bind(head.previous(TARGETS))), TARGETS.ne(1)
    weights = batch.view.expand(batch.class_weights.dense().double()).view(B, T, -1)
    gains = by_definition(head, hidden) - weights  # all of log p that the network can change
    words = torch.tensor([i for i, s in enumerate(SYMBOLS) if s not in ("<s>", "<pad>", "</s>", "<unk>")])
    expected = gains[..., words].mean(-1) - gains.gather(2, TARGETS.unsqueeze(2)).squeeze(2)
    found = head.smoothing_gain(batch, TARGETS)
    torch.testing.assert_close(found[real], expected[real], rtol=1e-5, atol=1e-5)
    smoothed = head.loss(hidden, TARGETS, label_smoothing=0.1, reduction="sum")
    plain = head.loss(hidden, TARGETS, reduction="sum")
    torch.testing.assert_close(smoothed, plain - 0.1 * expected[real].sum(), rtol=1e-5, atol=1e-5)


def test_weights_bring_their_tree_where_the_head_has_a_place_for_it() -> None:
    prior = make_prior()
    trained = make_head(prior, tree=TreeOptions("huffman", arity=2))
    flat = Tree.from_parents(np.array([-1] + [0] * prior.output.num_classes), prior.output.num_classes)
    head, hidden = make_head(prior, tree=flat), hidden_states()
    head.load_state_dict(trained.state_dict())
    torch.testing.assert_close(head.loss(hidden, TARGETS), trained.loss(hidden, TARGETS))
    with pytest.raises(OptionError, match="--output-tree: expected the tree with which the checkpoint was trained"):
        make_head(prior, tree=TreeOptions("clusters")).load_state_dict(trained.state_dict())
    with pytest.raises(OptionError, match="tree: expected this option, with which the checkpoint was trained"):
        make_head(prior, tree=None).load_state_dict(trained.state_dict())
    with pytest.raises(OptionError, match="tree: expected none, as the checkpoint was trained without it"):
        head.load_state_dict(make_head(prior, tree=None).state_dict())
    one_node = TreeOptions("learned", arity=prior.output.num_classes)
    with pytest.raises(OptionError, match="--output-tree: expected the tree with which the checkpoint was trained"):
        make_head(prior, tree=one_node).load_state_dict(trained.state_dict())


def test_a_fixed_tree_can_go_on_as_a_learned_one() -> None:
    prior, options = make_prior(), TreeOptions("learned", arity=2)
    learned = make_head(prior, tree=options)
    fixed = make_head(prior, tree=learned.tree.tree)
    again = make_head(prior, tree=options)
    again.load_state_dict(fixed.state_dict())
    assert not again.tree.learner.counts.any()
    torch.testing.assert_close(again.loss(hidden_states(), TARGETS), fixed.loss(hidden_states(), TARGETS))


@pytest.mark.parametrize("rows", ["free", "composed"])
def test_a_tree_without_a_limit_of_depth_changes_and_its_nodes_keep_their_rows(rows: str) -> None:
    prior, options = make_prior(), TreeOptions("learned", arity=2, depth=0, reassign=1)
    head, hidden = make_head(prior, tree=options, tree_rows=rows).train(), hidden_states()
    assert head.tree.tree.parent.tolist() == make_head(prior, tree=TreeOptions("huffman", 2)).tree.parent.tolist()
    new, shapes = 0, set()
    for change in range(1, 7):
        for _ in range(3):
            head.loss(hidden, TARGETS)
        before = head.tree.internal_rows(head.output.composed())
        with mock.patch.object(head.tree, "move", wraps=head.tree.move) as moved:
            head.tree.update_if_due(change, 1)
        origin = torch.from_numpy(moved.call_args.args[1])
        shapes.add(tuple(head.tree.tree.parent))
        torch.testing.assert_close(head.log_probs(hidden, previous=head.previous(TARGETS)), by_definition(head, hidden))
        after, kept = head.tree.internal_rows(head.output.composed()), origin >= 0
        new += int((~kept).sum())
        for old, now in zip(before, after, strict=True) if rows == "free" else ():
            torch.testing.assert_close(now[kept], old[origin[kept]])
            assert not now[~kept].any()
        with torch.no_grad():
            for parameter in head.parameters():
                parameter += 0.3 * torch.randn_like(parameter)
    assert new and len(shapes) > 2, "nodes came anew, and trees differed"
    expected = head.eval().loss(hidden, TARGETS)
    for tree in (options, Tree.from_parents(np.array([-1] + [0] * head.tree.leaves), head.tree.leaves)):
        again = make_head(prior, tree=tree, tree_rows=rows)
        again.load_state_dict(head.state_dict())
        torch.testing.assert_close(again.loss(hidden, TARGETS), expected)
    fixed = make_head(prior, tree=head.tree.tree, tree_rows=rows)
    learned = make_head(prior, tree=options, tree_rows=rows)
    learned.load_state_dict(fixed.state_dict())
    torch.testing.assert_close(learned.loss(hidden, TARGETS), fixed.loss(hidden, TARGETS))
    assert not learned.tree.learner.counts.any()
    if rows == "free":
        state = head.state_dict()
        state["tree.row_of"] = torch.zeros_like(state["tree.row_of"])
        with pytest.raises(DataError, match="the checkpoint: expected a permutation of the rows of the .* nodes"):
            learned.load_state_dict(state)


def test_a_learned_tree_is_no_deeper_than_its_classes_need() -> None:
    assert TreeOptions("learned", arity=2, depth=70).sizes(1000) == (2, 10)
    assert TreeOptions("learned", depth=70).sizes(1000) == (2, 10)
    assert TreeOptions("random", arity=2, depth=12).sizes(1000) == (2, 12)
    assert TreeOptions("learned", arity=7, depth=0).sizes(1000) == (7, None)
    assert TreeOptions("learned", depth=0).sizes(1000) == (10, None)


def test_half_precision_keeps_the_digits_of_masses() -> None:
    head = make_head(tree=TreeOptions("huffman", arity=2))
    class_weights = head.tree.log_mass.clone()
    assert torch.equal(head.half().tree.log_mass, class_weights)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda parent: parent.double(), "the checkpoint: expected integers as the parents of its tree"),
        (lambda parent: parent[:-1], "the checkpoint: tree: "),
        (lambda parent: parent.roll(1), "the checkpoint: tree: parent of node 0: expected -1, for the root"),
        (lambda parent: parent.clone().fill_(10**9), "the checkpoint: tree: "),
        (lambda parent: "parents", "the checkpoint: expected integers as the parents of its tree"),
    ],
)
def test_a_tree_of_damaged_weights_is_named(damage: Any, message: str) -> None:
    head = make_head()
    state = head.state_dict()
    state["tree.parent"] = damage(state["tree.parent"])
    with pytest.raises((DataError, OptionError), match=message):
        head.load_state_dict(state)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"kind": "random", "arity": 1}, "arity of the tree: expected at least 2 children of a node"),
        ({"kind": "random", "arity": 2, "depth": 1}, "depth of the tree: expected room for"),
        ({"kind": "random", "arity": 2, "depth": 0}, "depth of the tree: expected room for"),
        ({"kind": "random", "depth": 0}, "depth of the tree: expected room for"),
        ({"kind": "learned", "arity": 1, "depth": 0}, "arity of the tree: expected at least 2 children"),
        ({"kind": "learned", "depth": -1}, "depth of the tree: expected room for"),
        ({"kind": "clusters", "clusters": 0}, "number of clusters: expected 1 to"),
        ({"kind": "oak"}, "--output-tree oak: expected one of clusters, huffman, .*, or a file"),
        ({"kind": "clusters", "arity": 3}, "--tree-arity 3: expected --output-tree huffman or .*, found clusters"),
        ({"kind": "huffman", "depth": 3}, "--tree-depth 3: expected --output-tree random or .*, found huffman"),
        ({"kind": "random", "clusters": 3}, "--tree-clusters 3: expected --output-tree clusters, found random"),
    ],
)
def test_sizes_that_no_tree_has(sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_head(tree=TreeOptions(**sizes))


def test_a_sample_of_classes_excludes_a_tree() -> None:
    with pytest.raises(OptionError, match="--sampled-classes: not supported with --output-tree; leave one of them out"):
        make_head().set_normaliser(Sampled(3))


def test_the_adaptor_penalty_has_no_meaning() -> None:
    with pytest.raises(OptionError, match="--adaptor-penalty: not supported with --output-tree"):
        make_head().loss(hidden_states(), TARGETS, adaptor_penalty=0.1)


@pytest.mark.parametrize("learn_temperature", [False, True])
@pytest.mark.parametrize("prior", ["n-grams", "open n-grams"])
def test_explanations_add_up(prior: str, learn_temperature: bool) -> None:
    head = make_head(PRIORS[prior](), mass_change=learned_temperature if learn_temperature else None)
    hidden = hidden_states()[:1].detach()
    found = head.explain(hidden, TARGETS[0], top=3)
    expected = head.log_probs(hidden, previous=head.previous(TARGETS[:1]))[0].gather(1, TARGETS[0].unsqueeze(1))
    batch = head.batch(hidden, head.bind(head.previous(TARGETS[:1])))
    shares = batch.view.locate(TARGETS[0])[1]
    for explanation, log_prob, share in zip(found, expected.squeeze(1).tolist(), shares.tolist(), strict=True):
        assert explanation.log_prob == pytest.approx(log_prob)
        parts = explanation.log_background + sum(v for _, v in explanation.own_features) + explanation.normaliser
        assert parts == pytest.approx(log_prob, abs=1e-5)
        (detail,) = explanation.details
        assert sum(math.log(one["p"]) for one in detail.facts) + share == pytest.approx(log_prob, abs=1e-5)
        assert [name for name, _ in explanation.own_features if name.startswith("Tree:")]


def test_training_changes_a_learned_tree_and_weights_bring_what_it_counted() -> None:
    prior = open_prior()
    options = TreeOptions("learned", arity=2, reassign=1, reassign_epochs=2)
    head, hidden = make_head(prior, tree=options).train(), hidden_states()
    begun = head.tree.tree
    assert head.tree.update_if_due(0, 3) is None, "nothing was seen"
    for _ in range(3):
        head.loss(hidden, TARGETS)
    counts = head.tree.learner.counts
    real = torch.bincount(head.output.class_of[TARGETS[TARGETS.ne(1)]], minlength=begun.leaves)
    unknown = head.output.class_of[3]
    assert counts.sum() == 3 * (real.sum() - real[unknown]) * (begun.levels - 1), "neither padding nor <unk>"
    again = make_head(prior, tree=options)
    again.load_state_dict(head.state_dict())
    assert torch.equal(again.tree.learner.sums, head.tree.learner.sums)
    head.eval().loss(hidden, TARGETS)
    assert torch.equal(again.tree.learner.counts, counts), "only training counts"
    moved = head.tree.update_if_due(3, 3)
    assert moved is not None and head.tree.update_if_due(3, 3) is None
    assert again.tree.update_if_due(3, 3) == moved
    assert torch.equal(again.tree.parent, head.tree.parent)
    assert moved == 0 or not np.array_equal(head.tree.tree.parent, begun.parent)
    torch.testing.assert_close(again.loss(hidden, TARGETS), head.loss(hidden, TARGETS))
    assert head.tree.update_if_due(9, 3) is None, "the third epoch keeps it"
    fixed = make_head(prior, tree=Tree.from_parents(np.array([-1] + [0] * begun.leaves), begun.leaves))
    fixed.load_state_dict(head.state_dict())
    torch.testing.assert_close(fixed.loss(hidden, TARGETS), head.loss(hidden, TARGETS))


def test_a_network_spells_words_that_a_tree_leads_to() -> None:
    prior = open_prior("neural")
    torch.manual_seed(1)
    words = open_words(SpellerSizes(4, 5, 0.0))
    head = LogLinearHead(prior, H, normaliser=OutputTree(TreeOptions("learned", arity=2)), classes=[words])
    targets, hidden = head.encode(["le zèbre", "zoé le zèbre", "le chat"]), torch.randn(3, 4, H)
    optimizer = torch.optim.Adam(head.parameters(), 0.05)
    before = head.loss(hidden, targets, reduction="none").detach()
    for updates in range(20):
        head.tree.update_if_due(updates, 100)
        optimizer.zero_grad()
        head.loss(hidden, targets).backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in head.parameters())
        optimizer.step()
    after = head.loss(hidden, targets, reduction="none").detach()
    assert (after < before)[0, 1] and (after < before)[1, 0]


@pytest.mark.parametrize(
    ("prior", "options", "rows"), one_in(3, PRIORS, [{}, {"label_smoothing": 0.1}], ["free", "composed"])
)
def test_a_tree_leaves_autocast(prior: str, options: dict[str, float], rows: str) -> None:
    head = make_head(PRIORS[prior](), tree_rows=rows).float()
    assert_leaves_autocast(head, hidden_states().detach().float().requires_grad_(), TARGETS, **options)
