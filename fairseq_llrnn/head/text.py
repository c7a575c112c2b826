"""Tokenised text as numbers, and back.

Sizes: B sentences, T their length with `</s>`, L that of their sources, V words. Words are those of a dictionary,
`</s>` behind the last, padded on the right. Tokens from V on are strings outside the dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import EOS, PAD, UNK, OpenWords, plain

if TYPE_CHECKING:
    from fairseq_llrnn.head.head import LogLinearHead


def numbers(lines: Sequence[str], words: OpenWords, index: Callable[[str], int | None] | None = None) -> Tensor:
    """The lines as numbers: (B, T).

    Args:
        words: the dictionary. index: the number of any word, also of one that the dictionary lacks; None, or where it
            gives None: such a word is `<unk>`.
    """
    vocabulary = words.word_index
    index = vocabulary.get if index is None else index
    unk, eos = vocabulary[UNK], vocabulary[EOS]
    rows = [[*(unk if (i := index(word)) is None else i for word in line.split()), eos] for line in lines]
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


def encode(head: LogLinearHead, lines: Sequence[str], source: Tensor | None = None) -> Tensor:
    """Tokenised sentences as numbers, `</s>` behind the last word, padded on the right: (B, T), where the head is.

    Words outside the dictionary are `<unk>`; where classes have strings, they get numbers of their own.

    Args:
        source: of `encode_source`, (B, L), where several words or pieces may be one string of the source: its token
            then stands for them.
    """
    words = head.prior.session.target
    is_open = head.brings_strings or any(each.opens for each in head.sources)
    tokens = numbers(lines, words, words.index if is_open else None)
    if source is not None and len(tokens):
        rows = []
        for of_source, row in zip(source, tokens, strict=True):
            for each in head.sources:
                row = each.written(of_source if each.reads_marks else plain(of_source), row)
            rows.append(row)
        tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=head.pad)
        tokens = tokens[:, tokens.ne(head.pad).any(0)]
    return tokens.to(head.output.weight.device)


def encode_source(head: LogLinearHead, lines: Sequence[str], terms: Marks | None = None) -> Tensor:
    """As `encode`, sentences of the source language: (B, L). Words outside its dictionary may be classes.

    Args:
        terms: to be marked in the sentences; those of a single line stand behind it, with tabs.

    Raises:
        DataError: the prior knows no source words.
    """
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
    """The sentences that tokens (B, T) spell, up to `</s>`; one at the beginning of a row is left out."""
    return strings(tokens, head.prior.session.target)


def previous(head: LogLinearHead, targets: Tensor) -> Tensor:
    """The tokens before each target, which a network reads: `</s>`, then all but the last; (B, T) -> (B, T)."""
    return torch.cat([torch.full_like(targets[:, :1], head.eos), targets[:, :-1]], dim=1)
