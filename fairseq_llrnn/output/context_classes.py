"""Context classes: classes of one word each that exist only in a sentence or at a step, on top of any background.

Sizes: N hypotheses, B sentences, T time, V words, C classes of the background below, J the largest number of context
classes of a context, K columns of the background below (V, or more if it has strings), M rows of a class table.

Context class j is class C + j. Its only member moves out of its class below. So it can have its own score, and the
sum over classes stays exact (Dymetman & Xiao 2016, §4 and §6). With b₁ the weights below and m the mass that the source
adds to a word (zero if it only separates the word),

    b(K, x)  =  b₁(K, x) + m(K, x)        mass of class C + j: b(K, x_j)        of σ: B₁(σ) − Σ_{x_j ∈ σ} b₁(K, x_j)

A source may also replace b₁ of its words (`log_weights_below`). Every source obeys one law: mass before + mass added =
mass after, each word is in exactly one class, and the shares of a class sum to one
(fairseq_llrnn/testing/class_laws.py). The residual mass of a class is summed again without the moved words
(`View.mass_without`), because a difference would lose digits. The log shares of the remaining words grow by
log B₁(σ) − log B(σ).

A source lists its words by context. Slots of evidence are one source. class_source.py has their rows in the output
layer. Layers of context classes can be nested. class_table.py computes masses and
shares by context.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.automata.trimming import NO_END
from fairseq_llrnn.backgrounds.background import BoundBackground, View
from fairseq_llrnn.backgrounds.cached import cached_property
from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, ClassWeights, compress_runs
from fairseq_llrnn.backgrounds.states import JointStates, States, select
from fairseq_llrnn.output.class_table import ClassTable
from fairseq_llrnn.output.context_source import ContextClassSource


def find(tokens: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    """Return the place of each token (M, …) among words (M, J), and whether it is one of them."""
    if not words.size(1):
        return torch.zeros_like(tokens), torch.zeros_like(tokens, dtype=torch.bool)
    same = words.view(len(words), *[1] * (tokens.dim() - 1), -1) == tokens.unsqueeze(-1)
    return same.long().argmax(-1), same.any(-1)


class ContextView(View):
    """What may come next in N states of context classes."""

    bound: ContextClasses

    def __init__(
        self, bound: ContextClasses, states: States, table: ClassTable, places: Tensor | None = None,
        runs: Tensor | None = None, remaining: int | None = None,
    ) -> None:  # fmt: skip
        """Build the view.

        Args:
            places: the row in the table of each of N rows, (N,). None: row n is of row n.
            runs: one row in the table for each run of N/G equal ones, (G,), if they are known.
        """
        super().__init__(bound, states, table.view.hidden, remaining)
        self.table, self.source, self.num_below = table, bound.source, bound.num_below
        self.places, self._known_runs = places, runs
        self.contexts = table.contexts if places is None else places  # shape: (N,)

    def select(self, rows: Tensor) -> ContextView:
        if self.places is None:
            hidden = None if self.hidden is None else self.hidden.index_select(0, rows)
            return self.bound.view(select(self.states, rows), hidden, self.remaining)
        places = self.places.index_select(0, rows)
        return type(self)(self.bound, select(self.states, rows), self.table, places, None, self.remaining)

    def at(self, rows: Tensor | None, like: Tensor) -> Tensor:
        """Return the rows in the table of pairs: (M,). like: (M, …)."""
        if self.places is None:
            return self._rows(like, rows)
        return self.places if rows is None else self.places[rows]

    def pick(self, values: Tensor) -> Tensor:
        """Select the values of the rows: (M, …) -> (N, …)."""
        return values if self.places is None else values.index_select(0, self.places)

    def pick_runs(self, values: Tensor) -> Tensor:
        """Select one row for each run of equal rows (`compress_runs`): (M, …) -> (G, …)."""
        return values if self.places is None else values.index_select(0, self._runs)

    @cached_property
    def _runs(self) -> Tensor:
        assert self.places is not None
        return compress_runs(self.places) if self._known_runs is None else self._known_runs

    @cached_property
    def below(self) -> View:
        """The view of the background below, N rows."""
        return self.table.view if self.places is None else self.table.view.select(self.places)

    # ---- words, their classes and columns ---------------------------------------------------------------------------

    def find(self, tokens: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the context class of each token (M, …), and whether it has one."""
        return find(tokens, self.pick(self.table.words) if rows is None else self.table.words[self.at(rows, tokens)])

    def as_below(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        """Replace tokens (M, …) outside the vocabulary of the background below by `unk`."""
        if self.source.unk is None:
            return tokens
        return tokens.masked_fill(~self._is_below(tokens, rows), self.source.unk)

    def _is_below(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        below, places = self.table.view, self.places if rows is None else self.at(rows, tokens)
        return below.bound.in_vocabulary(tokens, below.states if places is None else select(below.states, places))

    def classes(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        below = self.table.view.classes(self.as_below(tokens, rows), self.at(rows, tokens))
        index, is_context = self.find(tokens, rows)
        return torch.where(is_context, self.num_below + index, below)

    def only_member(self, classes: Tensor) -> Tensor:
        below = self.below.only_member(classes.clamp_max(self.num_below - 1))
        if not self.table.width:
            return below
        words = self.pick(self.table.words).clamp_min(0)
        return torch.where(classes >= self.num_below, words.gather(1, (classes - self.num_below).clamp_min(0)), below)

    @property
    def num_columns(self) -> int:
        return self.table.view.num_columns + (0 if self.source.unk is None else self.table.width)

    @property
    def columns(self) -> Tensor:
        below = self.below.columns.expand(self.num_rows, -1)
        if self.source.unk is None or not self.table.width:
            return below
        return torch.cat([below, self.pick(self.table.words).clamp_min(0)], dim=1)

    def column_of(self, tokens: Tensor) -> Tensor:
        column = self.below.column_of(self.as_below(tokens))
        if self.source.unk is None:
            return column
        index, is_context = self.find(tokens)
        return torch.where(is_context & ~self._is_below(tokens), self.below.num_columns + index, column)

    @property
    def class_numbers(self) -> Tensor:
        """The indices of the context classes: (J,)."""
        return self.num_below + torch.arange(self.table.width, device=self.class_of.device)

    @property
    def column_classes(self) -> Tensor:
        below = self.below.column_classes.expand(self.num_rows, -1)
        return self._in_columns(below, self.class_numbers.expand(self.num_rows, -1))

    def _in_columns(self, of_words: Tensor, of_contexts: Tensor) -> Tensor:
        """Return values of the columns below (N, K), with values of context classes (N, J) in the columns of
        their words.
        """
        if not of_contexts.size(1):
            return of_words.expand(self.num_rows, -1)
        # strings have their own columns after those below; padding is cut off
        more = of_words.size(1) + torch.arange(of_contexts.size(1), device=of_contexts.device)
        column = self.below.column_of(self.pick(self.table.words_below))
        column = torch.where(self.pick(self.table.moved), column, more)
        none = NEGATIVE_INFINITY if of_contexts.is_floating_point() else 0
        wide = functional.pad(of_words.expand(self.num_rows, -1), (0, of_contexts.size(1)), value=none)
        return wide.scatter(1, column, of_contexts.to(wide.dtype))[:, : self.num_columns]

    # ---- weights and masses -----------------------------------------------------------------------------------------

    def _unk_factor(self) -> Tensor:
        """(N, 1)"""
        return self.source.log_unk_factor(self.contexts).unsqueeze(1)

    @cached_property
    def log_weights(self) -> Tensor:
        """(N, K), and J columns more if the source adds strings."""
        weights = self.below.log_weights.expand(self.num_rows, -1)
        if not self.table.width:
            return weights
        if self.source.unk is not None:
            unk = self.class_of.new_tensor([self.source.unk])
            weights = weights.index_add(1, unk, self._unk_factor().to(weights))
        return self._in_columns(weights, self.pick(self.table.mass))

    def weights_at(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        table, places, words = self.table, self.at(rows, tokens), self.as_below(tokens, rows)
        weights = table.view.weights_at(words, places)
        if not table.width:
            return weights
        if self.source.unk is not None:
            factor = self.source.log_unk_factor(table.contexts)[places]
            weights = weights + (words == self.source.unk) * factor.to(weights.dtype)
        index, is_context = self.find(tokens, rows)
        return torch.where(is_context, table.mass[places, index], weights)

    @cached_property
    def class_mass(self) -> ClassWeights:
        if not self.table.width:
            return self.below.class_mass
        return ClassWeights(self.pick_runs(self.table.log_mass), self.num_rows)

    def mass_at(self, classes: Tensor, rows: Tensor | None = None) -> Tensor:
        places = self.at(rows, classes)
        return self.table.log_mass[places, classes] if self.table.width else self.table.view.mass_at(classes, places)

    def mass_without(self, words: Tensor, taken: Tensor) -> Tensor:
        """As in View. Words of context classes have already left their classes, and leave an empty class."""
        table, words_below = self.table, self.as_below(words)
        if not table.width:
            return self.below.mass_without(words_below, taken)
        index, is_context = self.find(words)
        others = words_below.masked_fill(is_context, self.source.unk or 0)
        all_words = torch.cat([self.pick(table.words_below), others], dim=1)
        out = torch.cat([self.pick(table.moved), taken & ~is_context], dim=1)
        rest = self.below.mass_without(all_words, out)[:, table.width :]
        if self.source.unk is not None:
            rest = rest + (others == self.source.unk) * self._unk_factor().to(rest.dtype)
        mass = self.pick(table.mass).gather(1, index)
        return torch.where(is_context, mass.masked_fill(taken, NEGATIVE_INFINITY), rest)

    # ---- shares -----------------------------------------------------------------------------------------------------

    def locate(self, tokens: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        table, places = self.table, self.at(rows, tokens)
        classes, shares = table.view.locate(self.as_below(tokens, rows), places)
        if not table.width:
            return classes, shares
        index, is_context = self.find(tokens, rows)
        shares = torch.where(is_context, table.member_shares[places, index], shares + table.gain_at(classes, places))
        return torch.where(is_context, self.num_below + index, classes), shares

    @cached_property
    def log_shares(self) -> Tensor:
        """As `log_weights`."""
        shares, table = self.below.log_shares, self.table
        if not table.width:
            return shares
        lift = shares.new_zeros(self.num_rows, self.num_below)
        lift = lift.scatter_add(1, self.pick(table.original), self.pick(table.log_renormaliser).to(shares.dtype))
        lifted = shares + lift.gather(1, self.below.column_classes.expand(self.num_rows, -1))
        return self._in_columns(lifted, self.pick(table.member_shares))

    def share_sums(self) -> tuple[Tensor, Tensor]:
        if not self.table.width:
            return self.below.share_sums()
        counts, total = self.table.share_sums()
        return self.pick_runs(counts), self.pick_runs(total)

    # ---- the best words (search) ------------------------------------------------------------------------------------

    @cached_property
    def best_share(self) -> Tensor:
        return self.pick_runs(self.table.best_share) if self.table.width else self.below.best_share

    def best(self, classes: Tensor, k: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        table, places = self.table, self.at(rows, classes)
        if not table.width:
            return table.view.best(classes, k, places)
        return table.best(classes, k, places) if self.places is None else table.best_again(classes, k, places)


class ContextClasses(BoundBackground):
    """The background `base` of a batch with the context classes of `source`.

    A state is the index of its context, (N, 1), with more columns in a subclass. Unless the context determines the
    state below, it is `JointStates` of these columns and the state below.
    """

    view_type: ClassVar[type[ContextView]] = ContextView

    def __init__(self, base: BoundBackground, source: ContextClassSource) -> None:
        self.base, self.source = base, source
        self.class_of, self.num_below = base.class_of, base.num_classes  # C
        # if the source does not change, the context determines everything but the mass that its words add
        self.by_context = base.is_context_independent and not source.changes
        self.is_context_independent = self.by_context
        self.has_dead_ends = base.has_dead_ends
        self.most_steps = NO_END if source.unk is not None and base.has_dead_ends else base.most_steps

    @property
    def num_classes(self) -> int:  # type: ignore[override]
        """C + J, which grows with new contexts."""
        return self.num_below + self.source.width

    def possible_words(self) -> Tensor:
        return self.base.possible_words()

    # ---- states -----------------------------------------------------------------------------------------------------

    def start(self, n: int) -> States:
        columns = self._start_columns(n)
        return columns if self.by_context else JointStates([columns, self.base.start(n)])

    def advance(self, states: States, tokens: Tensor) -> States:
        if self.is_context_independent:
            return states
        columns = self._columns_after(self.columns_of(states), tokens)
        if self.by_context:
            return columns
        below = states.parts[1]
        return JointStates([columns, self.base.advance(below, self._as_below(tokens, below))])

    def flat_states(self, previous: Tensor) -> States:
        columns = self._columns_per_position(previous).flatten(0, 1)
        return columns if self.by_context else JointStates([columns, self.base.flat_states(self._read_below(previous))])

    def steps_to_end(self, states: States) -> Tensor:
        return self.base.steps_to_end(self.below(states))

    def below(self, states: States) -> States:
        """Return the states of the background below."""
        return select(self.table.view.states, self.contexts_of(states)) if self.by_context else states.parts[1]

    def columns_of(self, states: States) -> Tensor:
        """Return the columns of this layer: (N, …)."""
        columns: Tensor = states if self.by_context else states.parts[0]
        return columns

    def contexts_of(self, states: States) -> Tensor:
        """Return the contexts of the hypotheses: (N,)."""
        return self.columns_of(states)[:, 0].long()

    def _start_columns(self, n: int) -> Tensor:
        """Return the columns of n initial states: (n, …)."""
        return self.source.start(n).to(self.class_of.device).unsqueeze(1)

    def _columns_after(self, columns: Tensor, tokens: Tensor) -> Tensor:
        """Return the columns (N, …) after the tokens (N,)."""
        return self.source.advance(columns[:, 0].long(), tokens).unsqueeze(1)

    def _columns_per_position(self, previous: Tensor) -> Tensor:
        """Return the columns before each position: (B, T) -> (B, T, …)."""
        return self.source.per_position(previous).unsqueeze(2)

    def _as_below(self, tokens: Tensor, below: States) -> Tensor:
        """Replace tokens (N, …) outside the vocabulary of the background below, whose states are given, by `unk`."""
        if self.source.unk is None:
            return tokens
        return tokens.masked_fill(~self.base.in_vocabulary(tokens, below), self.source.unk)

    def in_vocabulary(self, tokens: Tensor, states: States) -> Tensor:
        is_below = self.base.in_vocabulary(tokens, self.below(states))
        if self.source.unk is None:
            return is_below
        return is_below | find(tokens, self.source.words(self.contexts_of(states)))[1]

    def to_input_ids(self, tokens: Tensor, states: States) -> Tensor:
        below = self.below(states)
        read = self.base.to_input_ids(self._as_below(tokens, below), below)
        if self.source.unk is None or not self.source.width:
            return read
        contexts = self.contexts_of(states)
        index, is_context = find(tokens, self.source.words(contexts))
        in_place = self.source.input_id_of(contexts).gather(1, index)
        return torch.where(is_context & (in_place != tokens), in_place, read)

    def _read_below(self, previous: Tensor) -> Tensor:
        """Return the inputs (B, T) of the background below."""
        return previous if self.source.unk is None else self._as_below(previous, self.base.start(len(previous)))

    # ---- views ------------------------------------------------------------------------------------------------------

    @cached_property
    def table(self) -> ClassTable:
        """The classes of all contexts of the batch, if they determine everything."""
        contexts = self._start_columns(self.source.rows)[:, 0].long()
        return ClassTable(self.base.view(self.base.start(self.source.rows)), self.source, contexts)

    def view(self, states: States, hidden: Tensor | None = None, remaining: int | None = None) -> ContextView:
        if self.by_context:
            return self.view_type(self, states, self.table, self.contexts_of(states), None, remaining)
        return self._view_on(self.base.view(states.parts[1], hidden, remaining), self.columns_of(states), remaining)

    def view_of(self, previous: Tensor, hidden: Tensor | None = None) -> ContextView:
        if self.by_context:
            states, first = self.flat_states(previous), self.start(len(previous))
            return self.view_type(self, states, self.table, self.contexts_of(states), self.contexts_of(first))
        columns = self._columns_per_position(previous).flatten(0, 1)  # first, because new contexts may add classes
        return self._view_on(self.base.view_of(self._read_below(previous), hidden), columns)

    def _view_on(self, below: View, columns: Tensor, remaining: int | None = None) -> ContextView:
        """Return the view of N states, given their columns and the view below."""
        table = ClassTable(below, self.source, columns[:, 0].long(), remaining, self.has_dead_ends)
        return self.view_type(self, JointStates([columns, below.states]), table, remaining=remaining)


def each_layer(background: BoundBackground) -> Iterator[ContextClasses]:
    """Yield the layers of context classes of a background, outermost first."""
    while isinstance(background, ContextClasses):
        yield background
        background = background.base


def strings_in(background: BoundBackground) -> ContextClasses | None:
    """Return the layer of `background` whose source adds strings, or None if there is none."""
    return next((layer for layer in each_layer(background) if layer.source.unk is not None), None)


def layers_of(view: View) -> list[ContextView]:
    """Return the views of all layers of context classes, innermost first."""
    layers: list[ContextView] = []
    while isinstance(view, ContextView):
        layers.append(view)
        view = view.below
    return layers[::-1]
