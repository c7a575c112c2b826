"""Ids of words: those of a dictionary, and behind them strings that it lacks, numbered as they are met."""

from __future__ import annotations

from collections.abc import Sequence


class OpenWords:
    """The words of a dictionary, and strings that got an id later."""

    def __init__(self, symbols: Sequence[str]) -> None:
        self.known = len(symbols)
        self.symbols = list(symbols)
        self.known_index = {symbol: i for i, symbol in enumerate(symbols)}
        self.open_index: dict[str, int] = {}

    def index(self, word: str) -> int:
        """The id of a word; a word that has none gets one."""
        index = self.known_index.get(word)
        return self.open(word) if index is None else index

    def open(self, word: str) -> int:
        """The id beyond the dictionary of a string, whether or not the dictionary has it as well."""
        index = self.open_index.get(word)
        if index is None:
            index = self.open_index[word] = len(self.symbols)
            self.symbols.append(word)
        return index
