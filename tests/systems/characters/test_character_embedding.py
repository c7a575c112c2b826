"""Words by their characters: what a row of symbols is, vectors of known and unseen words, and when they are kept."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import OpenWords
from fairseq_llrnn.systems.characters import network as module
from fairseq_llrnn.systems.characters.network import (
    LONGEST,
    CharacterEmbedding,
    CharacterNetwork,
    CharacterOptions,
    Filters,
    Highway,
    Spellings,
    parse_filters,
)

SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>", "le", "la", "malle", "amer", "s</s>", "madeupword0000", "madeupword0001")
OPTIONS = CharacterOptions(4, ((1, 3), (3, 5)))


def embedding(**options: object) -> CharacterEmbedding:
    torch.manual_seed(1)
    made = CharacterEmbedding(OpenWords(SYMBOLS), OPTIONS, **options)  # type: ignore[arg-type]
    return made.double()


def spelled(spellings: Spellings, word: str) -> list[str]:
    """A row in letters, ^ and $ around it, ? for an unknown character."""
    symbols, lengths = spellings.rows_of([word])
    names = {1: "^", 0: "$", spellings.unknown: "?"}
    return [names.get(s) or spellings.alphabet.text([s]) for s in symbols[0, : lengths[0]].tolist()]


def test_characters_of_one_word_only_are_unknown() -> None:
    spellings = Spellings(OpenWords(SYMBOLS))
    assert spelled(spellings, "male") == ["^", "m", "a", "l", "e", "$"]
    assert spelled(spellings, "mars") == ["^", "m", "a", "?", "?", "$"], "r and s are each in one word"
    assert spelled(spellings, "o💚\ud800") == ["^", "?", "?", "?", "$"], "made-up entries of a dictionary do not count"


def test_punctuation_marks_are_different_symbols() -> None:
    words = OpenWords((*SYMBOLS, ",", ";", "``", "§1", "?!"))
    spellings = Spellings(words)
    assert [spelled(spellings, mark)[1:-1] for mark in (",", ";", "``")] == [[","], [";"], ["`", "`"]]
    assert spelled(spellings, "§?") == ["^", "?", "?", "$"], "no word is only § or ?"


def test_of_a_long_word_the_ends_are_read() -> None:
    spellings = Spellings(OpenWords(SYMBOLS))
    word = "m" * 100 + "a" * 100
    assert spelled(spellings, word) == ["^", *"m" * (LONGEST // 2), *"a" * (LONGEST // 2), "$"]
    assert len(spelled(spellings, "m" * LONGEST)) == LONGEST + 2


def test_special_symbols_are_not_spelled() -> None:
    spellings = Spellings(OpenWords(SYMBOLS))
    symbols, lengths = spellings.rows(np.array([0, 4, 1, 2, 3]))
    assert lengths.tolist() == [3, 4, 3, 3, 3]
    assert symbols[[0, 2, 3, 4], 1].tolist() == [spellings.unknown + 1 + i for i in range(4)]
    assert spellings.num_symbols == spellings.unknown + 5
    written, _ = spellings.rows_of(["<unk>"])
    assert spellings.unknown + 4 not in written, "a string of these five characters is no special symbol"


def test_vectors_are_those_of_the_network_in_any_shape() -> None:
    read, tokens = embedding(), torch.tensor([[4, 7, 4], [2, 1, 1]])
    vectors = read(tokens)
    assert vectors.shape == (2, 3, 8)
    for row, word in ((vectors[0, 0], "le"), (vectors[0, 1], "amer"), (vectors[0, 2], "le")):
        torch.testing.assert_close(row, read.before_and_after([word])[1][0])
    torch.testing.assert_close(vectors[1, 1], vectors[1, 2])
    assert not torch.equal(vectors[1, 0], vectors[1, 1])


def test_a_string_beyond_the_dictionary_is_read_by_its_characters() -> None:
    read = embedding()
    words = read.spellings.words
    strings = torch.tensor([words.index("mamelle"), words.open("le")])
    torch.testing.assert_close(read(strings), read.before_and_after(["mamelle", "le"])[1])
    torch.testing.assert_close(read(strings)[1], read(torch.tensor(4)), msg="an alias is read like its word")


def test_any_number_of_strings_before_and_after_the_highway(monkeypatch: pytest.MonkeyPatch) -> None:
    read, strings = embedding(), ["le", "amer", "mamelles", "", "le"]
    before, after = read.before_and_after(strings)
    monkeypatch.setattr(module, "AT_ONCE", 2)
    for i, parts in enumerate(zip(read.before_and_after(strings), (before, after), strict=True)):
        torch.testing.assert_close(*parts)
        for string, row in zip(strings, parts[0], strict=True):
            torch.testing.assert_close(row, read.before_and_after([string])[i][0])
    torch.testing.assert_close(after, read.network.layers(before))
    assert [rows.shape for rows in read.before_and_after([])] == [(0, 8), (0, 8)]


def test_padding_is_zero_if_it_is_said() -> None:
    vectors = embedding(padding_idx=1)(torch.tensor([4, 1]))
    assert vectors[0].abs().sum() > 0 and vectors[1].abs().sum() == 0


def test_gradients_are_those_of_reading_every_token() -> None:
    read, tokens = embedding(), torch.tensor([[4, 7, 4], [2, 5, 6]])
    weights = torch.randn(2, 3, 8).double()
    words = [[read.vectors(token.view(1))[0] for token in row] for row in tokens]
    slow = (torch.stack([torch.stack(row) for row in words]) * weights).sum()
    for one, other in zip(
        torch.autograd.grad((read(tokens) * weights).sum(), list(read.parameters())),
        torch.autograd.grad(slow, list(read.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


class Counted(CharacterEmbedding):
    """Counts the words that the network reads."""

    words_read = 0

    def _read(self, symbols: np.ndarray, lengths: np.ndarray) -> Tensor:
        self.words_read += len(lengths)
        return super()._read(symbols, lengths)


def counted() -> Counted:
    torch.manual_seed(1)
    return Counted(OpenWords(SYMBOLS), OPTIONS).eval()


@torch.no_grad()
def test_words_are_read_once_where_no_gradient_is_kept() -> None:
    read = counted()
    assert read(torch.tensor([], dtype=torch.long)).shape == (0, 8)
    first = read(torch.tensor([4, 5, 4]))
    assert read.words_read == 2
    again = read(torch.tensor([[5, 6], [4, 7]]))
    assert read.words_read == 4
    torch.testing.assert_close(again[1, 0], first[0])
    new = read.spellings.words.index("mamelles")
    for _ in range(2):
        expected = read.before_and_after(["mamelles", "madeupword0000"])[1]
        torch.testing.assert_close(read(torch.tensor([new, 9])), expected)
    assert read.words_read == 4 + 2
    assert read(torch.tensor([], dtype=torch.long)).shape == (0, 8)


@torch.no_grad()
@pytest.mark.parametrize("how", ["in place", "loaded", "another dtype", "trained"])
def test_what_was_kept_is_forgotten_when_weights_change(how: str) -> None:
    read, tokens = counted(), torch.tensor([4, 5])
    before = read(tokens)
    if how == "in place":
        read.network.embedding.weight.add_(1.0)
    elif how == "loaded":
        read.load_state_dict({name: value + 1 for name, value in read.state_dict().items()})
    elif how == "another dtype":
        read.double()
    else:
        read.train()
        assert not read._cache
        with torch.enable_grad():
            read(tokens).sum().backward()
        torch.optim.SGD(read.parameters(), 1.0).step()
        read.eval()
    after = read(tokens)
    torch.testing.assert_close(after, read.before_and_after(["le", "la"])[1])
    assert after.dtype != before.dtype or not torch.equal(after, before)


def test_inference_mode_and_no_grad_share_what_was_kept() -> None:
    read = counted()
    with torch.inference_mode():
        read(torch.tensor([4, 5]))
    with torch.no_grad():
        read(torch.tensor([5, 6, 7]))
    with torch.inference_mode():
        assert read(torch.tensor([8, 9, 10, 4])).shape == (4, 8)
    assert read.words_read == 2 + 2 + 3


def test_training_keeps_nothing_and_evaluation_with_gradients_neither() -> None:
    read, tokens = counted(), torch.tensor([4])
    assert read(tokens).requires_grad
    with torch.no_grad():
        read.train()(tokens)
    assert not read._cache


def test_autocast_does_not_decide_what_is_kept() -> None:
    read, tokens = counted(), torch.tensor([4, 5])
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert read(tokens).dtype == torch.float32


def test_a_copy_reads_the_same_words() -> None:
    read = embedding()
    assert copy.deepcopy(read).spellings is read.spellings
    assert set(pickle.loads(pickle.dumps(read.state_dict()))) == set(read.state_dict())


# The network over characters: equal to loops in value and gradient; padding changes nothing; options are checked
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


@pytest.mark.parametrize("options", [{}, {"highway_layers": 0}, {"highway_layers": 2, "size": 4}])
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
