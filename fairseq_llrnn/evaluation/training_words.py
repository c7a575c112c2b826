"""The words of a training text, so that a score can be split into seen and unseen words.

A text in subword pieces shows the words that its pieces spell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.features.subwords import Convention
from fairseq_llrnn.files.binary_text import read_binary_text
from fairseq_llrnn.files.text_lines import iter_sentences


def words_of_lines(lines: Iterable[Sequence[str]], convention: Convention | None) -> frozenset[str]:
    """Return the words of lines of tokens: the tokens, or with a `convention` of pieces the words that they spell."""
    if convention is None:
        return frozenset(word for line in lines for word in line)
    spelled = {tuple(pieces) for line in lines for pieces in convention.split_words(line)}
    return frozenset(map(convention.join, spelled))


def words_of_text(path: Path | str, convention: Convention | None) -> frozenset[str]:
    """Return the words of a tokenised text, one sentence a line. Raises DataError as `iter_sentences`."""
    return words_of_lines((line.split() for _, line in iter_sentences(path)), convention)


def words_of_binary(prefix: Path | str, symbols: Sequence[str], convention: Convention | None) -> frozenset[str]:
    """Return the words of a text of fairseq-preprocess without the special symbols.

    Args:
        prefix: of `PREFIX.bin` and `PREFIX.idx`. symbols: of its dictionary, (V,).

    Raises:
        DataError: as `read_binary_text`.
    """
    tokens, lengths = read_binary_text(prefix, len(symbols))
    if convention is None:
        return frozenset(symbols[token] for token in np.unique(tokens).tolist()) - {*SPECIALS}
    sentences = np.split(tokens, np.cumsum(lengths)[:-1])
    return words_of_lines(([symbols[token] for token in s[:-1].tolist()] for s in sentences), convention)
