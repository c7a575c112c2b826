"""Spellers: they spell strings of open classes beside the n-grams, where the open vocabulary is of their kind.

    @register_speller("neural")                 in a module that registry.py finds in the group `spellers`
    def my_speller(head, table, told, beside): return MySpeller(…)

A prior of such a kind keeps the rare words that its n-grams were counted in (`OpenVocabulary.rare`).

Sizes: m strings, O open classes, X the width of what is spelled from: H hidden width, or what a model hands over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, nn

from fairseq_llrnn.open_vocabulary.vocabulary import KIND, SPELLED, kinds

if TYPE_CHECKING:
    from fairseq_llrnn.open_vocabulary.table import OpenTable


class Speller(nn.Module):
    """Spells strings from the state that predicts them."""

    hidden_size: int  # X

    def untouched(self) -> Tensor:
        """0, of which every parameter is a part: so that all have a gradient where there is nothing to spell."""
        raise NotImplementedError

    def log_strings(self, states: Tensor, ids: np.ndarray, log_ngrams: Tensor) -> Tensor:
        """log P(w | state, o) of the strings with these ids: states (m, X), log P_o(w | w ∉ V) (m, O) -> (m, O)."""
        raise NotImplementedError

    def write(
        self, table: OpenTable, states: Tensor, classes: np.ndarray, random: np.random.Generator | None,
        strings: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Put ids among `strings` (m,) where it spells; returns where it does not, (m,) bool.

        Args:
            states: (m, X). random: to draw strings; None: the most probable ones.
        """
        raise NotImplementedError


def speller_of(head: Any, table: OpenTable, told: Any, beside: int | None) -> Speller | None:
    """The speller of a head; None where n-grams spell alone."""
    kind = table.vocabulary.kind
    if kind == KIND or kind not in kinds():
        return None
    speller: Speller = SPELLED[kind](head, table, told, beside)
    return speller
