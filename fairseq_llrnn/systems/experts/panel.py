"""Experts opened with a prior, and queried in the contexts of a batch.

Sizes: B sentences, E experts, G columns, J most exceptions of a context.

A `Panel` queries its experts in a context, checks their answers, and numbers the columns. Column 0 is 1 everywhere. The
others are output features that some expert has named so far. A word without exception has the value v_e(σ) = Σ_g
coefficient[e, g] · column_g(σ).

`Contexts` are the contexts of a batch with the experts' answers. A context is a source and, if some expert uses it, the
target so far. It is identified by a number, and queried once.
"""

from __future__ import annotations

import logging
import math
import numbers
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import BOS, PAD
from fairseq_llrnn.output.context_source import NO_WORD, ContextClassSource
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.experts.expert import Expert, Firing

logger = logging.getLogger(__name__)
Words = tuple[str, ...]
MOST_KEPT = 50_000  # cached answers, of 3 KB each


@dataclass(frozen=True)
class Answer:
    """The answers of all experts in one context."""

    coefficients: tuple[dict[int, float], ...]  # E of them, by column
    exceptions: dict[int, tuple[float | None, ...]]  # token -> E values; None: no exception of this expert


class Panel:
    """The experts of a task.

    Args:
        word_of, source_word_of: the string of a token.
        token_of: the token of a string, or None for an unknown one.
        eos: the token that ends a target sentence.
        ignored: source tokens that are not words (padding, </s>).

    Raises:
        DataError: an expert cannot be opened.
    """

    def __init__(
        self,
        experts: Sequence[Expert],
        prior: Prior,
        word_of: Callable[[int], str],
        token_of: Callable[[str], int | None],
        source_word_of: Callable[[int], str] | None = None,
        *,
        eos: int,
        pad: int,
        ignored: frozenset[int] = frozenset(),
    ) -> None:
        self.experts = tuple(experts)
        named = [expert.name for expert in experts]
        # names in explanations: Mine, and Mine#2 for another one of the same name
        self.names = tuple(n if n not in named[:i] else f"{n}#{i + 1}" for i, n in enumerate(named))
        self.word_of, self.token_of, self.source_word_of = word_of, token_of, source_word_of
        self.eos, self.pad, self.ignored = eos, pad, ignored
        self.looks_at_prefix = any(expert.looks_at_prefix for expert in experts)
        self._feature = prior.output.features.index
        self.columns: dict[str, int] = {"": 0}  # feature -> column; "" is 1 everywhere
        self._firings: dict[tuple[int, Words, Words], Firing] = {}
        self._warned = False
        for expert in experts:
            try:
                expert.open(prior)
            except Exception as error:
                described = _described(error, expert)
                raise DataError(f"expert {expert.name}: open failed: {described}; fix the class") from error

    def __deepcopy__(self, memo: object) -> Panel:
        return self  # a copy of a model has the same experts

    def ask(self, source: Words, prefix: Words) -> Answer:
        """Return the experts' answers in a context.

        Raises:
            DataError: an expert fails or returns an invalid answer, with its name and the sentence.
        """
        coefficients: list[dict[int, float]] = []
        exceptions: dict[int, list[float | None]] = {}
        for number, expert in enumerate(self.experts):
            firing = self._fired(number, expert, source, prefix if expert.looks_at_prefix else ())
            by_column = {0: float(firing.everywhere)} if firing.everywhere else {}
            for name, value in firing.groups.items():
                by_column[self.columns.setdefault(name, len(self.columns))] = float(value)
            coefficients.append(by_column)
            for word, value in firing.exceptions.items():
                token = self.token_of(word)
                if token is None:
                    self._warn_once(expert, word)
                else:
                    exceptions.setdefault(token, [None] * len(self.experts))[number] = float(value)
        return Answer(tuple(coefficients), {token: tuple(values) for token, values in exceptions.items()})

    def _fired(self, number: int, expert: Expert, source: Words, prefix: Words) -> Firing:
        """Return an expert's answer. Answers without prefix are cached for later epochs."""
        key = number, source, prefix
        firing = self._firings.get(key)
        if firing is not None:
            return firing
        where = f"expert {expert.name}, for the source {_quoted(source)} and the target so far {_quoted(prefix)}"
        try:
            firing = expert.fires(source, prefix)
        except Exception as error:
            raise DataError(f"{where}: fires failed: {_described(error, expert)}; fix the class") from error
        self._check(firing, where)
        if not prefix:
            if len(self._firings) >= MOST_KEPT:  # interactive search has an unlimited number of sources
                self._firings.clear()
            self._firings[key] = firing
        return firing

    def _check(self, firing: Firing, where: str) -> None:
        if not isinstance(firing, Firing):
            kind = type(firing).__name__
            raise DataError(f"{where}: expected a Firing, found {kind}; return Firing() for no effect")
        if not (isinstance(firing.groups, Mapping) and isinstance(firing.exceptions, Mapping)):
            raise DataError(f"{where}: expected groups and exceptions by name, as {{name: value}}; found {firing!r}")
        values = [("everywhere", firing.everywhere), *firing.groups.items(), *firing.exceptions.items()]
        for name, value in values:
            if not isinstance(value, numbers.Real) or not math.isfinite(value):
                raise DataError(f"{where}: expected finite numbers, found {value!r} for {name!r}; fix the class")
        for word in firing.exceptions:
            if word in (BOS, PAD):
                raise DataError(f"{where}: expected exceptions that can be the next word, found {word!r}; leave it out")
        for name in firing.groups:
            if name not in self._feature:
                raise DataError(
                    f"{where}: expected groups that are output features of the prior, found {name!r}; `llrnn show` "
                    "lists them"
                )

    def _warn_once(self, expert: Expert, word: str) -> None:
        if not self._warned:
            self._warned = True
            logger.warning(
                f"expert {expert.name}: the exception {word!r} is in no dictionary, and is ignored "
                "(no further warnings)"
            )


