"""Which words have an identity of their own (`TOPFORM:elle`), and which share a signature with others.

Sizes: V words of the dictionary, M words with an identity. The M most frequent ones, all, or `auto`: those that the
counted text shows at least `floor` times. No number of words is right for every corpus: the 2,500 most frequent words
include some that occur once, if the text has 20,000 words, and leave out some that occur 29 times, if it has a million.
A count says how much there is to learn a word's own weights from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.feature_table import Signatures, top_words

AUTO: Literal["auto"] = "auto"
IDENTITY_FLOOR = 5
TopWords = int | Literal["all", "auto"]


def words_with_identity(
    counts: np.ndarray, ordinary: np.ndarray, top: TopWords, floor: int, option: str
) -> np.ndarray:
    """Indices of the words that have an identity.

    Args:
        counts: (V,) counts. ordinary: (V,) bool, False for specials and padding entries of the dictionary.
        top: how many, the most frequent ones; `all`; or `auto`: those with a count of at least `floor`.
        option: what the user called `top`.

    Raises:
        OptionError: fewer ordinary words than asked for; `auto` without any count; a floor below 1.
    """
    if top == "all":
        return np.flatnonzero(ordinary)
    if top != AUTO:
        return top_words(counts, ordinary, top, option)
    if floor < 1:
        raise OptionError(f"identity_floor {floor}: expected a count of at least 1; for every word, say {option} all")
    if not counts[ordinary].any():
        raise OptionError(
            f"{option} auto: expected counts, found none for any word of the dictionary; give a text with "
            f"--count-text, or say {option} M or {option} all (in a Recipe: text, or top_words)"
        )
    return np.flatnonzero(ordinary & (counts >= floor))


@dataclass(frozen=True)
class Sharing:
    """Ordinary words that the features cannot tell from at least one other: the background alone does."""

    words: int
    tokens: float  # their part of all counted tokens of ordinary words, 0 … 1; 0 where nothing was counted


def sharing(signatures: Signatures, counts: np.ndarray, ordinary: np.ndarray) -> Sharing:
    """How many words share a signature, and how much of the text they are.

    Args:
        counts: (V,) counts. ordinary: (V,) bool, as above.
    """
    sizes = np.bincount(signatures.class_of[ordinary], minlength=signatures.num_classes)
    shared = ordinary & (sizes[signatures.class_of] > 1)
    total = counts[ordinary].sum()
    return Sharing(int(shared.sum()), float(counts[shared].sum() / total) if total > 0 else 0.0)
