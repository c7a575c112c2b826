"""The contexts of a batch: which were met, and what the experts say of each. Every context is asked about once.

Sizes: B sentences, T time, N hypotheses, E experts, G columns, J exceptions of the context that has most of them.
A context is a source and, where some expert looks at it, the target so far; it is known by its number.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.evidence.slots import NO_WORD
from fairseq_llrnn.experts.panel import Panel, Words


class Contexts:
    """The contexts that sentences of a batch come into.

    Args:
        sources: (B, L) tokens, padded; None in a language model, where all begin alike.
    """

    def __init__(self, panel: Panel, sources: Tensor | None) -> None:
        self.panel = panel
        self.words: list[list[int]] = []  # of each context, its exceptions
        self.values: list[list[tuple[float | None, ...]]] = []  # and their values, E each
        self.coefficients: list[tuple[dict[int, float], ...]] = []  # E of them, by column
        self.width = 0  # J
        self._history: list[tuple[Words, Words]] = []
        self._next: dict[tuple[int, int], int] = {}
        self._begin: dict[Words, int] = {}  # the first context of each source
        rows = [()] if sources is None else [self._source_words(row) for row in sources.tolist()]
        for row in rows:
            if row not in self._begin:
                self._begin[row] = self._new(row, ())
        self._first = [self._begin[row] for row in rows]
        self._alike = sources is None
        self.rows = len(rows)

    def _source_words(self, row: list[int]) -> Words:
        assert self.panel.source_word_of is not None
        return tuple(self.panel.source_word_of(token) for token in row if token not in self.panel.ignored)

    def _new(self, source: Words, prefix: Words) -> int:
        answer = self.panel.ask(source, prefix)
        self._history.append((source, prefix))
        self.words.append(list(answer.exceptions))
        self.values.append(list(answer.exceptions.values()))
        self.coefficients.append(answer.coefficients)
        self.width = max(self.width, len(answer.exceptions))
        return len(self._history) - 1

    # ---- from context to context ------------------------------------------------------------------------------------

    def start(self, n: int) -> Tensor:
        """The contexts of n sentences that begin: (n,)."""
        return torch.tensor(self._first * n if self._alike else self._first[:n])

    def advance(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        """The contexts after these tokens: (N,), (N,) -> (N,). After </s>, the target so far is empty again."""
        if not self.panel.looks_at_prefix:
            return contexts
        pairs = zip(contexts.tolist(), tokens.tolist(), strict=True)
        return torch.tensor([self._after(context, token) for context, token in pairs], device=contexts.device)

    def _after(self, context: int, token: int) -> int:
        if token == self.panel.pad:
            return context
        found = self._next.get((context, token))
        if found is None:
            source, prefix = self._history[context]
            if token == self.panel.eos:
                found = self._begin[source]
            else:
                found = self._new(source, (*prefix, self.panel.word_of(token)))
            self._next[context, token] = found
        return found

    def along(self, previous: Tensor) -> Tensor:
        """The contexts before each position of a batch whose inputs are `previous`: (B, T) -> (B, T)."""
        found = [self.start(len(previous)).to(previous.device)]
        for t in range(1, previous.size(1)):
            found.append(self.advance(found[-1], previous[:, t]))
        return torch.stack(found, dim=1)

    # ---- what the experts say ---------------------------------------------------------------------------------------

    def exceptions(self, contexts: Tensor) -> Tensor:
        """The exceptional words of each context: (…,) -> (…, J), NO_WORD where there are fewer."""
        some, each = np.unique(contexts.cpu().numpy(), return_inverse=True)
        table = np.full((len(some), self.width), NO_WORD, dtype=np.int64)
        for row, context in zip(table, some, strict=True):
            row[: len(self.words[context])] = self.words[context]
        return _spread(table, each, contexts)

    def exception_values(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """Values of the exceptional words in each context, and whether that expert makes an exception of the word.

        (…,) -> (…, J, E) float64 and (…, J, E) bool
        """
        some, each = np.unique(contexts.cpu().numpy(), return_inverse=True)
        table = np.full((len(some), self.width, len(self.panel.experts)), np.nan)
        for row, context in zip(table, some, strict=True):
            for j, values in enumerate(self.values[context]):
                row[j] = [np.nan if value is None else value for value in values]
        known = ~np.isnan(table)
        return _spread(np.where(known, table, 0.0), each, contexts), _spread(known, each, contexts)

    def group_coefficients(self, contexts: Tensor) -> Tensor:
        """(…,) -> (…, E, G) float64"""
        some, each = np.unique(contexts.cpu().numpy(), return_inverse=True)
        table = np.zeros((len(some), len(self.panel.experts), len(self.panel.columns)))
        for row, context in zip(table, some, strict=True):
            for e, by_column in enumerate(self.coefficients[context]):
                row[e, list(by_column)] = list(by_column.values())
        return _spread(table, each, contexts)


def _spread(table: np.ndarray, each: np.ndarray, contexts: Tensor) -> Tensor:
    """A row of the table for every context, on its device."""
    result = torch.from_numpy(table[each.reshape(-1)]).to(contexts.device)
    return result.view(*contexts.shape, *table.shape[1:])
