"""Capitals of a text that a model cannot know: every word of its dictionary is in lower case.

Such words count as unknown ones, and nothing else tells the user of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairseq_llrnn.evaluation.text_bits import LineScore
from fairseq_llrnn.features.casing import TURKIC, lower

LANGUAGES = (None, TURKIC[0])  # whose rules are tried


class CapitalWords:
    """Counts the unknown words that a dictionary without capitals has in lower case."""

    def __init__(self, symbols: Sequence[str]) -> None:
        self.known = set(symbols) if all(symbol == lower(symbol) for symbol in symbols) else set()
        self.count, self.example = 0, ""

    def watch(self, lines: Iterable[LineScore]) -> Iterator[LineScore]:
        """The lines as they are."""
        for line in lines:
            for word, unknown in zip(line.words, line.unknown, strict=False):
                if unknown and any(lower(word, language) in self.known for language in LANGUAGES):
                    self.count, self.example = self.count + 1, self.example or word
            yield line
