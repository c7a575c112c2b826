"""Class sources: rows and scores of classes other than the signatures of a prior.

Sizes: B batch (in a search, N hypotheses), T time, N positions, V words, S signatures, F features, J context classes of
a source, H hidden width, H' = H plus the columns of sources, L source length, E encoder width.

A word may have its own class in a sentence or at a step (output/context_classes.py adds the class, with its mass, to
the background), or one signature may stand for many strings (open_vocabulary/open_strings.py). A source gives the
output layer a row or a score for each such class. A part of a prior names its source (`Part.class_source`). Other
sources are passed to the head: `LogLinearHead(prior, H, classes=[…])`. The constructor of a source takes the head:

    class DayRows(ClassSource):
        name, kind = "next_days", DayAfterDay     # kind: the ContextClassSource of its classes

        def __init__(self, head):
            super().__init__()
            self.row = nn.Parameter(torch.zeros(head.hidden_size))

        def rows_at(self, place):
            shape = (*place.shape, 1)  # one class in each context
            row = functional.pad(self.row, (0, place.rows.width - len(self.row)))  # zeros for columns of other sources
            return row.expand(*shape, -1), self.row.new_zeros(shape)

The word of a class loses the score of its signature. To keep it, return `head.output` and `weight` in `rows`, and in
`rows_at` add `output.composed(output.class_of[words], weight)` for `words = place.view.source.words(place.contexts)`.

All other methods have defaults. examples/extending/llrnn_dates.py is a complete source.

`SentenceClasses` are context classes with the same words throughout a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import Background, BoundBackground
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.output.context_classes import ContextClasses, ContextView
from fairseq_llrnn.output.context_source import ContextClassSource
from fairseq_llrnn.output.normalisers import Detail, HeadModule, LogLinearOutput, Normaliser
from fairseq_llrnn.output.records import Batch, RowPair, Rows


class Head(Protocol):
    """The attributes of a head that sources, normalisers and other modules use in their constructors."""

    prior: Any  # prior.Prior
    output: LogLinearOutput
    background: Background
    hidden_size: int  # H
    source_size: int | None  # E; None in a language model
    num_words: int  # V
    pad: int
    eos: int
    unk: int  # tokens <pad>, </s> and <unk>
    sources: list[ClassSource]
    has_source_strings: bool  # whether parts of the prior add strings of the source to the background
    replaced: int | None  # the signature that a source replaces
    attached: dict[str, Any]  # its modules, by their roles

    def static_log_mass(self) -> Tensor:
        """Return the log masses of the signatures without context: (S,), with −inf for a replaced signature."""
        ...


@dataclass(frozen=True)
class Place:
    """The positions (B, T) of a batch, or the next positions of hypotheses, that need rows of context classes."""

    view: ContextView  # of the layer with the classes, B · T rows
    shape: Sequence[int]  # (B, T); T is 1 if all positions of a sentence have the same classes
    rows: Rows
    below: list[RowPair]  # results of `rows_at` for the layers below

    @property
    def contexts(self) -> Tensor:
        """The indices of the contexts: (B, T)."""
        return self.view.contexts.view(*self.shape)

    def first_positions(self) -> Place:
        """Return the first position of each sentence."""
        batch, time = self.shape
        if time == 1:
            return self
        first = torch.arange(0, batch * time, time, device=self.view.class_of.device)
        return replace(self, view=self.view.select(first), shape=(batch, 1))


class ClassSource(HeadModule):
    """A source of classes (module docstring)."""

    # the type of its context classes; classes of a subclass have these rows unless a source has a nearer kind
    kind: ClassVar[type[ContextClassSource] | None] = None
    needs_source_states: ClassVar[bool] = False  # whether its rows depend on the encoder's states
    # columns that it adds to hidden states and feature weights, which needs an exact normaliser; may grow with new
    # contexts
    num_columns = 0

    # ---- before the network -----------------------------------------------------------------------------------------

    def bind(self, background: BoundBackground, source: Tensor | None) -> BoundBackground:
        """Add its classes to the background of a batch. source: (B, L), or None without a source.

        By default, `Part.background` of the part with this source has added them. Otherwise return
        `ContextClasses(background, …)` here, e.g. in a language model or over any background.
        """
        return background

    # ---- rows -------------------------------------------------------------------------------------------------------

    def columns(self, weight: Tensor) -> Tensor:
        """Return `num_columns` more columns of the feature weights: (F, H) -> (F, columns). All rows get wider."""
        raise NotImplementedError

    def widen(self, hidden: Tensor, place: Place) -> Tensor:
        """Add its columns to hidden states: (B, T, H) -> (B, T, H')."""
        return hidden

    def rows(self, head: Head, weight: Tensor, layer: ContextClasses | None, source_states: Tensor | None) -> Any:
        """Return values that are computed once for a batch or a search. `rows_at` reads
        `place.rows.of_source[self.name]`.

        If the source has a `kind`, it is called only for backgrounds with such classes.

        Args:
            weight: (F, H'), to compose rows with. layer: of the background, with the classes of this kind.
            source_states: of the encoder, (B, L, E), for the sentences of the background.
        """

    def rows_at(self, place: Place) -> RowPair:
        """Return rows (B, T, J, H') and biases (B, T, J) of the context classes. T is 1 if it is in place.shape.

        By default, `rows` returns rows (contexts, J, H or H') and biases (contexts, J) of all initial contexts, and
        this method selects from them. Columns of other sources are zero.
        """
        rows, bias = place.rows.of_source[self.name]
        contexts = place.contexts
        selected = rows.index_select(0, contexts.flatten()).unflatten(0, contexts.shape)
        if missing := place.rows.width - rows.size(2):
            selected = functional.pad(selected, (0, missing))
        return selected, bias.index_select(0, contexts.flatten()).unflatten(0, contexts.shape)

    # ---- losses, weights and explanations ---------------------------------------------------------------------------

    def adaptor(self, hidden: Tensor) -> Tensor | None:
        """Return weights that it adds to the adaptor, for its norm: (N, H') -> (N, X), or None if there are none."""
        return None

    def explained(self, batch: Batch, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return more arguments of explain/explanation.py for a batch of one sentence, by name.

        Args:
            arguments: of the normaliser and of earlier sources; equal names are replaced.

        Returns:
            With "terms", {kind: ClassTerms}, if its classes keep the features of their words.
        """
        return {}


ClassSourceOf = Callable[[Head], ClassSource]
NormaliserOf = Callable[[Head], Normaliser]
# (position, its context, token, its features) -> the terms that a source adds to the token's score, by name, and a
# Detail
ClassTerms = Callable[[int, int, int, Mapping[str, float]], tuple[Sequence[tuple[str, float]], Detail]]


def check_row_sources(head: Head, option: str) -> None:
    """Raise OptionError if a source widens all rows, which excludes `option`."""
    for source in head.sources:
        if source.num_columns:
            raise OptionError(f"{option}: not supported with {source.option or source.name}; leave one of them out")


class SentenceClasses(ContextClassSource):
    """Tables with one row per sentence: a sentence is a context."""

    def __init__(
        self,
        words: Tensor,
        unk: int | None = None,
        log_added: Tensor | None = None,
        log_unk_factor: Tensor | None = None,
        unreadable: Tensor | None = None,
    ) -> None:
        """Store the tables.

        Args:
            words: (B, J), distinct in a sentence, padded with NO_WORD; J is at least 1, so that a model's weights for
                them are in every step. Tokens of a source include </s> and padding.
            unk: <unk> of the target, if the words get mass; it requires the other arguments, the values of the methods
                of these names: log_added and unreadable (B, J), log_unk_factor (B,).
        """
        self.rows, self.width = words.shape
        self.unk, self._words = unk, words
        if unk is not None:
            assert log_added is not None and log_unk_factor is not None and unreadable is not None
            self._log_added, self._log_unk_factor, self._unreadable = log_added, log_unk_factor, unreadable

    def start(self, n: int) -> Tensor:
        return torch.arange(n, device=self._words.device)

    def words(self, contexts: Tensor) -> Tensor:
        return self._words[contexts]

    def log_added(self, contexts: Tensor) -> Tensor:
        return self._log_added[contexts]

    def log_unk_factor(self, contexts: Tensor) -> Tensor:
        return self._log_unk_factor[contexts]

    def unreadable(self, contexts: Tensor) -> Tensor:
        return self._unreadable[contexts]
