"""What goes into a head: text as numbers, and what a network reads of them, an embedding that the caller gives.

Sizes: B sentences, T their length with `</s>`, L that of their sources, V words, R input signatures, D embedding width.
Words are those of a dictionary, `</s>` behind the last, padded on the right. Tokens from V on are strings outside the
dictionary.

    LogLinearHead(prior, H, embedding=FeatureInput(D))        e(x) = Σ_f ψ_f(x) U_f
    LogLinearHead(prior, H, embedding=FeatureInput(H, tied=True))         … with the weights of the output
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.utils.data import get_worker_info

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import EOS, PAD, UNK, OpenWords, plain
from fairseq_llrnn.head.checks import check_token_ids
from fairseq_llrnn.output.feature_weights import FeatureEmbedding
from fairseq_llrnn.prior.prior import Prior

if TYPE_CHECKING:
    from fairseq_llrnn.head.head import LogLinearHead


def numbers(lines: Sequence[str], words: OpenWords, index: Callable[[str], int | None] | None = None) -> Tensor:
    """The lines as numbers: (B, T).

    Args:
        words: the dictionary. index: the number of any word, also of one that the dictionary lacks; None, or where it
            gives None: such a word is `<unk>`.

    Raises:
        DataError: a word would get a number that only this process, a worker of a DataLoader, knows.
    """
    vocabulary = words.word_index
    index = vocabulary.get if index is None else index
    unk, eos, before = vocabulary[UNK], vocabulary[EOS], len(words.symbols)
    rows = [[*(unk if (i := index(word)) is None else i for word in line.split()), eos] for line in lines]
    if len(words.symbols) > before and get_worker_info() is not None:
        raise DataError(
            f"expected words that have numbers, found {words.symbols[before]!r}, which gets one here, in a worker of a "
            "DataLoader, where the model does not see it; encode the texts before the workers begin, or in the loop"
        )
    length = max(map(len, rows), default=0)
    padded = [row + [vocabulary[PAD]] * (length - len(row)) for row in rows]
    return torch.tensor(padded, dtype=torch.long).view(len(rows), length)


def strings(tokens: Tensor, words: OpenWords) -> list[str]:
    """The words of each row (B, T), up to `</s>`; one at the beginning starts the sentence, and is no word."""
    vocabulary, lines = words.word_index, []
    for row in tokens.tolist():
        row = row[1:] if row[:1] == [vocabulary[EOS]] else row
        end = row.index(vocabulary[EOS]) if vocabulary[EOS] in row else len(row)
        lines.append(" ".join(words.symbols[token] for token in row[:end] if token != vocabulary[PAD]))
    return lines


class Marks(Protocol):
    """What marks words of a source sentence: terms that its translation must have."""

    def marked(self, source: Sequence[int], cells: Sequence[str]) -> Sequence[int]:
        """The tokens of a sentence (L,), some of them marked; cells: what stood behind the sentence, with tabs."""
        ...


def _sentences(lines: Iterable[str]) -> list[str]:
    if isinstance(lines, str):  # each of whose letters is a string, too
        raise TypeError(f"expected a list of sentences, found the string {lines[:40]!r}; put it into a list")
    lines = list(lines)
    other = next((line for line in lines if not isinstance(line, str)), None)
    if other is not None:
        raise TypeError(f"expected sentences, words with blanks between them, found {other!r:.60}; join its words")
    return lines


def _check_other_shapes(name: str, tokens: Tensor) -> None:
    if tokens.dim() != 2:
        shape = tuple(tokens.shape)
        raise DataError(f"expected {name} (B, T), found {shape}; for one sentence give {name}.unsqueeze(0)")


def encode(head: LogLinearHead, lines: Iterable[str], source: Tensor | None = None) -> Tensor:
    """Tokenised sentences as numbers, `</s>` behind the last word, padded on the right: (B, T), where the head is.

    Words outside the dictionary are `<unk>`; where classes have strings, they get numbers of their own.

    Args:
        source: of `encode_source`, (B, L), where several words or pieces may be one string of the source: its token
            then stands for them.

    Raises:
        DataError: see `numbers`. TypeError: a single string.
    """
    lines = _sentences(lines)
    words = head.prior.session.target
    is_open = head.has_source_strings or any(each.opens for each in head.sources)
    tokens = numbers(lines, words, words.index if is_open else None)
    if source is not None and len(tokens):
        rows = []
        for of_source, row in zip(source, tokens, strict=True):
            for each in head.sources:
                row = each.retokenize_target(of_source if each.reads_marks else plain(of_source), row)
            rows.append(row)
        tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=head.pad)
        tokens = tokens[:, tokens.ne(head.pad).any(0)]
    return tokens.to(head.output.weight.device)


def encode_source(head: LogLinearHead, lines: Iterable[str], terms: Marks | None = None) -> Tensor:
    """As `encode`, sentences of the source language: (B, L). Words outside its dictionary may be classes.

    Args:
        terms: to be marked in the sentences; those of a single line stand behind it, with tabs.

    Raises:
        DataError: the prior knows no source words; see `numbers`. TypeError: a single string.
    """
    lines = _sentences(lines)
    prior = head.prior
    if not prior.source_symbols:
        raise DataError(
            "encode_source: expected a prior that knows source words, found one without; build it with translations "
            "or another part that knows the source (source_dictionary), or number the words yourself"
        )
    if terms is None:
        tokens = numbers(lines, prior.session.source, prior.source_index)
    else:
        split = [line.split("\t") for line in lines]
        tokens = numbers([line for line, *_ in split], prior.session.source, prior.source_index)
        marked = [terms.marked(row, cells) for row, (_, *cells) in zip(tokens.tolist(), split, strict=True)]
        tokens = torch.tensor(marked, dtype=torch.long).view_as(tokens)
    return tokens.to(head.output.weight.device)


def decode(head: LogLinearHead, tokens: Tensor) -> list[str]:
    """The sentences that tokens (B, T) spell, up to `</s>`; one at the beginning of a row is left out.

    Raises DataError: tokens of another shape, or that are no word's number.
    """
    _check_other_shapes("tokens", tokens)
    check_token_ids(head, tokens=tokens)
    return strings(tokens, head.prior.session.target)


def previous(head: LogLinearHead, targets: Tensor) -> Tensor:
    """The tokens before each target, which a network reads: `</s>`, then all but the last; (B, T) -> (B, T).

    Raises DataError: targets of another shape.
    """
    _check_other_shapes("targets", targets)
    return torch.cat([torch.full_like(targets[:, :1], head.eos), targets[:, :-1]], dim=1)


ReadAs = Callable[[Tensor, Tensor], Tensor]  # ClassSource.read_as


class InputEmbedding(Protocol):
    """A module that a head reads with; `WordFeatures` says what is what."""

    name: ClassVar[str]  # of the module in the head, and so of its weights in a checkpoint
    embedding_dim: int  # D
    sparse_gradients: bool
    input_id_of: ReadAs | None  # what tells strings outside the dictionary apart by their features

    def kept_rows(self) -> Tensor | None: ...

    def to_input_ids(self, tokens: Tensor, read: Tensor) -> Tensor: ...

    def __call__(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor: ...

    def check_weights(self, state_dict: dict[str, Any], prefix: str) -> None: ...


class WordFeatures(FeatureEmbedding):
    """Embeds tokens by their features ψ; strings outside the dictionary as what they look like, or as `<unk>`."""

    name = "embedding"
    input_id_of: ReadAs | None = None  # of a source of classes that tells strings apart by their features

    def __init__(
        self, prior: Prior, size: int, weight: torch.nn.Parameter | None = None, row_rms: float | None = None
    ) -> None:
        """size: D. weight: (G, D), shared with another layer. row_rms: of FeatureInput."""
        read = prior.input
        for part in prior.parts:
            read = part.input_signatures(read)
        super().__init__(read.features, torch.from_numpy(read.class_of.copy()), size, weight, row_rms)
        self.embedding_dim = size  # torch's name
        self.num_words, self.unk = len(prior.symbols), prior.index(UNK)

    def kept_rows(self) -> Tensor | None:
        """Those of all input signatures, (R, D), to hand to `forward` several times; None: it needs none."""
        none = self.sparse_gradients and torch.is_grad_enabled()
        return None if none else self.rows.compose(self.weight)

    def to_input_ids(self, tokens: Tensor, read: Tensor) -> Tensor:
        """The tokens as `forward` can read them; read: with <unk> for strings outside the dictionary."""
        return read if self.input_id_of is None else self.input_id_of(tokens, read)

    def forward(self, tokens: Tensor, table: Tensor | None = None) -> Tensor:
        """(…,) -> (…, D); table: of `kept_rows`, to use again."""
        vocabulary_size = self.num_words if self.input_id_of is None else self.class_of.numel()
        vectors: Tensor = super().forward(tokens.masked_fill(tokens >= vocabulary_size, self.unk), table)
        return vectors

    def check_weights(self, state_dict: dict[str, Any], prefix: str) -> None:
        """Check, or change, what a checkpoint has of it; prefix: of the head's names, ends in a dot."""


