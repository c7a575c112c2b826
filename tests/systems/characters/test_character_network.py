"""The network over characters: equal to loops in value and gradient; padding changes nothing; options are checked."""

import pytest
import torch
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.systems.characters.network import (
    LARGE,
    SMALL,
    CharacterNetwork,
    CharacterOptions,
    Filters,
    Highway,
    parse_filters,
    written,
)

WORDS = [[1, 2, 3, 4, 0], [1, 5, 0], [1, 0], [1, 4, 4, 4, 2, 3, 5, 0]]
FILTERS = ((1, 2), (2, 3), (4, 2), (6, 3))  # the widest is wider than most words


def network(**options: object) -> CharacterNetwork:
    torch.manual_seed(1)
    return CharacterNetwork(6, CharacterOptions(3, FILTERS, **options)).double()  # type: ignore[arg-type]


def padded(words: list[list[int]], length: int = 0, filler: int = 0) -> tuple[Tensor, Tensor]:
    longest = max(length, *map(len, words))
    rows = [word + [filler] * (longest - len(word)) for word in words]
    return torch.tensor(rows), torch.tensor(list(map(len, words)))


def by_loops(model: CharacterNetwork, word: list[int]) -> Tensor:
    """Equations 2.1 to 2.4, one number at a time."""
    columns = [model.embedding.weight[symbol] for symbol in word]
    found = []
    for layer in model.filters:
        assert isinstance(layer, Filters)
        width, biases = layer.width, layer.linear.bias
        filters = layer.linear.weight.view(len(biases), width, 3)
        reach = columns + [torch.zeros(3).double()] * (width - len(columns))
        for i in range(len(filters)):
            values = []
            for start in range(len(reach) - width + 1):
                total = biases[i]
                for j in range(width):
                    total = total + (reach[start + j] * filters[i, j]).sum()
                values.append(torch.tanh(total))
            found.append(torch.stack(values).max())
    y = torch.stack(found)
    for layer in model.layers:
        if isinstance(layer, Highway):
            t = 1 / (1 + torch.exp(-(layer.transform.weight @ y + layer.transform.bias)))
            y = t * (layer.change.weight @ y + layer.change.bias).clamp_min(0) + (1 - t) * y
        else:
            y = (layer[0].weight @ y + layer[0].bias).clamp_min(0)  # type: ignore[index]
    return y if isinstance(model.projection, torch.nn.Identity) else model.projection(y)


@pytest.mark.parametrize("options", [{}, {"highway_layers": 0}, {"highway_layers": 2, "size": 4}, {"mlp": True}])
def test_values_and_gradients_are_those_of_the_equations(options: dict[str, object]) -> None:
    model = network(**options)
    weights = torch.randn(len(WORDS), model(*padded(WORDS)).size(1)).double()
    expected = torch.stack([by_loops(model, word) for word in WORDS])
    torch.testing.assert_close(model(*padded(WORDS)), expected)
    parameters = list(model.parameters())
    slow = torch.autograd.grad((expected * weights).sum(), parameters)
    fast = torch.autograd.grad((model(*padded(WORDS)) * weights).sum(), parameters)
    for one, other in zip(fast, slow, strict=True):
        torch.testing.assert_close(one, other)
        assert one.abs().sum() > 0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_letters_that_come_again_share_the_gradient_of_a_maximum(sign: float) -> None:
    """Whether it is positive or negative."""
    torch.manual_seed(1)
    filters, letters = Filters(2, 1, 5).double(), torch.randn(3, 2).double().requires_grad_()
    words, lengths = torch.tensor([[1, 1, 2], [0, 0, 0]]), torch.tensor([3, 3])

    def loss(values: Tensor) -> Tensor:
        return sign * filters(values[words], lengths).sum()

    assert torch.autograd.gradcheck(loss, letters)


def test_padding_never_counts() -> None:
    model = network()
    alone = torch.cat([model(*padded([word])) for word in WORDS])
    for filler in (0, 5):
        torch.testing.assert_close(model(*padded(WORDS, 15, filler)), alone)


def test_a_highway_begins_by_carrying_on() -> None:
    layer, y = Highway(50), torch.rand(7, 50)
    assert (layer(y) - y).abs().mean() < 0.2 * y.abs().mean()


def test_before_the_layers_is_without_them() -> None:
    model = network(highway_layers=2)
    torch.testing.assert_close(model.before_layers(*padded(WORDS)), network(highway_layers=0)(*padded(WORDS)))


def test_the_sizes_of_the_thesis() -> None:
    assert CharacterOptions(filters=SMALL).num_filters == 525
    assert CharacterOptions(filters=LARGE).num_filters == 1100
    assert parse_filters(written(LARGE)) == LARGE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "found ''"),
        ("3", "found '3'"),
        ("1:25,x:3", "found 'x:3'"),
        ("1:25,1:30", "a width twice"),
        ("0:25", "widths from 1 to 30"),
        ("31:25", "widths from 1 to 30"),
        ("2:0", "one filter of each"),
        ("1:99999", "at most 20,000 filters"),
        ("1:-5", "found '1:-5'"),
    ],
)
def test_filters_that_are_none_are_refused(text: str, said: str) -> None:
    with pytest.raises(OptionError, match=r"--character-filters") as error:
        parse_filters(text)
    assert said in str(error.value)
