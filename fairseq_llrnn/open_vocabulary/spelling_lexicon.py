"""The lexicon of an open vocabulary: lists of words that unknown words often come from.

Sizes: K lists, O classes, n strings, m strings of all lists together.

The lexicon is a part of each class's mixture (numbers.py), with the share λ_ko of list k:

    P_o(w)  =  Σ_k λ_ko P_k(w)  +  (1 − Σ_k λ_ko) (numbers and characters)

A file gives a list as it is, and one with a capital at the beginning of each word, so that a class of capitalised words
can choose the second. lexicon_weights.py estimates P_k and λ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairseq_llrnn.open_vocabulary.alphabet import is_text
from fairseq_llrnn.open_vocabulary.listed_strings import ListedStrings

SEPARATOR = "\n"  # of stored strings


@dataclass(frozen=True)
class SpellingLexicon:
    """K distributions over strings, and their shares in the classes (module docstring)."""

    lists: tuple[ListedStrings, ...]  # K
    shares: np.ndarray  # (K, O) float64, λ

    @cached_property
    def log_rest(self) -> np.ndarray:
        """log(1 − Σ_k λ_ko): (O,)."""
        rest: np.ndarray = np.log1p(-self.shares.sum(0))
        return rest

    def probs(self, strings: list[str]) -> np.ndarray:
        """Return Σ_k λ_ko P_k of each string: (n, O) float64."""
        by_list = np.stack([listed.string_probs(strings) for listed in self.lists], axis=1)
        weighted: np.ndarray = by_list @ self.shares
        return weighted

    def draw(self, of_class: int, count: int, random: np.random.Generator) -> list[str]:
        """Return a random number of `count` samples of a class: those that come from the lists."""
        shares = self.shares[:, of_class]
        numbers = random.multinomial(count, np.append(shares, max(0.0, 1.0 - shares.sum())))[:-1]
        pairs = zip(self.lists, numbers.tolist(), strict=True)
        return [string for listed, number in pairs for string in listed.draw(number, random)]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays for the prior: the strings in UTF-8, one a line."""
        texts = [SEPARATOR.join(listed.strings).encode("utf-8") for listed in self.lists]
        return {
            "lexicon_text": np.frombuffer(b"".join(texts), dtype=np.uint8),
            "lexicon_bytes": np.array([len(text) for text in texts], dtype=np.int64),
            "lexicon_probs": np.concatenate([listed.probs for listed in self.lists]),
            "lexicon_shares": self.shares.flatten(),
        }


def read_spelling_lexicon(
    row: Callable[[str, type, int | None], np.ndarray], arrays: Mapping[str, Any], num_classes: int
) -> SpellingLexicon | None:
    """Return the lexicon of `arrays`, or None if they have none.

    Args:
        row: returns an array of a name, type and size. It raises ValueError for another one.

    Raises:
        ValueError, KeyError, TypeError: invalid arrays, which are untrusted input.
    """
    if "lexicon_text" not in arrays:
        return None
    sizes = row("lexicon_bytes", np.int64, None)
    shares = row("lexicon_shares", np.float64, len(sizes) * num_classes).reshape(len(sizes), num_classes)
    text, probs = row("lexicon_text", np.uint8, None), row("lexicon_probs", np.float64, None)
    if not len(sizes) or (sizes < 1).any() or sizes.sum() != len(text):
        raise ValueError("the spelling lexicon: the parts do not add up to the whole")
    if not (shares >= 0.0).all() or not (shares.sum(0) < 1.0).all():
        raise ValueError("the spelling lexicon has shares outside 0 … 1")
    lists, start = [], 0
    for part in np.split(text, np.cumsum(sizes)[:-1]):
        strings = tuple(part.tobytes().decode("utf-8").split(SEPARATOR))  # UnicodeDecodeError is a ValueError
        of_list = probs[start : start + len(strings)]
        start += len(strings)
        is_ascending = all(first < second for first, second in zip(strings, strings[1:], strict=False))
        if not is_ascending or not all(map(is_text, strings)):
            raise ValueError("the strings of the spelling lexicon are no ascending words")
        if len(of_list) != len(strings) or not (of_list >= 0.0).all() or abs(of_list.sum() - 1.0) > 1e-6:
            raise ValueError("the probabilities of the spelling lexicon do not add up to one")
        lists.append(ListedStrings(strings, of_list))
    if start != len(probs):
        raise ValueError("the spelling lexicon has more probabilities than strings")
    return SpellingLexicon(tuple(lists), shares)
