"""Vectors of words from their characters: a network, and an embedding that replaces a table with a row per word.

Sizes: N words, K distinct words, P symbols of the longest one (including its beginning and end), A symbols in all, d
width of a symbol's embedding, w width of a filter, h filters in all, D width of the result (h without `size`).

A `CharacterNetwork` has narrow convolutions, their maxima over time, and highway layers. Source: Jernite 2018, §2.2,
which is Kim, Jernite, Sontag & Rush 2016. With C (d×P) the embeddings of a word's symbols,

    f[i] = tanh(⟨C[:, i : i + w − 1], H⟩ + b),     y = max_i f[i]  for each filter H                     (2.1, 2.2)
    z = t ⊙ relu(W_H y + b_H) + (1 − t) ⊙ y,       t = σ(W_T y + b_T)  in each highway layer             (2.4)
    z = relu(W y + b)                              instead, for comparison                               (2.3)

Windows lie within the word. Only a word shorter than a filter has one window beyond its end, padded with zeros.

`Spellings` are the symbols of words by id: of a dictionary's words, and of strings with ids beyond it
(features/dictionary.py). A row begins with BEGIN and stops with END (open_vocabulary/alphabet.py).

* All characters in fewer than FLOOR words of the dictionary share a symbol, which training thus contains. Exceptions
  are characters that are the only ones of a word (punctuation). They have their own symbols.
* <s>, <pad>, </s> and <unk> are not spelled. Each is a separate symbol, the only one between beginning and end.
* The empty word has no symbol between beginning and end.
* Only the two ends of a word with more than LONGEST characters are used.

A `CharacterEmbedding` computes the vector of each distinct word of a batch once, because it does not depend on the
context:

    read = CharacterEmbedding(prior.session.target, CharacterOptions())
    vectors = read(tokens)                                                   # (…,) -> (…, D)

Without a gradient and outside training, vectors are cached until weights change. In search and evaluation,
words recur in following sentences, most words of a large dictionary never occur, and strings outside it have vectors,
too. So the table grows on demand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import PADDING_ENTRY, SPECIALS, OpenWords
from fairseq_llrnn.open_vocabulary.alphabet import END, OTHER, Alphabet

TRANSFORM_BIAS = -2.0  # initial b_T, with which a highway layer mostly copies y
MOST_FILTERS, WIDEST, MOST_LAYERS = 20_000, 30, 10  # limits against typing errors

# the small and the large network of the thesis' Table 2.2, (width, how many)
SMALL = tuple((w, 25 * w) for w in range(1, 7))
LARGE = tuple((w, min(200, 50 * w)) for w in range(1, 8))


@dataclass(frozen=True)
class CharacterOptions:
    """The sizes of a network over characters. The defaults are the thesis' small model."""

    embed_dim: int = 15  # d
    filters: tuple[tuple[int, int], ...] = SMALL  # (w, number of filters), by width
    highway_layers: int = 1
    size: int | None = None  # of the result, after a linear map; None: h, without a map

    @property
    def num_filters(self) -> int:
        """Return h."""
        return sum(count for _, count in self.filters)

    @property
    def output_size(self) -> int:
        return self.num_filters if self.size is None else self.size


def parse_filters(text: str) -> tuple[tuple[int, int], ...]:
    """Parse `1:25,2:50` into ((1, 25), (2, 50)). Raises OptionError for other formats, and for sizes out of range."""
    expected = "expected widths and their numbers of filters, as in 1:25,2:50,3:75"
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


def format_filters(filters: Sequence[tuple[int, int]]) -> str:
    """Format filters for `parse_filters`."""
    return ",".join(f"{width}:{count}" for width, count in filters)


