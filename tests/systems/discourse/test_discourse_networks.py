"""Encoders and classifiers against their formulas, word by word and number by number."""

import itertools

import pytest
import torch
from torch import Tensor, nn

from fairseq_llrnn.systems.discourse import OBJECTIVES
from fairseq_llrnn.systems.discourse.data import RELATIONS
from fairseq_llrnn.systems.discourse.encoders import KINDS, Classifiers, MaximumOfStates, build_encoder, word_table

PAD, WORDS, EMBED, SIZE = 1, 9, 4, 6
SENTENCES = ([3, 4, 5], [8], [7, 7, 3, 4, 6])


def batch() -> Tensor:
    longest = max(map(len, SENTENCES))
    return torch.tensor([[*sentence, *[PAD] * (longest - len(sentence))] for sentence in SENTENCES])


def encoder(kind: str) -> nn.Module:
    torch.manual_seed(1)
    width = SIZE if kind == "cbow" else EMBED
    return build_encoder(kind, word_table(WORDS, PAD, width), PAD, width, SIZE).double()


def gru_states(layer: nn.GRU, vectors: list[Tensor]) -> list[Tensor]:
    """The states of a GRU, a step at a time (Cho et al. 2014, as torch writes it)."""
    state, found = torch.zeros(layer.hidden_size, dtype=torch.float64), []
    for vector in vectors:
        x = layer.weight_ih_l0 @ vector + layer.bias_ih_l0
        h = layer.weight_hh_l0 @ state + layer.bias_hh_l0
        (x_reset, x_update, x_new), (h_reset, h_update, h_new) = x.chunk(3), h.chunk(3)
        update = torch.sigmoid(x_update + h_update)
        new = torch.tanh(x_new + torch.sigmoid(x_reset + h_reset) * h_new)
        state = (1 - update) * new + update * state
        found.append(state)
    return found


def slowly(network: nn.Module, sentence: list[int]) -> Tensor:
    """The vector of a sentence by itself."""
    table = network.embedding.weight
    if not isinstance(network, MaximumOfStates):
        return sum((table[word] for word in sentence), torch.zeros(SIZE, dtype=torch.float64))
    directions = network.network.layers[0]
    states = gru_states(directions[0], [table[word] for word in sentence])
    if len(directions) == 2:
        backward = gru_states(directions[1], [table[word] for word in reversed(sentence)])[::-1]
        states = [torch.cat(both) for both in zip(states, backward, strict=True)]
    return torch.stack(states).max(0).values


@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_is_its_formula(kind: str) -> None:
    network = encoder(kind)
    weights = [p for p in network.parameters() if p.requires_grad]
    fast, slow = network(batch()), torch.stack([slowly(network, sentence) for sentence in SENTENCES])
    torch.testing.assert_close(fast, slow)
    upstream = torch.randn_like(fast)
    for one, two in zip(*(torch.autograd.grad(x, weights, upstream) for x in (fast, slow)), strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_and_neighbours_change_nothing(kind: str) -> None:
    network = encoder(kind)
    together = network(batch())
    for row, sentence in zip(together, SENTENCES, strict=True):
        torch.testing.assert_close(network(torch.tensor([sentence]))[0], row)


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_is_of_words_in_training_alone(kind: str) -> None:
    torch.manual_seed(3)
    width = SIZE if kind == "cbow" else EMBED
    network = build_encoder(kind, word_table(WORDS, PAD, width), PAD, width, SIZE, dropout=0.5)
    one = network.eval()(batch())
    assert torch.equal(one, network(batch()))
    assert not torch.allclose(network.train()(batch()), network(batch()))
    if kind == "cbow":
        mean = torch.stack([network(batch()) for _ in range(4000)]).mean(0)
        torch.testing.assert_close(mean, one, rtol=0.0, atol=0.02)


def test_cbow_is_blind_to_order_and_a_gru_is_not() -> None:
    one, other = torch.tensor([[3, 4, 5]]), torch.tensor([[5, 3, 4]])
    for kind in KINDS:
        network = encoder(kind)
        assert torch.allclose(network(one), network(other)) == (kind == "cbow")


def slow_scores(objective: str, matrix: Tensor, vectors: Tensor) -> Tensor:
    """Eq. 5.1 to 5.3, a number at a time, of one example: (sentences, D) -> (answers,)."""

    def bilinear(left: Tensor, of: Tensor, right: Tensor) -> Tensor:
        pairs = itertools.product(range(len(left)), range(len(right)))
        return sum((left[i] * of[i, j] * right[j] for i, j in pairs), torch.zeros((), dtype=torch.float64))

    if objective == "order":
        return torch.stack([torch.zeros((), dtype=torch.float64), bilinear(vectors[0], matrix, vectors[1])])
    if objective == "next":
        context = torch.cat([vectors[0], vectors[1], vectors[2]])
        return torch.stack([bilinear(context, matrix, candidate) for candidate in vectors[3:]])
    return torch.stack([bilinear(vectors[0], of_relation, vectors[1]) for of_relation in matrix])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_classifier_is_its_formula(objective: str) -> None:
    torch.manual_seed(2)
    classifiers = Classifiers([objective], SIZE).double()
    vectors = torch.randn(3, {"next": 8}.get(objective, 2), SIZE, dtype=torch.float64, requires_grad=True)
    matrix = classifiers.matrices[objective]
    fast = classifiers(objective, vectors)
    slow = torch.stack([slow_scores(objective, matrix, example) for example in vectors])
    assert fast.shape == (3, {"order": 2, "next": 5, "conjunction": len(RELATIONS)}[objective])
    torch.testing.assert_close(fast, slow)
    upstream = torch.randn_like(fast)
    for one, two in zip(*(torch.autograd.grad(x, [matrix, vectors], upstream) for x in (fast, slow)), strict=True):
        torch.testing.assert_close(one, two)


def test_order_is_a_sigmoid() -> None:
    classifiers = Classifiers(["order"], SIZE)
    vectors = torch.randn(4, 2, SIZE)
    flipped = ((vectors[:, 0] @ classifiers.matrices["order"]) * vectors[:, 1]).sum(1).sigmoid()
    torch.testing.assert_close(classifiers("order", vectors).softmax(1)[:, 1], flipped)
