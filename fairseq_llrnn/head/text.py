"""Tokenised text as numbers, and back: the words of a dictionary, `</s>` behind the last, padded on the right.

Sizes: B sentences, T their length with `</s>`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fairseq_llrnn.features.dictionary import EOS, PAD, UNK
from fairseq_llrnn.features.open_words import OpenWords


def encode(lines: Sequence[str], words: OpenWords, index: Callable[[str], int | None] | None = None) -> Tensor:
    """The lines as numbers: (B, T).

    Args:
        words: the dictionary. index: the number of any word, also of one that the dictionary lacks; None, or where it
            gives None: such a word is `<unk>`.
    """
    known = words.known_index
    index = known.get if index is None else index
    rows = [[*(known[UNK] if (i := index(word)) is None else i for word in line.split()), known[EOS]] for line in lines]
    length = max(map(len, rows), default=0)
    padded = [row + [known[PAD]] * (length - len(row)) for row in rows]
    return torch.tensor(padded, dtype=torch.long).view(len(rows), length)


def decode(tokens: Tensor, words: OpenWords) -> list[str]:
    """The words of each row (B, T), up to `</s>`; one at the beginning starts the sentence, and is no word."""
    known, lines = words.known_index, []
    for row in tokens.tolist():
        row = row[1:] if row[:1] == [known[EOS]] else row
        end = row.index(known[EOS]) if known[EOS] in row else len(row)
        lines.append(" ".join(words.symbols[token] for token in row[:end] if token != known[PAD]))
    return lines
