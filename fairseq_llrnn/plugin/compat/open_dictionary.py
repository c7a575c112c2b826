"""A dictionary of fairseq that also knows strings outside itself, where they may be evidence.

Its size, and the ids of its words, are fairseq's. A string outside gets an id beyond the size when it is first looked
up, and is itself again in what fairseq prints: `fairseq-interactive`, `fairseq-generate` and BLEU see real strings.
"""

from __future__ import annotations

from collections.abc import Callable

from fairseq.data import Dictionary
from torch import Tensor

from fairseq_llrnn.evidence.table import EvidenceTable
from fairseq_llrnn.features.open_words import OpenWords
from fairseq_llrnn.open_vocabulary.table import OpenTable


class OpenDictionary(Dictionary):
    """fairseq's dictionary over an evidence table's words."""

    def __init__(self, dictionary: Dictionary, words: OpenWords, index: Callable[[str], int | None]) -> None:
        """
        Args:
            words: of the table, which begin with those of `dictionary`.
            index: the id of a word; None for one that stays <unk>.
        """
        self.__dict__.update(dictionary.__dict__)
        self._words = words
        self._index = index

    def __getitem__(self, index: int) -> str:
        return self._words.symbols[index] if index < len(self._words.symbols) else self.unk_word

    def index(self, sym: str) -> int:
        found = self._index(sym)
        return self.unk() if found is None else found

    def add_symbol(self, word: str, n: int = 1, overwrite: bool = False) -> int:
        """The id of a word. The dictionary never grows, as fairseq's does while it prints translations."""
        return self.index(word)


def known_words(tokens: Tensor, dictionary: Dictionary) -> Tensor:
    """The tokens with <unk> for strings outside the dictionary: all that a table with a row per word can read."""
    return tokens.masked_fill(tokens >= len(dictionary), dictionary.unk())


def open_source(dictionary: Dictionary, table: EvidenceTable) -> OpenDictionary:
    """Unknown words have an id where they are evidence, and are <unk> where they are not."""
    return OpenDictionary(dictionary, table.source, table.source_index)


def open_target(dictionary: Dictionary, table: EvidenceTable) -> OpenDictionary:
    """All unknown words have an id: which of them are slots, only the source can say."""
    return OpenDictionary(dictionary, table.target, table.target.index)


def open_words(dictionary: Dictionary, table: OpenTable) -> OpenDictionary:
    """All unknown words have an id, by which the open classes score them."""
    return OpenDictionary(dictionary, table.words, table.words.index)
