"""Inputs of a head: texts as token ids, and embeddings.

Sizes: B sentences, T their length with `</s>`, L length of sources, V words, R input signatures, D embedding width.
Sentences end in `</s>` and are padded on the right. Token ids from V on are strings outside the dictionary.

    LogLinearHead(prior, H, embedding=FeatureInput(D))        e(x) = Σ_f ψ_f(x) U_f
    LogLinearHead(prior, H, embedding=FeatureInput(H, tied=True))         … with the weights of the output
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.utils.data import get_worker_info

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import EOS, PAD, UNK, OpenWords
from fairseq_llrnn.head.checks import check_rows, check_token_ids
from fairseq_llrnn.output.class_source import Head
from fairseq_llrnn.output.feature_weights import FeatureEmbedding
from fairseq_llrnn.prior.prior import Prior


def numbers(lines: Sequence[str], words: OpenWords, index: Callable[[str], int | None] | None = None) -> Tensor:
    """Return the token ids of lines: (B, T).

    Args:
        words: the dictionary. index: the id of any word, also of one outside the dictionary; a word without an id is
            `<unk>`. None: the ids of the dictionary.

    Raises:
        DataError: a word got a new id in a worker of a DataLoader, which the model's process cannot see.
    """
    vocabulary = words.word_index
    index = vocabulary.get if index is None else index
    unk, eos, before = vocabulary[UNK], vocabulary[EOS], len(words.symbols)
    rows = [[*(unk if (i := index(word)) is None else i for word in line.split()), eos] for line in lines]
    if len(words.symbols) > before and get_worker_info() is not None:
        raise DataError(
            f"{words.symbols[before]!r} would get a token id in a worker of a DataLoader, which the model's process "
            "cannot see; encode the texts before the workers start, or in the training loop"
        )
    length = max(map(len, rows), default=0)
    padded = [row + [vocabulary[PAD]] * (length - len(row)) for row in rows]
    return torch.tensor(padded, dtype=torch.long).view(len(rows), length)


def strings(tokens: Tensor, words: OpenWords) -> list[str]:
    """Return the words of each row (B, T) up to `</s>`; a first `</s>` is skipped."""
    vocabulary, lines = words.word_index, []
    for row in tokens.tolist():
        row = row[1:] if row[:1] == [vocabulary[EOS]] else row
        end = row.index(vocabulary[EOS]) if vocabulary[EOS] in row else len(row)
        lines.append(" ".join(words.symbols[token] for token in row[:end] if token != vocabulary[PAD]))
    return lines


class Marks(Protocol):
    """A list of terms that marks them in source sentences."""

    def marked(self, source: Sequence[int], cells: Sequence[str]) -> Sequence[int]:
        """Return the tokens of a sentence (L,) with marks. cells: the cells after the sentence, which tabs separate."""
        ...


def _sentences(lines: Iterable[str]) -> list[str]:
    if isinstance(lines, str):  # its letters would be sentences
        raise TypeError(f"expected a list of sentences, found the string {lines[:40]!r}; put it into a list")
    lines = list(lines)
    others = [line for line in lines if not isinstance(line, str)]
    if others:
        raise TypeError(f"expected sentences as strings, found {others[0]!r:.60}; join the words with blanks")
    return lines


def _check_other_shapes(name: str, tokens: Tensor) -> None:
    if not isinstance(tokens, Tensor):
        raise TypeError(f"expected {name} (B, T) as a tensor, found a {type(tokens).__name__}; use torch.tensor")
    if tokens.dim() != 2:
        shape = tuple(tokens.shape)
        raise DataError(f"expected {name} (B, T), found {shape}; for one sentence pass {name}.unsqueeze(0)")


def encode(head: Head, lines: Iterable[str], source: Tensor | None = None) -> Tensor:
    """Return the token ids of tokenised sentences, each with `</s>`, padded on the right: (B, T), on the head's device.

    Words outside the dictionary are `<unk>`, or get ids of their own if the head has classes of strings.

    Args:
        source: of `encode_source`, (B, L); needed if several words or pieces may be one string of the source. The
            string's token then replaces them.

    Raises:
        DataError: a word got a new id in a worker of a DataLoader, or `source` does not have one row per sentence.
        TypeError: a single string.
    """
    lines = _sentences(lines)
    words = head.prior.session.target
    is_open = head.has_source_strings or head.prior.open_words is not None
    tokens = numbers(lines, words, words.index if is_open else None)
    if source is not None and len(tokens):
        check_rows((len(tokens),), "sentences", "sentences", source=source)
        if (table := head.prior.offers() if head.has_source_strings else None) is not None:
            from fairseq_llrnn.evidence.slots import merged_target

            rows = [merged_target(table, *pair) for pair in zip(source, tokens, strict=True)]
            tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=head.pad)
            tokens = tokens[:, tokens.ne(head.pad).any(0)]
    return tokens.to(head.output.weight.device)


def encode_source(head: Head, lines: Iterable[str], terms: Marks | None = None) -> Tensor:
    """Return the token ids of source sentences, as `encode`: (B, L).

    Args:
        terms: terms to mark in the sentences; terms of a single line follow its sentence, separated by tabs.

    Raises:
        DataError: the prior has no source words, or a word got a new id in a worker of a DataLoader.
        TypeError: a single string.
    """
    lines = _sentences(lines)
    prior = head.prior
    if not prior.source_symbols:
        raise DataError(
            "encode_source needs a prior with source words; build it with translations or another part with a "
            "source_dictionary, or compute the token ids yourself"
        )
    if terms is None:
        tokens = numbers(lines, prior.session.source, prior.source_index)
    else:
        split = [line.split("\t") for line in lines]
        tokens = numbers([line for line, *_ in split], prior.session.source, prior.source_index)
        marked = [terms.marked(row, cells) for row, (_, *cells) in zip(tokens.tolist(), split, strict=True)]
        tokens = torch.tensor(marked, dtype=torch.long).view_as(tokens)
    return tokens.to(head.output.weight.device)


def decode(head: Head, tokens: Tensor) -> list[str]:
    """Return the sentences of tokens (B, T), up to `</s>`; a first `</s>` is skipped.

    Raises:
        DataError: tokens of another shape, or an invalid token id.
    """
    _check_other_shapes("tokens", tokens)
    check_token_ids(head, tokens=tokens)
    return strings(tokens, head.prior.session.target)


def previous(head: Head, targets: Tensor) -> Tensor:
    """Return the token before each target, the input of a network: `</s>`, then all but the last. (B, T) -> (B, T).

    Raises:
        DataError: targets of another shape.
    """
    _check_other_shapes("targets", targets)
    return torch.cat([torch.full_like(targets[:, :1], head.eos), targets[:, :-1]], dim=1)


ReadAs = Callable[[Tensor, Tensor], Tensor]  # OpenWords.input_id_of


class InputEmbedding(Protocol):
    """The interface of a head's embedding. See `WordFeatures`."""

    name: ClassVar[str]  # of the module in the head, and so of its weights in a checkpoint
    embedding_dim: int  # D
    sparse_gradients: bool
    input_id_of: ReadAs | None  # maps strings outside the dictionary to input ids

    def kept_rows(self) -> Tensor | None: ...

    def to_input_ids(self, tokens: Tensor, read: Tensor) -> Tensor: ...

    def __call__(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor: ...


class WordFeatures(FeatureEmbedding):
    """Embed tokens by their features ψ, strings outside the dictionary by features of their form, or as `<unk>`."""

    name = "embedding"
    input_id_of: ReadAs | None = None  # maps strings to input ids by their features

    def __init__(
        self, prior: Prior, size: int, weight: torch.nn.Parameter | None = None, row_rms: float | None = None
    ) -> None:
        """size: D. weight: (G, D), shared with another layer. row_rms: as in FeatureInput."""
        read = prior.input if prior.open_words is None else prior.open_words.vocabulary.input_signatures(prior.input)
        super().__init__(read.features, torch.from_numpy(read.class_of.copy()), size, weight, row_rms)
        self.embedding_dim = size  # torch's name
        self.num_words, self.unk = len(prior.symbols), prior.index(UNK)

    def kept_rows(self) -> Tensor | None:
        """Return the rows of all input signatures, (R, D), to share among calls of `forward`, or None."""
        none = self.sparse_gradients and torch.is_grad_enabled()
        return None if none else self.rows.compose(self.weight)

    def to_input_ids(self, tokens: Tensor, read: Tensor) -> Tensor:
        """Return ids that `forward` accepts. read: the tokens with <unk> for strings outside the dictionary."""
        return read if self.input_id_of is None else self.input_id_of(tokens, read)

    def forward(self, tokens: Tensor, table: Tensor | None = None) -> Tensor:
        """(…,) -> (…, D). table: of `kept_rows`."""
        vocabulary_size = self.num_words if self.input_id_of is None else self.class_of.numel()
        vectors: Tensor = super().forward(tokens.masked_fill(tokens >= vocabulary_size, self.unk), table)
        return vectors


class InputOf(Protocol):
    """A function that makes the embedding of a head."""

    option: ClassVar[str]  # its name in messages

    @property
    def size(self) -> int:
        """D"""
        ...

    def __call__(self, head: Any) -> torch.nn.Module: ...


@dataclass(frozen=True)
class FeatureInput:
    """An embedding of words by their features.

    Args:
        size: D. tied: whether it shares the feature weights with the output, which needs D = H.
        row_rms: the initial root mean square of the embeddings' elements, if not tied. None: weights from U(−0.1, 0.1).
    """

    size: int
    tied: bool = False
    row_rms: float | None = None
    option: ClassVar[str] = "--feature-input"

    def __call__(self, head: Head) -> WordFeatures:
        """Return the embedding of a head. Raises OptionError if the weights cannot be shared."""
        prior = head.prior
        if self.tied and self.size != head.hidden_size:
            raise OptionError(f"FeatureInput: tied needs size {head.hidden_size}, the hidden_size, found {self.size}")
        if self.tied and prior.input.features.names != prior.output.features.names:
            raise OptionError(
                "FeatureInput: tied: the prior has other features in the input than in the output; build it without "
                "input features, or do not tie"
            )
        return WordFeatures(prior, self.size, head.output.weight if self.tied else None, self.row_rms)
