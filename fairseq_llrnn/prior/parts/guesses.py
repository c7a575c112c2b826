"""Guessed analyses and the accuracy of guesses (lexicon/guessing.py). For people only: it makes no background."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.lexicon.guessing import WHOLE
from fairseq_llrnn.prior.part import Part, PriorView, SavedPart, register_part


@register_part("guesses")
@dataclass(frozen=True)
class GuessesPart(Part):
    """n guessed words of V."""

    words: np.ndarray  # (n,) int64, rising
    groups: tuple[str, ...]  # of the features that are guessed
    accuracy: dict[str, float]  # of guesses for known words: WHOLE, and by group of features

    def arrays(self) -> dict[str, np.ndarray]:
        return {"words": self.words}

    def description(self) -> dict[str, Any]:
        return {"groups": list(self.groups), "accuracy": self.accuracy}

    @classmethod
    def read(cls, saved: SavedPart) -> GuessesPart:
        words, accuracy = saved.array("words", np.int64), saved.description["accuracy"]
        groups = saved.description["groups"]
        inside = len(words) == 0 or (words[0] >= 0 and words[-1] < len(saved.prior.symbols))
        if not inside or (np.diff(words) <= 0).any():
            raise ValueError("guesses: expected numbers of words, rising")
        if not (isinstance(groups, list) and all(isinstance(group, str) for group in groups)):
            raise ValueError("guesses: expected the names of feature groups")
        shares = accuracy.values() if isinstance(accuracy, dict) else [None]
        if not all(isinstance(share, float) and 0.0 <= share <= 1.0 for share in shares):
            raise ValueError("guesses: expected the accuracy of each group, from 0.0 to 1.0")
        return cls(words, tuple(groups), accuracy)

    @property
    def identity(self) -> str:
        return ""  # a model depends only on the features

    def guessed(self, word: int, features: Iterable[str]) -> list[str]:
        """Return the guessed features among `features` of word number `word`."""
        place = int(np.searchsorted(self.words, word))
        if place == len(self.words) or int(self.words[place]) != word:
            return []
        return [name for name in features if feature_group(name) in self.groups]

    def lines(self, prior: PriorView) -> list[str]:
        right = f", right for {self.accuracy[WHOLE]:.1%} of known words" if WHOLE in self.accuracy else ""
        return [f"analyses of {len(self.words):,} words are guessed{right}"]

    def counts(self) -> dict[str, int]:
        return {"guessed words": len(self.words)}