def _quoted(words: Words) -> str:
    return repr(" ".join(words))


def _described(error: Exception, expert: Expert) -> str:
    """Return the error with its line in the user's file."""
    frames = traceback.extract_tb(error.__traceback__)
    file = getattr(sys.modules.get(type(expert).__module__), "__file__", None)
    of_user = [frame for frame in frames if frame.filename == file] or frames[-1:]
    place = f" ({of_user[-1].filename}, line {of_user[-1].lineno})" if of_user else ""
    return f"{type(error).__name__}: {error}{place}"


class Contexts(ContextClassSource):
    """The contexts of a batch's sentences, with the exceptional words of each as context classes.

    Args:
        sources: (B, L) tokens, padded; None in a language model, in which all sentences begin alike.
    """

    def __init__(self, panel: Panel, sources: Tensor | None) -> None:
        self.panel, self.changes = panel, panel.looks_at_prefix
        self.answers: list[Answer] = []  # of each context
        self.width = 0  # J
        self._history: list[tuple[int, Words]] = []  # of each context, its sentence and the target so far
        self._next: dict[tuple[int, int], int] = {}
        self._ask = cache(panel.ask)  # for equal sentences
        self._sources = [()] if sources is None else [self._source_words(row) for row in sources.tolist()]
        self._alike = sources is None
        self.rows = len(self._sources)
        for sentence in range(self.rows):
            self._new(sentence, ())

    def _source_words(self, row: list[int]) -> Words:
        assert self.panel.source_word_of is not None
        return tuple(self.panel.source_word_of(token) for token in row if token not in self.panel.ignored)

    def _new(self, sentence: int, prefix: Words) -> int:
        answer = self._ask(self._sources[sentence], prefix)
        self._history.append((sentence, prefix))
        self.answers.append(answer)
        self.width = max(self.width, len(answer.exceptions))
        return len(self.answers) - 1

    # ---- from context to context ------------------------------------------------------------------------------------

    def start(self, n: int) -> Tensor:
        return torch.zeros(n, dtype=torch.long) if self._alike else torch.arange(n)

    def advance(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        """Return the next contexts. After </s>, the target so far is empty again."""
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
            # the first contexts are the beginnings of sentences
            begins = token == self.panel.eos
            after = sentence if begins else self._new(sentence, (*prefix, self.panel.word_of(token)))
            self._next[context, token] = after
        return after

    # ---- answers ----------------------------------------------------------------------------------------------------

    def words(self, contexts: Tensor) -> Tensor:
        def fill(row: np.ndarray, answer: Answer) -> None:
            row[: len(answer.exceptions)] = list(answer.exceptions)

        return self._rows(contexts, np.full(self.width, NO_WORD, dtype=np.int64), fill)

    def exception_values(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of exceptional words in each context, and whether they are exceptions of the expert.

        (…,) -> (…, J, E) float64 and (…, J, E) bool
        """

        def fill(row: np.ndarray, answer: Answer) -> None:
            for j, values in enumerate(answer.exceptions.values()):
                row[j] = values  # None becomes nan

        values = self._rows(contexts, np.full((self.width, len(self.panel.experts)), np.nan), fill)
        return values.nan_to_num(0.0), ~values.isnan()

    def group_coefficients(self, contexts: Tensor) -> Tensor:
        """Return the coefficients of columns: (…,) -> (…, E, G) float64."""

        def fill(row: np.ndarray, answer: Answer) -> None:
            for e, by_column in enumerate(answer.coefficients):
                row[e, list(by_column)] = list(by_column.values())

        return self._rows(contexts, np.zeros((len(self.panel.experts), len(self.panel.columns))), fill)

    def _rows(self, contexts: Tensor, empty: np.ndarray, fill: Callable[[np.ndarray, Answer], None]) -> Tensor:
        """Return a copy of `empty` for every context, filled with the answer, on the device of the contexts."""
        distinct, row_of = np.unique(contexts.cpu().numpy(), return_inverse=True)
        table = np.repeat(empty[None], len(distinct), axis=0)
        for row, context in zip(table, distinct, strict=True):
            fill(row, self.answers[context])
        rows = torch.from_numpy(table[row_of.reshape(-1)]).to(contexts.device)
        return rows.view(*contexts.shape, *empty.shape)
