"""Encoders and classifiers against their formulas, word by word and number by number."""

import itertools
import random

import pytest
import torch
from torch import Tensor, nn

from fairseq_llrnn.networks.recurrent import word_table
from llrnn_research.discourse import OBJECTIVES
from llrnn_research.discourse.data import (
    CANDIDATES,
    CONTEXT,
    ENGLISH,
    FRENCH,
    LANGUAGES,
    RELATIONS,
    Conjunctions,
    conjunction_examples,
    next_examples,
    order_examples,
)
from llrnn_research.discourse.encoders import KINDS, Classifiers, MaximumOfStates, build_encoder

PAD, WORDS, EMBED, SIZE = 1, 9, 4, 6
SENTENCES = ([3, 4, 5], [8], [7, 7, 3, 4, 6])


def batch() -> Tensor:
    longest = max(map(len, SENTENCES))
    return torch.tensor([[*sentence, *[PAD] * (longest - len(sentence))] for sentence in SENTENCES])


def encoder(kind: str) -> nn.Module:
    torch.manual_seed(1)
    width = SIZE if kind == "cbow" else EMBED
    return build_encoder(kind, word_table(WORDS, width, PAD), PAD, width, SIZE).double()


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
def test_dropout_is_of_words_in_training_alone(kind: str) -> None:
    torch.manual_seed(3)
    width = SIZE if kind == "cbow" else EMBED
    network = build_encoder(kind, word_table(WORDS, width, PAD), PAD, width, SIZE, dropout=0.5)
    one = network.eval()(batch())
    assert torch.equal(one, network(batch()))
    assert not torch.allclose(network.train()(batch()), network(batch()))
    if kind == "cbow":
        mean = torch.stack([network(batch()) for _ in range(4000)]).mean(0)
        torch.testing.assert_close(mean, one, rtol=0.0, atol=0.02)


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


# Examples of ORDER, NEXT and CONJUNCTION, from paragraphs that a reader can follow
EN, FR = Conjunctions(ENGLISH), Conjunctions(FRENCH)


def relation(conjunctions: Conjunctions, line: str) -> tuple[str | None, str]:
    found, rest = conjunctions.split(line.split())
    return None if found is None else RELATIONS[found], " ".join(rest)


@pytest.mark.parametrize(
    ("conjunctions", "line", "expected"),
    [
        (EN, "However , the wine was sub par .", ("contrast", "the wine was sub par .")),
        (EN, "That is , he went .", ("specific", "he went .")),
        (EN, "In fact , he went .", ("strengthen", "he went .")),
        (EN, '" Still , I like it . "', ("return", '" I like it . "')),
        (EN, "However he went .", (None, "However he went .")),
        (EN, "In , fact , he went .", (None, "In , fact , he went .")),
        (EN, "Now", (None, "Now")),
        (EN, "", (None, "")),
        (FR, "— D' ailleurs , il partit .", ("addition", "— il partit .")),
        (FR, "C' est pourquoi , il partit .", ("result", "il partit .")),
        (FR, "En effet , oui .", ("strengthen", "oui .")),
        (FR, "However , non .", (None, "However , non .")),
    ],
)
def test_a_phrase_with_its_comma_is_taken_off(
    conjunctions: Conjunctions, line: str, expected: tuple[str | None, str]
) -> None:
    assert relation(conjunctions, line) == expected


def test_the_table_of_the_thesis_and_its_french_counterpart() -> None:
    sizes = {name: len(phrases.split(";")) for name, phrases in ENGLISH.items()}
    assert sizes == {"addition": 8, "contrast": 10, "time": 5, "result": 5, "specific": 5, "compare": 2,
                     "strengthen": 2, "return": 1, "recognize": 2}  # fmt: skip
    for phrases in LANGUAGES.values():
        assert tuple(phrases) == RELATIONS, "the classes are the same"
        listed = [phrase.strip() for of_relation in phrases.values() for phrase in of_relation.split(";")]
        assert len(listed) == len(set(listed)), "no phrase tells two relations"


def test_the_example_of_the_thesis() -> None:
    paragraph = [line.split() for line in ("Moreover , it was quite a good meal .", "However , the wine was sub par .")]
    (example,) = conjunction_examples(paragraph, EN)
    left, right = (" ".join(sentence) for sentence in example.sentences)
    assert (left, right) == ("it was quite a good meal .", "the wine was sub par .")
    assert RELATIONS[example.answer] == "contrast"
    nothing_left = [["Now", ","], ["Then", ",", "he", "went"]]
    assert not list(conjunction_examples(nothing_left, EN))


def numbered(many: int) -> list[list[str]]:
    return [[str(i)] for i in range(many)]


def test_order_is_of_neighbours_and_half_of_them_are_flipped() -> None:
    examples = list(order_examples(numbered(400), random.Random(1)))
    assert len(examples) == 399
    for i, example in enumerate(examples):
        first, second = (int(sentence[0]) for sentence in example.sentences)
        assert (first, second) == ((i + 1, i) if example.answer else (i, i + 1))
    assert 160 < sum(example.answer for example in examples) < 240
    assert not list(order_examples([["Yes"], ["Yes"]], random.Random(1))), "what is said twice has no order"


@pytest.mark.parametrize(
    ("sentences", "every", "many"),
    [(7, 8, 0), (8, 8, 1), (15, 8, 1), (16, 8, 2), (30, 8, 3), (7, 1, 0), (8, 1, 1), (15, 1, 8), (15, 3, 3)],
)
def test_next_has_three_sentences_and_five_candidates_from_what_follows(sentences: int, every: int, many: int) -> None:
    examples = list(next_examples(numbered(sentences), every, random.Random(1)))
    assert len(examples) == many
    for i, example in enumerate(examples):
        numbers = [int(sentence[0]) for sentence in example.sentences]
        context, candidates = numbers[:CONTEXT], numbers[CONTEXT:]
        begin = every * i
        assert context == [begin, begin + 1, begin + 2]
        assert len(set(candidates)) == CANDIDATES and min(candidates) == candidates[example.answer] == begin + 3
        assert max(candidates) < sentences