class Highway(nn.Module):
    """One highway layer (eq. 2.4)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.change, self.transform = nn.Linear(size, size), nn.Linear(size, size)
        nn.init.constant_(self.transform.bias, TRANSFORM_BIAS)

    def forward(self, y: Tensor) -> Tensor:
        """Return (N, h) from (N, h)."""
        gate = torch.sigmoid(self.transform(y))
        return gate * torch.relu(self.change(y)) + (1.0 - gate) * y


class _Maxima(torch.autograd.Function):
    """The maximum of each word's windows, whose gradient is shared among ties.

    torch's gradient of `segment_reduce` (2.13) shares a positive gradient, but gives a negative one in full to each
    tie.
    """

    @staticmethod
    def forward(ctx: Any, maps: Tensor, windows: Tensor, word: Tensor) -> Tensor:
        """Return maxima: maps (M, n), windows (N,) of each word, word (M,) of each window -> (N, n)."""
        maxima = torch.segment_reduce(maps, "max", lengths=windows, unsafe=True)
        ctx.save_for_backward(maps, maxima, word)
        return maxima

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        maps, maxima, word = ctx.saved_tensors
        highest = maps == maxima[word]
        num_ties = torch.zeros_like(maxima).index_add_(0, word, highest.to(maxima.dtype))
        return (grad / num_ties)[word].masked_fill_(~highest, 0.0), None, None


class Filters(nn.Module):
    """All filters of one width, as one product with every window of every word (eq. 2.1, 2.2)."""

    def __init__(self, embed_dim: int, width: int, count: int) -> None:
        super().__init__()
        self.width = width
        self.linear = nn.Linear(width * embed_dim, count)  # column by column, d weights each

    def forward(self, columns: Tensor, lengths: Tensor) -> Tensor:
        """Return the maxima of each word: columns (N, P, d), zeros after each word's length (N,), P ≥ w -> (N, n)."""
        windows = (lengths - self.width + 1).clamp_min(1)  # shape: (N,), windows of each word
        word = torch.repeat_interleave(windows)  # shape: (M,), of each window
        place = torch.arange(len(word), device=word.device) - (windows.cumsum(0) - windows)[word]
        first = word * columns.size(1) + place
        index = first.unsqueeze(1) + torch.arange(self.width, device=word.device)  # shape: (M, w)
        maps = self.linear(functional.embedding(index, columns.flatten(0, 1)).flatten(1))  # shape: (M, n)
        # tanh is increasing, so the maximum comes first
        return torch.tanh(_Maxima.apply(maps, windows, word))


class CharacterNetwork(nn.Module):
    """Words as rows of symbols -> one vector each (module docstring)."""

    def __init__(self, num_symbols: int, options: CharacterOptions) -> None:
        super().__init__()
        size = options.num_filters
        self.embedding = nn.Embedding(num_symbols, options.embed_dim)
        self.filters = nn.ModuleList(Filters(options.embed_dim, w, n) for w, n in options.filters)
        self.widest = max(w for w, _ in options.filters)
        self.layers = nn.Sequential(*(Highway(size) for _ in range(options.highway_layers)))
        self.projection = nn.Identity() if options.size is None else nn.Linear(size, options.size)

    def forward(self, symbols: Tensor, lengths: Tensor) -> Tensor:
        """Return vectors: symbols (N, P), with lengths (N,) -> (N, output size)."""
        return self.after_filters(self.before_layers(symbols, lengths))

    def before_layers(self, symbols: Tensor, lengths: Tensor) -> Tensor:
        """Return y, before the highway layers, (N, h)."""
        inside = torch.arange(symbols.size(1), device=symbols.device) < lengths.unsqueeze(1)  # shape: (N, P)
        columns = self.embedding(symbols) * inside.unsqueeze(2)  # shape: (N, P, d)
        columns = functional.pad(columns, (0, 0, 0, max(0, self.widest - symbols.size(1))))
        return torch.cat([filters(columns, lengths) for filters in self.filters], dim=1)

    def after_filters(self, y: Tensor) -> Tensor:
        """Return the output of the layers: (N, h) -> (N, output size)."""
        result: Tensor = self.projection(self.layers(y))
        return result


FLOOR = 2  # a change invalidates the weights of older checkpoints
LONGEST = 60


