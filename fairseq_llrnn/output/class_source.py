"""Sources of classes: what a head knows of words beside the signatures of its prior.

Sizes: B batch (in a search, N hypotheses), T time, N positions, V words, S signatures, F features, J context classes of
a source, H hidden width, H' = H and what sources add, L source length, E encoder width.

A word may have a class of its own in a sentence or at a step (output/context_classes.py puts it in front of the
background, with its mass), or one signature may stand for many strings (`replaces`). What the output layer then needs
is a row for each class, or a score; a source supplies it. A part of a prior names its source (`Part.class_source`), and
whoever makes a head can add others: `LogLinearHead(prior, H, classes=[…])`. Each is made of a head,

    class DayRows(ClassSource):
        name, kind = "next_days", DayAfterDay     # kind: the ContextClassSource whose classes it has rows for

        def __init__(self, head):
            super().__init__()
            self.row = nn.Parameter(torch.zeros(head.hidden_size))

        def rows_at(self, place):
            shape = (*place.states.shape[:2], 1)  # one class in each context
            return self.row.expand(*shape, -1), self.row.new_zeros(shape)

and all but these has a default: nothing. examples/extending/llrnn_dates.py is a complete one.

`SentenceClasses` are the context classes of sentences: which words they are is known when a batch begins, and no token
changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import Background, BoundBackground
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.output.context_classes import ContextClasses, ContextClassSource
from fairseq_llrnn.output.normalisers import Detail, LogLinearOutput

if TYPE_CHECKING:
    from fairseq_llrnn.output.records import Batch, RowPair, Rows


class Head(Protocol):
    """What sources, normalisers and changes of masses may ask the head that they are made of."""

    prior: Any  # prior.Prior
    output: LogLinearOutput
    background: Background
    hidden_size: int  # H
    source_size: int | None  # E; None in a language model
    num_words: int  # V
    unk: int  # the token <unk>
    sources: list[ClassSource]
    has_source_strings: bool  # whether the background knows strings of the source, by parts of the prior
    replaced: int | None  # the signature that some source replaces
    attached: dict[str, Any]  # modules that were made for it, by their roles

    def static_log_mass(self) -> Tensor:
        """That of the signatures in the background without context, (S,); none of one that a source replaces."""
        ...


@dataclass(frozen=True)
class Place:
    """Where rows of context classes are asked for: positions (B, T) of a batch, or the next ones of hypotheses."""

    layer: ContextClasses  # of the background, whose classes they are
    states: Tensor  # (B, T, …) of that layer; T is 1 where all positions of a sentence have the same classes
    rows: Rows
    below: list[RowPair]  # those of the classes of layers below, as `rows_at` gave them

    @property
    def contexts(self) -> Tensor:
        """The numbers of the contexts: (B, T)."""
        return self.layer.contexts_of(self.states.flatten(0, 1)).view(self.states.shape[:2])


class ClassSource(nn.Module):
    """A source of classes (module docstring)."""

    name: ClassVar[str]  # of the module in the head, and so of its weights in a checkpoint
    option: ClassVar[str] = ""  # what messages call it; "": as `name`
    kind: ClassVar[type[ContextClassSource] | None] = None  # of the context classes that it has rows for
    opens: ClassVar[bool] = False  # whether text has strings outside the dictionary because of it alone
    needs_source_states: ClassVar[bool] = False  # whether its rows are made of the encoder's states
    needs_all_rows: ClassVar[bool] = False  # whether it works with an exact normaliser only
    reads_marks: ClassVar[bool] = False  # whether `written` is given source tokens with marks of what is asked for
    reads_beside = False  # whether it needs what a model hands over beside hidden states (`Batch.spelling`)
    num_columns = 0  # that it adds to hidden states and to weights of features; may grow while contexts are met
    replaces: int | None = None  # the signature in whose place it has a score

    # ---- before the network -----------------------------------------------------------------------------------------

    def bind(self, background: BoundBackground, source: Tensor | None) -> BoundBackground:
        """The background of a batch with the classes in front of it; source: (B, L)."""
        return background

    def restore_original_tokens(self, tokens: Tensor, text: Tensor) -> Tensor:
        """`text` (B, T) as in the text that the background was estimated from; tokens: what training reads."""
        return text

    def input_id_of(self, tokens: Tensor, read: Tensor) -> Tensor:
        """What a network reads by its features: `read`, with other rows for strings of `tokens` (…,) that it knows."""
        return read

    def retokenize_target(self, source: Tensor, target: Tensor) -> Tensor:
        """A target (T,) with tokens of the source (L,) in the place of what they are written with: (T',)."""
        return target

    # ---- rows -------------------------------------------------------------------------------------------------------

    def columns(self, weight: Tensor) -> Tensor:
        """`num_columns` more of the features' weights: (F, H) -> (F, columns). All rows get wider by them."""
        raise NotImplementedError

    def widen(self, hidden: Tensor, place: Place) -> Tensor:
        """Hidden states (B, T, H) -> (B, T, H'), where it adds columns; place.states: (B, T, …)."""
        return hidden

    def rows(self, head: Head, weight: Tensor, layer: ContextClasses | None, source_states: Tensor | None) -> Any:
        """What is made once for a batch or a search; `rows_at` finds it as `place.rows.of_source[self.name]`.

        A source of some `kind` of classes is asked where the background has such.

        Args:
            weight: (F, H'), to compose rows with. layer: of the background, the classes of this kind.
            source_states: of the encoder, (B, L, E), of the sentences that the background was given.
        """

    def rows_at(self, place: Place) -> RowPair:
        """Rows (B, T, J, H') and biases (B, T, J) of the context classes; T is 1 where place.states says so.

        By default those that `rows` returned of all contexts that a batch begins with, (contexts, J, H or H') and
        (contexts, J): what other sources add to H counts nothing for them.
        """
        rows, bias = place.rows.of_source[self.name]
        contexts = place.contexts
        selected = rows.index_select(0, contexts.flatten()).unflatten(0, contexts.shape)
        if missing := place.rows.width - rows.size(2):
            selected = functional.pad(selected, (0, missing))
        return selected, bias.index_select(0, contexts.flatten()).unflatten(0, contexts.shape)

    def scores(self, hidden: Tensor, rows: Any) -> Tensor:
        """Of a source that `replaces` a signature, what its score is the log Σ exp of: (B, T, H') -> (B, T, O)."""
        raise NotImplementedError

    # ---- losses, weights and explanations ---------------------------------------------------------------------------

    def finish(self, log_prob: Tensor, batch: Batch, targets: Tensor, classes: Tensor) -> Tensor:
        """log p of the targets (N,), which are of these classes (N,): of strings, where a class has several."""
        return log_prob

    def adaptor(self, hidden: Tensor) -> Tensor | None:
        """Weights that it adds to the adaptor's, of which its norm is one: (N, H') -> (N, X)."""
        return None

    def check_weights(self, state_dict: dict[str, Any], prefix: str) -> None:
        """Check, or change, what a checkpoint has of it; prefix: of the head's names, ends in a dot."""

    def explained(self, batch: Batch, arguments: dict[str, Any]) -> dict[str, Any]:
        """More arguments of explain/explanation.py for a batch of one sentence, by name.

        Args:
            arguments: those of the normaliser and of the sources before, which these replace where names are equal.

        Returns:
            With "terms", {kind: ClassTerms}, from a source whose classes keep the features of their words.
        """
        return {}


ClassSourceOf = Callable[["Head"], ClassSource]
# Of a place, a state of the layer there (1, …), a token and its features: what a source adds to the token's score, by
# name, and what else there is to say.
ClassTerms = Callable[[int, Tensor, int, Mapping[str, float]], tuple[Sequence[tuple[str, float]], Detail]]


def check_row_sources(head: Head, option: str) -> None:
    """Raise OptionError where a head has sources that need all rows of an exact normaliser, for this other option."""
    for source in head.sources:
        if source.needs_all_rows:
            raise OptionError(f"{option}: not supported with {source.option or source.name}; leave one of them out")


class SentenceClasses(ContextClassSource):
    """Tables with a row for each sentence: a sentence is a context."""

    def __init__(
        self,
        words: Tensor,
        unk: int | None = None,
        log_added: Tensor | None = None,
        log_unk_factor: Tensor | None = None,
        unreadable: Tensor | None = None,
    ) -> None:
        """
        Args:
            words: (B, J), different ones in a sentence, NO_WORD where there are fewer; J is at least 1, so that a
                model's weights for them take part in every step.
            unk: <unk> of the target, where the words get mass; then the others are given, too, as the methods of these
                names say: log_added and unreadable (B, J), log_unk_factor (B,).
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
