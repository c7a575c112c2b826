"""A vector for a word from its characters: narrow convolutions, their maxima over time, highway layers.

Sizes: N words, P symbols of the longest one (its beginning and its end are symbols), d width of a symbol's embedding, w
width of a filter, h filters in all. Source: Jernite 2018, §2.2, which is Kim, Jernite, Sontag & Rush 2016. With C (d×P)
the embeddings of a word's symbols,

    f[i] = tanh(⟨C[:, i : i + w − 1], H⟩ + b),     y = max_i f[i]  for each filter H                     (2.1, 2.2)
    z = t ⊙ relu(W_H y + b_H) + (1 − t) ⊙ y,       t = σ(W_T y + b_T)  in each highway layer             (2.4)
    z = relu(W y + b)                              in their place, for comparison                        (2.3)

A window lies within the word. Only a word that is shorter than a filter has a window that goes beyond it, its first,
where zeros stand behind the word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.errors import OptionError

TRANSFORM_BIAS = -2.0  # of b_T at the beginning, when a highway layer shall carry y on
MOST_FILTERS, WIDEST, MOST_LAYERS = 20_000, 30, 10  # of one network: what is beyond is a slip of the keyboard

# the small and the large network of the thesis' Table 2.2, (width, how many)
SMALL = tuple((w, 25 * w) for w in range(1, 7))
LARGE = tuple((w, min(200, 50 * w)) for w in range(1, 8))


@dataclass(frozen=True)
class CharacterOptions:
    """The sizes of a network over characters; those of the thesis' small model where nothing is said."""

    embed_dim: int = 15  # d
    filters: tuple[tuple[int, int], ...] = SMALL  # (w, how many of them), widths rising
    highway_layers: int = 1
    mlp: bool = False  # one plain layer in the place of highway layers
    size: int | None = None  # of the result, by a linear map; None: h, without one

    @property
    def num_filters(self) -> int:
        """h"""
        return sum(count for _, count in self.filters)

    @property
    def output_size(self) -> int:
        return self.num_filters if self.size is None else self.size


def parse_filters(text: str) -> tuple[tuple[int, int], ...]:
    """`1:25,2:50` -> ((1, 25), (2, 50)). Raises OptionError for anything else, and for sizes out of range."""
    expected = "expected widths and how many filters have them, as in 1:25,2:50,3:75"
    filters: list[tuple[int, int]] = []
    for part in text.split(","):
        numbers = part.split(":")
        if len(numbers) != 2 or not all(number.strip().isdecimal() and len(number) < 9 for number in numbers):
            raise OptionError(f"--character-filters {text}: {expected}, found {part!r}")
        filters.append((int(numbers[0]), int(numbers[1])))
    widths = [width for width, _ in filters]
    if len(set(widths)) < len(widths):
        raise OptionError(f"--character-filters {text}: {expected}, found a width twice; give each once")
    if not (min(widths) >= 1 and max(widths) <= WIDEST and min(count for _, count in filters) >= 1):
        raise OptionError(f"--character-filters {text}: expected widths from 1 to {WIDEST}, and one filter of each")
    if sum(count for _, count in filters) > MOST_FILTERS:
        raise OptionError(f"--character-filters {text}: expected at most {MOST_FILTERS:,} filters in all; give fewer")
    return tuple(sorted(filters))


def written(filters: Sequence[tuple[int, int]]) -> str:
    """As `parse_filters` reads it."""
    return ",".join(f"{width}:{count}" for width, count in filters)


class Highway(nn.Module):
    """One highway layer (eq. 2.4)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.change, self.transform = nn.Linear(size, size), nn.Linear(size, size)
        nn.init.constant_(self.transform.bias, TRANSFORM_BIAS)

    def forward(self, y: Tensor) -> Tensor:
        """(N, h) -> (N, h)"""
        gate = torch.sigmoid(self.transform(y))
        return gate * torch.relu(self.change(y)) + (1.0 - gate) * y


class Filters(nn.Module):
    """All filters of one width, as one product with every window of every word (eq. 2.1, 2.2)."""

    def __init__(self, embed_dim: int, width: int, count: int) -> None:
        super().__init__()
        self.width = width
        self.linear = nn.Linear(width * embed_dim, count)  # a filter's d weights of its first column come first

    def forward(self, columns: Tensor, lengths: Tensor) -> Tensor:
        """The maxima of each word: columns (N, P, d), zeros behind each word's length (N,); P ≥ w -> (N, n)."""
        windows = (lengths - self.width + 1).clamp_min(1)  # shape: (N,), how many each word has
        word = torch.repeat_interleave(windows)  # shape: (M,), of each window
        place = torch.arange(len(word), device=word.device) - (windows.cumsum(0) - windows)[word]
        first = word * columns.size(1) + place
        index = first.unsqueeze(1) + torch.arange(self.width, device=word.device)  # shape: (M, w)
        maps = self.linear(functional.embedding(index, columns.flatten(0, 1)).flatten(1))  # shape: (M, n)
        # tanh rises, so the maximum is taken first
        return torch.tanh(torch.segment_reduce(maps, "max", lengths=windows, unsafe=True))


class CharacterNetwork(nn.Module):
    """Words as rows of symbols -> one vector each (module docstring)."""

    def __init__(self, num_symbols: int, options: CharacterOptions) -> None:
        super().__init__()
        size = options.num_filters
        self.embedding = nn.Embedding(num_symbols, options.embed_dim)
        self.filters = nn.ModuleList(Filters(options.embed_dim, w, n) for w, n in options.filters)
        self.widest = max(w for w, _ in options.filters)
        plain = [nn.Sequential(nn.Linear(size, size), nn.ReLU())] if options.mlp else []
        self.layers = nn.Sequential(*plain, *(Highway(size) for _ in range(options.highway_layers)))
        self.projection = nn.Identity() if options.size is None else nn.Linear(size, options.size)

    def forward(self, symbols: Tensor, lengths: Tensor) -> Tensor:
        """symbols (N, P), of which the first lengths (N,) of each row count -> (N, output size)."""
        return self.after_filters(self.before_layers(symbols, lengths))

    def resize_alphabet(self, num_symbols: int) -> None:
        """Make room for the weights of another alphabet, in the same parameter; values have to be loaded after this."""
        weight = self.embedding.weight
        weight.data = weight.data.new_zeros(num_symbols, weight.size(1))
        self.embedding.num_embeddings = num_symbols

    def before_layers(self, symbols: Tensor, lengths: Tensor) -> Tensor:
        """y, before the highway: (N, h)."""
        inside = torch.arange(symbols.size(1), device=symbols.device) < lengths.unsqueeze(1)  # shape: (N, P)
        columns = self.embedding(symbols) * inside.unsqueeze(2)  # shape: (N, P, d)
        columns = functional.pad(columns, (0, 0, 0, max(0, self.widest - symbols.size(1))))
        return torch.cat([filters(columns, lengths) for filters in self.filters], dim=1)

    def after_filters(self, y: Tensor) -> Tensor:
        """What the layers make of it: (N, h) -> (N, output size)."""
        result: Tensor = self.projection(self.layers(y))
        return result