class InputOf(Protocol):
    """Makes the embedding of a head."""

    option: ClassVar[str]  # what messages call it

    @property
    def size(self) -> int:
        """D"""
        ...

    def __call__(self, head: LogLinearHead) -> torch.nn.Module: ...


@dataclass(frozen=True)
class FeatureInput:
    """Makes the embedding of a head by features.

    Args:
        size: D. tied: whether it shares the weights per feature with the output; D must be H then.
        row_rms: the initial root mean square of the embeddings' elements, if not tied; None: each weight is drawn from
            U(−0.1, 0.1).
    """

    size: int
    tied: bool = False
    row_rms: float | None = None
    option: ClassVar[str] = "--feature-input"

    def __call__(self, head: LogLinearHead) -> WordFeatures:
        """Raises OptionError where the weights cannot be shared."""
        prior = head.prior
        if self.tied and self.size != head.hidden_size:
            raise OptionError(f"FeatureInput: tied: expected the size {head.hidden_size}, which is hidden_size, found "
                              f"{self.size}")  # fmt: skip
        if self.tied and prior.input.features.names != prior.output.features.names:
            raise OptionError(
                "FeatureInput: tied: expected the same features in input and output, but the prior was built with "
                "other input features; build it without them, or do not tie"
            )
        return WordFeatures(prior, self.size, head.output.weight if self.tied else None, self.row_rms)
