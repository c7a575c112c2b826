"""A dictionary of fairseq that also knows strings outside itself, where they may be evidence.

Its size, and the ids of its words, are fairseq's. A string outside gets an id beyond the size when it is first looked
up, and is itself again in what fairseq prints: `fairseq-interactive`, `fairseq-generate` and BLEU see real strings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_llrnn.evidence.run_terms import RunTerms
from fairseq_llrnn.evidence.table import EvidenceTable
from fairseq_llrnn.evidence.term_marks import plain
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
        self.terms: RunTerms | None = None  # what lines are searched for, where the prior has terms

    def __getitem__(self, index: int) -> str:
        index = plain(int(index))
        return self._words.symbols[index] if index < len(self._words.symbols) else self.unk_word

    def index(self, sym: str) -> int:
        found = self._index(sym)
        return self.unk() if found is None else found

    def encode_line(self, line: str, *args: Any, **options: Any) -> Tensor:
        """As fairseq's; where the prior has terms, with their marks. What is behind a tab are terms of this line."""
        if self.terms is None:
            whole: Tensor = super().encode_line(line, *args, **options)
            return whole
        text, *cells = line.rstrip("\n").split("\t")
        tokens: Tensor = super().encode_line(text, *args, **options)
        made = self.terms.marked(tokens.tolist(), [cell for cell in cells if cell.strip()])
        return torch.tensor(made, dtype=torch.long)

    def add_symbol(self, word: str, n: int = 1, overwrite: bool = False) -> int:
        """The id of a word. The dictionary never grows, as fairseq's does while it prints translations."""
        return self.index(word)


def known_words(tokens: Tensor, dictionary: Dictionary) -> Tensor:
    """The tokens with <unk> for strings outside the dictionary, without marks: all that a table of rows can read."""
    own = plain(tokens)
    return own.masked_fill(own >= len(dictionary), dictionary.unk())


def open_source(dictionary: Dictionary, table: EvidenceTable) -> OpenDictionary:
    """Unknown words have an id where they are evidence, and are <unk> where they are not."""
    return OpenDictionary(dictionary, table.source, table.source_index)


def open_target(dictionary: Dictionary, table: EvidenceTable) -> OpenDictionary:
    """All unknown words have an id: which of them are slots, only the source can say."""
    return OpenDictionary(dictionary, table.target, table.target.index)


def open_words(dictionary: Dictionary, table: OpenTable) -> OpenDictionary:
    """All unknown words have an id, by which the open classes score them."""
    return OpenDictionary(dictionary, table.words, table.words.index)
