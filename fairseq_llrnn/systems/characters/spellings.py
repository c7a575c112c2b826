"""The spelling of words by their ids: of a dictionary's words, and of strings that got ids beyond it.

Sizes: K words, P symbols of the longest, A symbols in all. A row begins with BEGIN and stops with END (alphabet.py).

* A character that fewer than FLOOR words of the dictionary have is one symbol with all characters that none of them
  has, so that training meets this symbol. Punctuation is spared, which is in one word each: a character of which a
  whole word consists has its own symbol.
* <s>, <pad>, </s> and <unk> are not spelled: each is a symbol of its own, the only one between beginning and end.
* The empty word has no symbol between beginning and end.
* Of a word with more than LONGEST characters, only its two ends are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from fairseq_llrnn.features.dictionary import PADDING_ENTRY, SPECIALS, OpenWords
from fairseq_llrnn.open_vocabulary.alphabet import END, OTHER, Alphabet

FLOOR = 2  # a change makes the weights of older checkpoints meaningless
LONGEST = 60


class Spellings:
    """The words of an OpenWords as rows of symbols."""

    def __init__(self, words: OpenWords, spare_whole_words: bool = True) -> None:
        """spare_whole_words: False as in older checkpoints, for which `,` and `;` are one symbol."""
        self.words = words
        symbols = words.symbols[: words.num_words]
        self._special = {i: SPECIALS.index(word) for i, word in enumerate(symbols) if word in SPECIALS}
        counts: Counter[str] = Counter()
        for i, word in enumerate(symbols):
            if i not in self._special and not PADDING_ENTRY.fullmatch(word):
                different = set(word)
                spared = spare_whole_words and len(different) == 1
                counts.update(dict.fromkeys(different, FLOOR if spared else 1))
        self.alphabet = Alphabet.of([character for character, count in counts.items() if count >= FLOOR])
        self.unknown = self.alphabet.size  # the symbol of all other characters
        self.num_symbols = self.unknown + 1 + len(SPECIALS)  # A

    def __deepcopy__(self, memo: object) -> Spellings:
        return self  # a copy of a model reads the same words

    def rows(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The symbols of some words, and how many each has: ids (K,) -> (K, P), (K,), int64."""
        symbols = self.words.symbols
        special = [(row, self._special[i]) for row, i in enumerate(ids.tolist()) if i in self._special]
        strings = [symbols[i] for i in ids.tolist()]
        for row, _ in special:
            strings[row] = "?"  # in its place stands the symbol
        table, lengths = self.rows_of(strings)
        for row, which in special:
            table[row, 1] = self.unknown + 1 + which
        return table, lengths

    def rows_of(self, strings: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """As `rows`, of any strings."""
        half = LONGEST // 2
        flat = self.alphabet.rows([s if len(s) <= LONGEST else s[:half] + s[-half:] for s in strings])
        lengths = np.bincount(flat.string, minlength=len(strings))
        table = np.full((len(strings), lengths.max(initial=0)), END, dtype=np.int64)
        table[flat.string, flat.depth] = np.where(flat.symbols == OTHER, self.unknown, flat.symbols)
        return table, lengths
