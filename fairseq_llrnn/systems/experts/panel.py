"""Experts opened with a prior: asks them about a context, checks what they say, and numbers it.

Sizes: E experts, G columns. Column 0 is 1 everywhere, the others are output features that some expert has named so far:
a value of a word that is no exception is v_e(σ) = Σ_g coefficient[e, g] · column_g(σ).
"""

from __future__ import annotations

import logging
import math
import numbers
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import BOS, PAD
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.experts.expert import Expert, Firing

logger = logging.getLogger(__name__)
Words = tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """What all experts say of one context."""

    coefficients: tuple[dict[int, float], ...]  # E of them, by column
    exceptions: dict[int, tuple[float | None, ...]]  # token -> E values; None where an expert makes no exception of it


class Panel:
    """The experts of a task.

    Args:
        word_of, source_word_of: the string of a token. token_of: the token of a string, None for an unknown one.
        eos: the token that ends a target sentence. ignored: source tokens that are no words (padding, </s>).

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
        # what explanations call them: Mine, and Mine#2 where another one is called the same
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
        """What the experts say in a context.

        Raises:
            DataError: an expert fails, or says what cannot be; with its name and the sentence.
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
        """An expert's own answer. Those to sources alone are kept: every epoch asks for them again."""
        key = number, source, prefix
        firing = self._firings.get(key)
        if firing is not None:
            return firing
        where = f"expert {expert.name}, asked of the source {_quoted(source)} and the target so far {_quoted(prefix)}"
        try:
            firing = expert.fires(source, prefix)
        except Exception as error:
            raise DataError(f"{where}: fires failed: {_described(error, expert)}; fix the class") from error
        self._check(firing, where)
        if not prefix:
            self._firings[key] = firing
        return firing

    def _check(self, firing: Firing, where: str) -> None:
        if not isinstance(firing, Firing):
            kind = type(firing).__name__
            raise DataError(f"{where}: expected a Firing, found {kind}; return Firing() to say nothing")
        if not (isinstance(firing.groups, Mapping) and isinstance(firing.exceptions, Mapping)):
            raise DataError(f"{where}: expected groups and exceptions by name, as {{name: value}}; found {firing!r}")
        named = {"everywhere": firing.everywhere, **firing.groups, **firing.exceptions}
        for name, value in named.items():
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
                "(one warning)"
            )


def _quoted(words: Words) -> str:
    return repr(" ".join(words))


def _described(error: Exception, expert: Expert) -> str:
    """The error, and the line of the user's file that it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    file = getattr(sys.modules.get(type(expert).__module__), "__file__", None)
    of_user = [frame for frame in frames if frame.filename == file] or frames[-1:]
    place = f" ({of_user[-1].filename}, line {of_user[-1].lineno})" if of_user else ""
    return f"{type(error).__name__}: {error}{place}"
