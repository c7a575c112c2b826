"""The words of a training text, so that a score can be split into seen and unseen words.

A text in subword pieces has the words that its pieces spell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS, load_dictionary
from fairseq_llrnn.features.subwords import Convention
from fairseq_llrnn.files.binary_text import read_binary_text
from fairseq_llrnn.files.text_lines import iter_sentences

TRAINING_WORDS = "training-words.txt"  # in an exported folder


def words_of_lines(lines: Iterable[Sequence[str]], convention: Convention | None) -> frozenset[str]:
    """Return the words of lines of tokens: the tokens, or with a `convention` of pieces the words that they spell."""
    if convention is None:
        return frozenset(word for line in lines for word in line)
    spelled = {tuple(pieces) for line in lines for pieces in convention.split_words(line)}
    return frozenset(map(convention.join, spelled))


def words_of_text(path: Path | str, convention: Convention | None) -> frozenset[str]:
    """Return the words of a tokenised text, one sentence a line. Raises DataError as `iter_sentences`."""
    return words_of_lines((line.split() for _, line in iter_sentences(path)), convention)


def training_words(dictionary: Path, convention: Convention | None) -> frozenset[str] | None:
    """Return the words of the training text next to a dictionary: `train.bin`, or a list of `llrnn export`.

    Returns: the words without the special symbols, or None if neither file is there, or `train.bin` cannot be read.

    Raises:
        DataError: the dictionary, or the list, cannot be read.
    """
    prefix, listed = dictionary.with_name("train"), dictionary.with_name(TRAINING_WORDS)
    if not prefix.with_suffix(".idx").is_file():
        return words_of_text(listed, None) if listed.is_file() else None
    symbols = load_dictionary(dictionary).symbols
    try:
        tokens, lengths = read_binary_text(prefix, len(symbols))
    except DataError:  # of another --dataset-impl
        return None
    if convention is None:
        return frozenset(symbols[token] for token in np.unique(tokens).tolist()) - {*SPECIALS}
    sentences = np.split(tokens, np.cumsum(lengths)[:-1])
    return words_of_lines(([symbols[token] for token in s[:-1].tolist()] for s in sentences), convention)
