"""What grows while a prior is used: ids of strings that its dictionaries lack, and tables over them.

A prior itself never changes. Data, models and searches of one prior share one session, so that a string has the same
id for all of them; ids live as long as the session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fairseq_llrnn.features.dictionary import OpenWords

Value = TypeVar("Value")


class Session:
    """Target and source strings that were met so far, and what parts keep beside them."""

    def __init__(self, symbols: Sequence[str], source_symbols: Sequence[str]) -> None:
        self.target, self.source = OpenWords(symbols), OpenWords(source_symbols)
        self._memo: dict[str, Any] = {}

    def __deepcopy__(self, memo: object) -> Session:
        return self  # a copy of a model belongs to the same dictionaries

    def once(self, name: str, make: Callable[[], Value]) -> Value:
        """What `make` gave when it was first asked for under this name."""
        if name not in self._memo:
            self._memo[name] = make()
        value: Value = self._memo[name]
        return value
