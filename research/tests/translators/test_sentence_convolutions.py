"""The convolutional models of sentences: column by column, word by word, number by number, as their equations say."""

import math

import pytest
import torch
from torch import Tensor

from llrnn_research.translators.convolutional_source import (
    ConvolutionalSource,
    InvertedNgramModel,
    NgramModel,
    PoissonLength,
    SentenceModel,
    log_prob,
    most_probable,
    stretch,
    words_of_column,
)
from llrnn_research.translators.plugin.llrnn_encoder_decoder import Maxout

SIZE, PAD = 3, 1


def kernel(bank: object, width: int) -> Tensor:
    """That of a width: below those of widths 2, 3, …"""
    before = sum(range(2, width))
    return bank.weight[before : before + width]


def fold_slowly(x: list[Tensor], weight: Tensor) -> list[Tensor]:
    width = len(weight)
    return [torch.tanh(sum(x[c + j] * weight[j] for j in range(width))) for c in range(len(x) - width + 1)]


def sentence_slowly(model: SentenceModel, x: list[Tensor]) -> Tensor:
    width = 2
    while len(x) > 1:
        if len(x) >= width:
            x = fold_slowly(x, kernel(model.layers, width))
        else:
            x = fold_slowly(x, kernel(model.last, len(x)))
        width = min(width + 1, model.layers.widest)
    return x[0]


def unfold_slowly(x: list[Tensor], weight: Tensor) -> list[Tensor]:
    out = [torch.zeros(SIZE, dtype=x[0].dtype) for _ in range(len(x) + len(weight) - 1)]
    for c, column in enumerate(x):
        for j, row in enumerate(weight):
            out[c + j] = out[c + j] + column * row
    return [torch.tanh(column) for column in out]


def sentences(lengths: list[int], behind: float = 0.0) -> Tensor:
    torch.manual_seed(1)
    x = torch.randn(len(lengths), max(lengths), SIZE, dtype=torch.float64)
    for row, length in zip(x, lengths, strict=True):
        row[length:] = behind
    return x.requires_grad_()


def assert_same(found: list[Tensor], expected: list[Tensor], inputs: list[Tensor]) -> None:
    """In value, and in the gradient of a mixture of all that is found."""
    for ours, slow in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, slow)
    weights = [torch.randn_like(part) for part in found]
    gradients = [
        torch.autograd.grad(sum((w * p).sum() for w, p in zip(weights, parts, strict=True)), inputs)
        for parts in (found, expected)
    ]
    for ours, slow in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, slow)


@pytest.mark.parametrize("longest", [2, 8, 32])
def test_sentences_of_any_length_equal_the_loop(longest: int) -> None:
    """Also longer ones than the kernels are meant for."""
    lengths = [1, 2, 3, 4, 5, 6, 7, 11, 12, 19, 4, 1]
    torch.manual_seed(0)
    model, x = SentenceModel(SIZE, longest).double(), sentences(lengths, behind=9.0)
    assert model.layers.widest == max(3, math.ceil(math.sqrt(2 * longest)))
    found = model(x, torch.tensor(lengths))
    expected = [sentence_slowly(model, list(row[:length])) for row, length in zip(x, lengths, strict=True)]
    assert_same(list(found), expected, [x, model.layers.weight, model.last.weight])


def test_weights_that_a_batch_does_not_need_have_gradients_of_zero() -> None:
    """Four words become three, and these one: nothing is left over."""
    model = SentenceModel(SIZE, 8)
    model(torch.randn(2, 4, SIZE), torch.tensor([4, 4])).sum().backward()
    assert model.last.weight.grad is not None and not model.last.weight.grad.any()
    assert model.layers.weight.grad is not None and model.layers.weight.grad.any()


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_ngrams_equal_the_loop(layers: int) -> None:
    lengths = [1, 3, 4, 5, 9, 12]
    torch.manual_seed(0)
    model, x = NgramModel(SIZE, layers).double(), sentences(lengths)
    assert model.n == words_of_column(layers) == {1: 2, 2: 4, 3: 7}[layers]
    inside = torch.arange(x.size(1)) < torch.tensor(lengths).unsqueeze(1)
    found, columns = model(x * inside.unsqueeze(-1), torch.tensor(lengths))
    expected = []
    for row, length in zip(x, lengths, strict=True):
        slow = list(row[:length]) + [torch.zeros(SIZE, dtype=x.dtype)] * max(0, model.n - length)
        for width in range(2, layers + 2):
            slow = fold_slowly(slow, kernel(model.layers, width))
        expected.append(torch.stack(slow))
    assert columns.tolist() == [len(rows) for rows in expected] == [max(1, n - model.n + 1) for n in lengths]
    assert_same([f[:c] for f, c in zip(found, columns, strict=True)], expected, [x, model.layers.weight])


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_inverted_model_equals_the_loop(layers: int) -> None:
    columns = [1, 2, 5, 3]
    torch.manual_seed(0)
    model, x = InvertedNgramModel(SIZE, layers).double(), sentences(columns, behind=9.0)
    found = model(x, torch.tensor(columns))
    assert found.shape[1] == max(columns) + model.n - 1
    expected = []
    for row, count in zip(x, columns, strict=True):
        slow = list(row[:count])
        for width in range(layers + 1, 1, -1):
            slow = unfold_slowly(slow, kernel(model.layers, width))
        assert len(slow) == count + model.n - 1
        expected.append(torch.stack(slow + [slow[-1]] * (found.shape[1] - len(slow))))
    assert_same(list(found), expected, [x, model.layers.weight])