class Spellings:
    """The words of an OpenWords as rows of symbols."""

    def __init__(self, words: OpenWords) -> None:
        self.words = words
        symbols = words.symbols[: words.num_words]
        self._special = {i: SPECIALS.index(word) for i, word in enumerate(symbols) if word in SPECIALS}
        counts: Counter[str] = Counter()
        for i, word in enumerate(symbols):
            if i not in self._special and not PADDING_ENTRY.fullmatch(word):
                different = set(word)
                counts.update(dict.fromkeys(different, FLOOR if len(different) == 1 else 1))
        self.alphabet = Alphabet.of([character for character, count in counts.items() if count >= FLOOR])
        self.unknown = self.alphabet.size  # the symbol of all other characters
        self.num_symbols = self.unknown + 1 + len(SPECIALS)  # A

    def __deepcopy__(self, memo: object) -> Spellings:
        return self  # a copy of a model reads the same words

    def rows(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the symbols of words and their lengths: ids (K,) -> (K, P), (K,), int64."""
        symbols = self.words.symbols
        special = [(row, self._special[i]) for row, i in enumerate(ids.tolist()) if i in self._special]
        strings = [symbols[i] for i in ids.tolist()]
        for row, _ in special:
            strings[row] = "?"  # replaced by the symbol below
        table, lengths = self.rows_of(strings)
        for row, symbol in special:
            table[row, 1] = self.unknown + 1 + symbol
        return table, lengths

    def rows_of(self, strings: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the same for any strings."""
        half = LONGEST // 2
        flat = self.alphabet.rows([s if len(s) <= LONGEST else s[:half] + s[-half:] for s in strings])
        lengths = np.bincount(flat.string, minlength=len(strings))
        table = np.full((len(strings), lengths.max(initial=0)), END, dtype=np.int64)
        table[flat.string, flat.depth] = np.where(flat.symbols == OTHER, self.unknown, flat.symbols)
        return table, lengths


State = tuple[tuple[int, int], ...]


def state_of(weights: Iterable[Tensor]) -> State:
    """Return a state that changes when a weight changes in place or is replaced."""
    return tuple((weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in weights)


AT_ONCE = 4096  # words in one chunk, without a gradient


class CharacterEmbedding(nn.Module):
    """Ids of words -> vectors (module docstring)."""

    reads_strings = True  # distinguishes strings outside the dictionary

    scale: Tensor

    def __init__(
        self, words: OpenWords, options: CharacterOptions, padding_idx: int | None = None, scale: float = 1.0
    ) -> None:
        """Build the embedding.

        Args:
            words: of either side of a prior's session.
            padding_idx: the id whose vector is zero (None: no padding).
            scale: a factor of the vectors, whose elements otherwise have a root mean square from 0.2 to 0.6 at the
                start. A Transformer of fairseq multiplies its input by the root of its width H, and needs 1/√H.
                Checkpoints store a factor other than 1. The weights of a checkpoint without one were trained with 1.
        """
        super().__init__()
        self.has_scale = scale != 1.0
        if self.has_scale:
            self.register_buffer("scale", torch.tensor(scale))
        self.spellings = Spellings(words)
        self.network = CharacterNetwork(self.spellings.num_symbols, options)
        self.embedding_dim = options.output_size  # D; torch's names, used by fairseq's encoders
        self.padding_idx = padding_idx
        self._cache: dict[int, Tensor] = {}  # by id, for weights in one state
        self._cached_state: State = ()

    @property
    def words(self) -> OpenWords:
        """Return the words that it embeds."""
        return self.spellings.words

    def forward(self, tokens: Tensor) -> Tensor:
        """Return vectors: (…,) -> (…, D)."""
        different, place = tokens.unique(return_inverse=True)
        vectors = functional.embedding(place, self.vectors(different))
        vectors = vectors * self.scale if self.has_scale else vectors
        return vectors if self.padding_idx is None else vectors * tokens.ne(self.padding_idx).unsqueeze(-1)

    def vectors(self, ids: Tensor) -> Tensor:
        """Return vectors of distinct words: (K,) -> (K, D)."""
        if self.training or torch.is_grad_enabled() or not len(ids):
            return self._read(*self.spellings.rows(ids.cpu().numpy()))
        state = state_of(self.parameters())
        if self._cached_state != state:
            self._cache, self._cached_state = {}, state
        numbers = ids.tolist()
        missing = np.array([number for number in numbers if number not in self._cache], dtype=np.int64)
        for start in range(0, len(missing), AT_ONCE):
            part = missing[start : start + AT_ONCE]
            # tensors of inference mode could not be used outside of it
            with torch.inference_mode(False), torch.no_grad():
                rows = self._read(*self.spellings.rows(part)).to(self.network.embedding.weight.dtype)  # not autocast's
            self._cache.update(zip(part.tolist(), rows, strict=True))
        return torch.stack([self._cache[number] for number in numbers])

    def before_and_after(self, strings: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return the filters' output and the vectors of any strings, known or unknown: (K, h), (K, D)."""
        starts = range(0, max(1, len(strings)), AT_ONCE)
        parts = [self._tensors(*self.spellings.rows_of(strings[start : start + AT_ONCE])) for start in starts]
        before = torch.cat([self.network.before_layers(*part) for part in parts])
        return before, self.network.after_filters(before)

    def train(self, mode: bool = True) -> CharacterEmbedding:
        if mode:
            self._cache = {}
        super().train(mode)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        if self.has_scale:
            state_dict.setdefault(f"{prefix}scale", torch.ones_like(self.scale))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _read(self, symbols: np.ndarray, lengths: np.ndarray) -> Tensor:
        read: Tensor = self.network(*self._tensors(symbols, lengths))
        return read

    def _tensors(self, symbols: np.ndarray, lengths: np.ndarray) -> tuple[Tensor, Tensor]:
        device = self.network.embedding.weight.device
        return torch.from_numpy(symbols).to(device), torch.from_numpy(lengths).to(device)
