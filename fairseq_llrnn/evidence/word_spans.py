"""Where words stand in sentences of numbers: a token each, or several pieces each.

Sizes: L tokens of a sentence. Special symbols stand alone and spell no word. Which piece a `<unk>` was, and where its
word began and ended, nobody knows: all that may belong to its word spells none.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fairseq_llrnn.features.dictionary import SPECIALS, UNK, OpenWords
from fairseq_llrnn.features.subwords import Convention

_SPECIALS = frozenset(SPECIALS)


class WordSpans:
    """Words in the sentences of one language."""

    def __init__(self, tokens: OpenWords, convention: Convention | None) -> None:
        """convention: of pieces; None: every token is a word."""
        self.tokens, self.convention = tokens, convention
        self._before = np.zeros(0, dtype=bool)  # by id: whether a word begins with it
        self._after = np.zeros(0, dtype=bool)  # … and whether one ends with it

    def spans(self, sentence: np.ndarray) -> list[tuple[int, int]]:
        """Where each word begins, and where the next one does, in the sentence (L,)."""
        self._grow()
        starts = self._before[sentence]
        starts[1:] |= self._after[sentence[:-1]]
        starts[:1] = True
        return list(pairwise([*np.flatnonzero(starts).tolist(), len(sentence)])) if len(sentence) else []

    def word(self, tokens: np.ndarray) -> str | None:
        """The word that the tokens between two of its bounds spell; None: a special symbol, or one with `<unk>`."""
        symbols = [self.tokens.symbols[token] for token in tokens.tolist()]
        if not _SPECIALS.isdisjoint(symbols):
            return None
        return symbols[0] if self.convention is None else self.convention.join(symbols)

    def words_of(self, token: int) -> tuple[str, ...]:
        """The words that a token spells which is no piece, but stands for one word or several."""
        symbol = self.tokens.symbols[token]
        return tuple(symbol.split()) if self.convention is None else self.convention.words_of(symbol)

    def _grow(self) -> None:
        """Look at the strings that got a number since."""
        new = self.tokens.symbols[len(self._before) :]
        if new:
            self._before = np.concatenate([self._before, [self._is_bound(symbol, True) for symbol in new]])
            self._after = np.concatenate([self._after, [self._is_bound(symbol, False) for symbol in new]])

    def _is_bound(self, symbol: str, before: bool) -> bool:
        """Whether a word begins (or ends, where `before` is False) with this token, whatever its neighbours are."""
        if self.convention is None or (symbol in SPECIALS and symbol != UNK):
            return True
        if symbol == UNK or before != self.convention.mark_begins:
            return False
        return self.convention.is_marked(symbol) == before