def test_stretching_is_interpolation() -> None:
    have, want = [1, 2, 4, 5, 3], [4, 1, 7, 3, 3]
    x = sentences(have, behind=9.0)
    found = stretch(x, torch.tensor(have), torch.tensor(want))
    expected = []
    for row, h, w in zip(x, have, want, strict=True):
        columns = []
        for place in range(w):
            at = place * (h - 1) / max(w - 1, 1)
            low = min(int(at + 1e-9), h - 1)
            high = min(low + 1, h - 1)
            columns.append(row[low] * (1 - (at - low)) + row[high] * (at - low))
        expected.append(torch.stack(columns))
    assert_same([f[:w] for f, w in zip(found, want, strict=True)], expected, [x])
    torch.testing.assert_close(found[4, :3], x[4, :3])  # as many as there are


def test_lengths_are_poisson() -> None:
    model = PoissonLength().double()
    k = torch.arange(1, 30)
    rate = model(k)
    torch.testing.assert_close(rate, k.double() + math.log1p(math.exp(-4.0)), rtol=1e-6, atol=0)
    m = torch.arange(200)
    for one in rate[::7].detach():
        p = log_prob(one, m).exp()
        slow = [math.exp(-float(one)) * float(one) ** int(n) / math.factorial(int(n)) for n in m[:60]]
        torch.testing.assert_close(p[:60], torch.tensor(slow, dtype=p.dtype))
        assert float(p.sum()) == pytest.approx(1.0)
        assert int(most_probable(one)) == int(p.argmax())
    assert int(most_probable(torch.tensor(0.2))) == 1


def test_the_rate_is_learned() -> None:
    """Maximum likelihood finds λ(k) = 1.3 k + 2."""
    model = PoissonLength()
    torch.manual_seed(0)
    k = torch.randint(4, 30, (4000,))
    m = torch.poisson(1.3 * k + 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        (-log_prob(model(k), m).mean()).backward()
        optimizer.step()
    torch.testing.assert_close(model(torch.tensor([5.0, 25.0])), torch.tensor([8.5, 34.5]), rtol=0.03, atol=0)


@pytest.mark.parametrize("layers", [None, 1, 2])
def test_each_sentence_is_read_as_if_alone(layers: int | None) -> None:
    """Wherever padding is."""
    torch.manual_seed(0)
    model = ConvolutionalSource(20, PAD, SIZE, layers).double().eval()
    given = [[5, 6, 7, 9, 3, 2], [8, 2], [9, 10, 11, 12, 13, 14, 15, 16, 2], [2]]
    size = max(map(len, given)) + 2
    for rows in ([s + [PAD] * (size - len(s)) for s in given], [[PAD] * (size - len(s)) + s for s in given]):
        tokens = torch.tensor(rows)
        states, vectors = model(tokens)
        assert (states[tokens == PAD] == 0).all()
        for i, sentence in enumerate(given):
            alone, its_vectors = model(torch.tensor([sentence]))
            torch.testing.assert_close(states[i][tokens[i] != PAD], alone[0])
            count = its_vectors.size(1)
            assert count == (1 if layers is None else max(len(sentence), words_of_column(layers)))
            torch.testing.assert_close(vectors[i, :count], its_vectors[0])
            torch.testing.assert_close(vectors[i, count:], vectors[i, count - 1].expand_as(vectors[i, count:]))


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_equals_the_loop_in_value_and_gradient(pieces: int) -> None:
    torch.manual_seed(0)
    layer = Maxout(5, 4, pieces).double()
    x = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    found = layer(x)
    weight, bias = layer.linear.weight, layer.linear.bias
    units = [
        torch.stack([x @ weight[m * pieces + p] + bias[m * pieces + p] for p in range(pieces)]).max(0).values
        for m in range(4)
    ]
    expected = torch.stack(units, dim=-1)
    torch.testing.assert_close(found, expected)
    cotangent = torch.randn_like(found)
    inputs = (x, weight, bias)
    for ours, slow in zip(
        torch.autograd.grad((found * cotangent).sum(), inputs),
        torch.autograd.grad((expected * cotangent).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(ours, slow)
