"""The contexts of a batch: which were met, and what the experts say of each. Every context is asked about once.

Sizes: B sentences, T time, N hypotheses, E experts, G columns, J exceptions of the context that has most of them.
A context is a source and, where some expert looks at it, the target so far; it is known by its number.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.output.context_classes import NO_WORD, ContextClassSource
from fairseq_llrnn.systems.experts.panel import Answer, Panel, Words


class Contexts(ContextClassSource):
    """The contexts that sentences of a batch come into, and in each the exceptional words as context classes.

    Args:
        sources: (B, L) tokens, padded; None in a language model, where all begin alike.
    """

    def __init__(self, panel: Panel, sources: Tensor | None) -> None:
        self.panel, self.changes = panel, panel.looks_at_prefix
        self.exceptional: list[list[int]] = []  # of each context, its exceptions
        self.values: list[list[tuple[float | None, ...]]] = []  # and their values, E each
        self.coefficients: list[tuple[dict[int, float], ...]] = []  # E of them, by column
        self.width = 0  # J
        self._history: list[tuple[int, Words]] = []  # of each context, its sentence and the target so far
        self._next: dict[tuple[int, int], int] = {}
        self._answers: dict[tuple[Words, Words], Answer] = {}  # of sources and targets so far: sentences may be equal
        self._sources = [()] if sources is None else [self._source_words(row) for row in sources.tolist()]
        self._alike = sources is None
        self.rows = len(self._sources)
        for sentence in range(self.rows):
            self._new(sentence, ())

    def _source_words(self, row: list[int]) -> Words:
        assert self.panel.source_word_of is not None
        return tuple(self.panel.source_word_of(token) for token in row if token not in self.panel.ignored)

    def _new(self, sentence: int, prefix: Words) -> int:
        source = self._sources[sentence]
        answer = self._answers.get((source, prefix))
        if answer is None:
            answer = self._answers[source, prefix] = self.panel.ask(source, prefix)
        self._history.append((sentence, prefix))
        self.exceptional.append(list(answer.exceptions))
        self.values.append(list(answer.exceptions.values()))
        self.coefficients.append(answer.coefficients)
        self.width = max(self.width, len(answer.exceptions))
        return len(self._history) - 1

    # ---- from context to context ------------------------------------------------------------------------------------

    def start(self, n: int) -> Tensor:
        return torch.zeros(n, dtype=torch.long) if self._alike else torch.arange(n)

    def advance(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        """After </s>, the target so far is empty again."""
        if not self.changes:
            return contexts
        pairs = zip(contexts.tolist(), tokens.tolist(), strict=True)
        return torch.tensor([self._after(context, token) for context, token in pairs], device=contexts.device)

    def _after(self, context: int, token: int) -> int:
        if token == self.panel.pad:
            return context
        after = self._next.get((context, token))
        if after is None:
            sentence, prefix = self._history[context]
            # the first contexts are those of sentences that begin
            begins = token == self.panel.eos
            after = sentence if begins else self._new(sentence, (*prefix, self.panel.word_of(token)))
            self._next[context, token] = after
        return after

    # ---- what the experts say ---------------------------------------------------------------------------------------

    def words(self, contexts: Tensor) -> Tensor:
        some, each = np.unique(contexts.cpu().numpy(), return_inverse=True)
        table = np.full((len(some), self.width), NO_WORD, dtype=np.int64)
        for row, context in zip(table, some, strict=True):
            row[: len(self.exceptional[context])] = self.exceptional[context]
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
        is_exception = ~np.isnan(table)
        return _spread(np.where(is_exception, table, 0.0), each, contexts), _spread(is_exception, each, contexts)

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
