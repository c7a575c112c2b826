"""Context classes: classes of one word each that exist only in a sentence or at a step, on top of any background.

Sizes: N hypotheses, B sentences, T time, V words, C classes of the background below, J the largest number of context
classes of a context, K columns of the background below (V, or more if it has strings), M rows of a class table.

Context class j is class C + j. Its only member moves out of its class below. So it can have its own score, and the
sum over classes stays exact (Dymetman & Xiao 2016, §4 and §6). With b₁ the weights below and m the mass that the source
adds to a word (zero if it only separates the word),

    b(K, x)  =  b₁(K, x) + m(K, x)        mass of class C + j: b(K, x_j)        of σ: B₁(σ) − Σ_{x_j ∈ σ} b₁(K, x_j)

A source may also replace b₁ of its words (`log_weights_below`). Every source obeys one law: mass before + mass added =
mass after, each word is in exactly one class, and the shares of a class sum to one
(tests/support/context_class_laws.py). The residual mass of a class is summed again without the moved words
(`log_mass_without`), because a difference would lose digits. The log shares of the remaining words grow by
log B₁(σ) − log B(σ).

A source lists its words by context. Slots of evidence are one source. class_source.py has their rows in the output
layer. Layers of context classes can be nested. A `ClassTable` holds the values of contexts: of all contexts of a batch
if they determine everything, otherwise of the states of one step.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, BoundBackground, ClassWeights
from fairseq_llrnn.backgrounds.class_weights import broadcast_groups, compress_runs, log_difference, same_tensor
from fairseq_llrnn.backgrounds.states import JointStates, States, repeat, select

NO_WORD = -1  # padding of contexts with fewer than J context classes


class ContextClassSource:
    """A source of context classes. Subclasses set `rows` and `width`, and define `start` and `words`."""

    rows: int  # the number of initial contexts of a batch; they have the first indices
    width: int  # J; may grow with new contexts
    changes = False  # whether tokens change the context
    # Set if it adds strings (ids outside the vocabulary of the background below) and mass: the word that all other such
    # strings are in the background below, alone in its class.
    unk: int | None = None

    def start(self, n: int) -> Tensor:
        """Return the initial contexts of n sentences: (n,)."""
        raise NotImplementedError

    def words(self, contexts: Tensor) -> Tensor:
        """Return the distinct words of the context classes: (…,) -> (…, J), padded with NO_WORD.

        If `unk` is None, words outside the vocabulary of the background below count as NO_WORD.
        """
        raise NotImplementedError

    def advance(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        """Return the contexts after these tokens: (N,), (N,) -> (N,)."""
        return contexts

    def per_position(self, previous: Tensor) -> Tensor:
        """Return the contexts before each position of a batch with inputs `previous`: (B, T) -> (B, T)."""
        contexts = [self.start(len(previous)).to(previous.device)]
        for t in range(1, previous.size(1)):
            contexts.append(self.advance(contexts[-1], previous[:, t]) if self.changes else contexts[0])
        return torch.stack(contexts, dim=1)

    # ---- only if it adds strings ------------------------------------------------------------------------------------

    def log_added(self, contexts: Tensor) -> Tensor:
        """Return log m of the word of each context class: (N,) -> (N, J), −inf for NO_WORD."""
        raise NotImplementedError

    def log_weights_below(
        self, base: BoundBackground, below: States, contexts: Tensor, words: Tensor
    ) -> Tensor | None:
        """Return log b₁ of the words of context classes, instead of that in `base`: (N, J). None: that in `base`.

        Args:
            base: the background below. below: its states, (N, …).
            contexts: (N,). words: (N, J), those of the contexts; any word of `base` for strings and padding.
        """
        return None

    def log_unk_factor(self, contexts: Tensor) -> Tensor:
        """Return the log factor of <unk>'s weight: (N,) -> (N,)."""
        raise NotImplementedError

    def unreadable(self, contexts: Tensor) -> Tensor:
        """Return whether a network has no input row for the word of each context class: (…,) -> (…, J) bool."""
        raise NotImplementedError

    def input_id_of(self, contexts: Tensor) -> Tensor:
        """Return the network's input id for the word of each context class: (…,) -> (…, J)."""
        assert self.unk is not None
        return self.words(contexts).masked_fill(self.unreadable(contexts), self.unk)


class ClassTable:
    """The context classes of M contexts or states: their words, and the classes from which these moved."""

    def __init__(self, base: BoundBackground, source: ContextClassSource, contexts: Tensor, below: States) -> None:
        """contexts: (M,). below: M states of the background below, `base`."""
        self.base, self.source, self.contexts, self.below = base, source, contexts, below
        unk, self.width, words = source.unk, source.width, source.words(contexts)
        knows = base.in_vocabulary(words, below)
        self.words = words if unk is not None else words.masked_fill(~knows, NO_WORD)  # shape: (M, J)
        self.moved = knows & (self.words != NO_WORD)  # whether each word leaves a class below
        self.words_below = self.words.masked_fill(~self.moved, unk or 0)  # these, and some word for the others
        states = repeat(below, self.width)
        self.original = base.classes(states, self.words_below.flatten()).view_as(self.words_below)
        same_class = (self.original.unsqueeze(2) == self.original.unsqueeze(1)) & self.moved.unsqueeze(1)
        self.first = self.moved & ~same_class.tril(-1).any(2)  # whether it is the first to leave its class

    @cached_property
    def mass_below(self) -> Tensor:
        """The log masses below: (M, C)."""
        return self.base.log_mass(self.below).expand(len(self.contexts), -1)

    @cached_property
    def share_below(self) -> Tensor:
        """The log share below of each moved word, −inf for others: (M, J)."""
        base = self.base
        if base.is_context_independent or isinstance(base, ContextClasses):
            share = shares_of(base, self.below, self.words_below)
        else:  # looks each state up once, not once for each of its J words
            rows = torch.arange(len(self.contexts), device=self.contexts.device).repeat_interleave(self.width)
            weights = base.log_weights_at(self.below, rows, self.words_below.flatten())
            share = log_difference(weights.view_as(self.words), self.mass_below.gather(1, self.original))
        return share.masked_fill(~self.moved, NEGATIVE_INFINITY)

    @cached_property
    def mass(self) -> Tensor:
        """The log mass of each context class, −inf for padding: (M, J)."""
        source, share = self.source, self.share_below
        mass = torch.where(share.isneginf(), share, self.mass_below.gather(1, self.original) + share)
        if source.unk is None:
            return mass
        own = source.log_weights_below(self.base, self.below, self.contexts, self.words_below)
        if own is not None:
            mass = own.to(mass.dtype).masked_fill(~self.moved, NEGATIVE_INFINITY)
        return torch.logaddexp(source.log_added(self.contexts).to(mass.dtype), mass)

    @cached_property
    def residual_mass(self) -> Tensor:
        """The log mass of each original class without all moved words: (M, J)."""
        return self.base.log_mass_without(self.below, self.words_below, self.moved)

    @cached_property
    def log_renormaliser(self) -> Tensor:
        """The growth of the log shares of words that stay in the original class, at its first moved word, else
        0: (M, J).
        """
        before = self.mass_below.gather(1, self.original)
        return torch.where(self.first & ~self.residual_mass.isneginf(), before - self.residual_mass, 0.0)

    @cached_property
    def log_mass(self) -> Tensor:
        """The log masses of all classes: (M, C + J)."""
        base, mass = self.base, torch.cat([self.mass_below, self.mass], dim=1)
        if self.source.unk is not None:
            factor = self.source.log_unk_factor(self.contexts).unsqueeze(1)
            mass.index_add_(1, base.class_of[self.source.unk].view(1), factor.to(mass.dtype))
        # the residual mass of a class is written once: otherwise its gradient would count twice
        own = base.num_classes + torch.arange(self.width, device=mass.device)
        place = torch.where(self.first, self.original, own)
        return mass.scatter_(1, place, torch.where(self.first, self.residual_mass, self.mass))

    @cached_property
    def sorted_words(self) -> Tensor:
        """(M, J)"""
        return self.words.sort(1).values


class ContextRows:
    """The context classes of N states: a table, and its row for each state."""

    def __init__(self, table: ClassTable, state: States, rows: Tensor | None) -> None:
        """rows: (N,). None: row n is of state n."""
        self.table, self.state, self.rows = table, state, rows

    def pick(self, values: Tensor) -> Tensor:
        """Select the rows of the states: (M, …) -> (N, …)."""
        return values if self.rows is None else values.index_select(0, self.rows)

    @cached_property
    def below(self) -> States:
        """The N states of the background below."""
        return self.table.below if self.rows is None else select(self.table.below, self.rows)

    @cached_property
    def groups(self) -> Tensor | None:
        """One row for each run of equal rows (`compress_runs` of backgrounds/class_weights.py): (G,), or None."""
        return None if self.rows is None else compress_runs(self.rows)

    def pick_groups(self, values: Tensor) -> Tensor:
        """Select one row for each run: (M, …) -> (G, …)."""
        return values if self.groups is None else values.index_select(0, self.groups)


class ContextClasses(BoundBackground):
    """The background `base` of a batch with the context classes of `source`.

    A state is the index of its context, (N, 1), with more columns in a subclass. Unless the context determines the
    state below, it is `JointStates` of these columns and the state below.
    """

    def __init__(self, base: BoundBackground, source: ContextClassSource) -> None:
        super().__init__(base.class_of, base.num_classes)
        self.source = source
        self.num_below = base.num_classes  # C
        # if the source does not change, the context determines everything but the mass that its words add
        self.by_context = base.is_context_independent and not source.changes
        self.is_context_independent = self.by_context
        self._flat: tuple[Tensor, States] | None = None  # the last inputs of `flat_states`, and their states
        self._remaining: int | None = None
        self._set_base(base)
        self._grow()

    def _set_base(self, base: BoundBackground) -> None:
        """Set the background below, and clear the values of the previous one."""
        self.base = self._reach = base  # `_reach`: `base` within a limit of length, for shares
        self._table: ClassTable | None = None  # of all contexts of the batch
        self._context_rows: ContextRows | None = None  # of the last states
        self._clear_shares()

    def _clear_shares(self) -> None:
        self._member_shares: tuple[ClassTable, Tensor] | None = None  # `_class_shares` of the last table
        self._best_shares: tuple[ClassTable, Tensor] | None = None  # `best_share` of the last table
        self._ranked: dict[int, tuple[Tensor, ...]] = {}  # of `best_members`, by k

    def _grow(self) -> None:
        self.num_classes = self.num_below + self.source.width
        self.sparse = self.base.sparse and not self.source.width

    # ---- changes of the background below ----------------------------------------------------------------------------

    def possible_words(self) -> Tensor:
        return self.base.possible_words()

    def _with_base(self, base: BoundBackground) -> BoundBackground:
        """Return the same classes on top of another background of the same sentences, or itself if it is the same."""
        if base is self.base:
            return self
        layer = copy.copy(self)
        layer._set_base(base)
        return layer if self._remaining is None else layer.with_max_length(self._remaining)

    def with_hidden(self, hidden: Tensor) -> BoundBackground:
        return self._with_base(self.base.with_hidden(hidden))

    def select_rows(self, index: Tensor) -> BoundBackground:
        return self._with_base(self.base.select_rows(index))

    def with_max_length(self, remaining: int) -> BoundBackground:
        base = self.base.with_max_length(remaining)
        if base is self.base and not self._is_limiting(remaining):
            return self
        limited = copy.copy(self)
        limited._reach, limited._remaining = base, remaining
        limited._clear_shares()
        return limited

    def _is_limiting(self, remaining: int) -> bool:
        """Return whether a limit of length excludes words that the background below keeps."""
        return self.source.unk is not None and self.base.has_dead_ends

    def steps_to_end(self, state: States) -> Tensor:
        return self.base.steps_to_end(self.below(state))

    @property
    def has_dead_ends(self) -> bool:
        return self.base.has_dead_ends

    # ---- states -----------------------------------------------------------------------------------------------------

    def start(self, n: int) -> States:
        columns = self._start_columns(n)
        return columns if self.by_context else JointStates([columns, self.base.start(n)])

    def advance(self, state: States, tokens: Tensor) -> States:
        if self.is_context_independent:
            return state
        if self.by_context:
            return self._columns_after(self.columns_of(state), tokens)
        below = self.below(state)
        if not self.base.is_context_independent:
            below = self.base.advance(below, self._as_below(tokens, state))
        columns = self._columns_after(self.columns_of(state), tokens)
        self._grow()
        return JointStates([columns, below])

    def _start_columns(self, n: int) -> Tensor:
        """Return the columns of n initial states: (n, …)."""
        return self.source.start(n).to(self.class_of.device).unsqueeze(1)

    def _columns_after(self, columns: Tensor, tokens: Tensor) -> Tensor:
        """Return the columns (N, …) after the tokens (N,)."""
        return self.source.advance(columns[:, 0].long(), tokens).unsqueeze(1)

    def _columns_per_position(self, previous: Tensor) -> Tensor:
        """Return the columns before each position: (B, T) -> (B, T, …)."""
        return self.source.per_position(previous).unsqueeze(2)

    def flat_states(self, previous: Tensor) -> States:
        read = previous[:, 1:]
        if self._flat is None or not same_tensor(self._flat[0], read):
            columns = self._columns_per_position(previous).flatten(0, 1)
            self._grow()
            below = None if self.by_context else self.base.flat_states(self._as_below(previous))
            self._flat = read, columns if below is None else JointStates([columns, below])
        return self._flat[1]

    def columns_of(self, state: States) -> Tensor:
        """Return the columns of this layer: (N, …)."""
        columns: Tensor = state if self.by_context else state.parts[0]
        return columns

    def contexts_of(self, state: States) -> Tensor:
        """Return the contexts of the hypotheses: (N,)."""
        return self.columns_of(state)[:, 0].long()

    def context_rows(self, state: States) -> ContextRows:
        """Return the context classes of N states. Caches the last result."""
        last = self._context_rows
        if last is not None and last.table.width == self.source.width and last.state is state:
            return last
        contexts = self.contexts_of(state)
        if self.by_context:
            if self._table is None:
                start = self._start_columns(self.source.rows)
                below = self.base.start(self.source.rows)
                self._table = ClassTable(self.base, self.source, self.contexts_of(start), below)
            self._context_rows = ContextRows(self._table, state, contexts)
        else:
            table = ClassTable(self.base, self.source, contexts, state.parts[1])
            self._context_rows = ContextRows(table, state, None)
        return self._context_rows

    def below(self, state: States) -> States:
        """Return the states of the background below."""
        return self.context_rows(state).below if self.by_context else state.parts[1]

    # ---- words, their classes and columns ---------------------------------------------------------------------------

    def _find_class(self, tokens: Tensor, state: States | None) -> tuple[Tensor, Tensor]:
        """Return the context class of each token (N, …), and whether it has one."""
        if not self.source.width:
            return torch.zeros_like(tokens), torch.zeros_like(tokens, dtype=torch.bool)
        if state is not None:
            context = self.context_rows(state)
            words = context.pick(context.table.words)
        else:
            words = self.source.words(self.source.start(len(tokens)).to(tokens.device))
        same = words.view(len(words), *[1] * (tokens.dim() - 1), -1) == tokens.unsqueeze(-1)
        return same.long().argmax(-1), same.any(-1)

    def _as_below(self, tokens: Tensor, state: States | None = None) -> Tensor:
        """Replace tokens (N, …) outside the vocabulary of the background below by `unk`."""
        if self.source.unk is None:
            return tokens
        is_below = self.base.in_vocabulary(tokens, None if state is None else self.below(state))
        return tokens.masked_fill(~is_below, self.source.unk)

    def in_vocabulary(self, tokens: Tensor, state: States | None = None) -> Tensor:
        is_below = self.base.in_vocabulary(tokens, None if state is None else self.below(state))
        return is_below if self.source.unk is None else is_below | self._find_class(tokens, state)[1]

    def classes(self, state: States, tokens: Tensor) -> Tensor:
        index, is_context = self._find_class(tokens, state)
        below = self.base.classes(self.below(state), self._as_below(tokens, state))
        return torch.where(is_context, self.num_below + index, below)

    def only_member(self, state: States, classes: Tensor) -> Tensor:
        base = self.base.only_member(self.below(state), classes.clamp_max(self.num_below - 1))
        if not self.source.width:
            return base
        context = self.context_rows(state)
        words = context.pick(context.table.words).clamp_min(0)
        return torch.where(classes >= self.num_below, words.gather(1, (classes - self.num_below).clamp_min(0)), base)

    def to_input_ids(self, tokens: Tensor, state: States | None = None) -> Tensor:
        read = self.base.to_input_ids(self._as_below(tokens, state), None if state is None else self.below(state))
        if self.source.unk is None or not self.source.width:
            return read
        index, is_context = self._find_class(tokens, state)
        contexts = self.source.start(len(tokens)) if state is None else self.contexts_of(state)
        in_place = self.source.input_id_of(contexts.to(tokens.device)).gather(1, index)
        return torch.where(is_context & (in_place != tokens), in_place, read)

    def columns(self, state: States) -> Tensor:
        base = self.base.columns(self.below(state)).expand(len(state), -1)
        if self.source.unk is None or not self.source.width:
            return base
        context = self.context_rows(state)
        return torch.cat([base, context.pick(context.table.words).clamp_min(0)], dim=1)

    def column_of(self, tokens: Tensor, state: States | None = None) -> Tensor:
        below = None if state is None else self.below(state)
        column = self.base.column_of(self._as_below(tokens, state), below)
        if self.source.unk is None:
            return column
        index, is_context = self._find_class(tokens, state)
        return torch.where(is_context & ~self.base.in_vocabulary(tokens, below), self.base.num_columns + index, column)

    def column_classes(self, state: States) -> Tensor:
        base = self.base.column_classes(self.below(state)).expand(len(state), -1)
        return self._in_columns(base, self.class_numbers.expand(len(state), -1), state)

    @property
    def num_columns(self) -> int:
        return self.base.num_columns + (0 if self.source.unk is None else self.source.width)

    @property
    def class_numbers(self) -> Tensor:
        """The indices of the context classes: (J,)."""
        return self.num_below + torch.arange(self.source.width, device=self.class_of.device)

    def _in_columns(self, of_words: Tensor, of_contexts: Tensor, state: States) -> Tensor:
        """Return values of the columns below (N, K), with values of context classes (N, J) in the columns of
        their words.
        """
        if not of_contexts.size(1):
            return of_words.expand(len(state), -1)
        size, context = of_words.size(1), self.context_rows(state)
        # strings have their own columns after those below; padding is cut off
        more = size + torch.arange(of_contexts.size(1), device=of_contexts.device)
        column = self.base.column_of(context.pick(context.table.words_below), context.below)
        column = torch.where(context.pick(context.table.moved), column, more)
        none = NEGATIVE_INFINITY if of_contexts.is_floating_point() else 0
        wide = functional.pad(of_words.expand(len(state), -1), (0, of_contexts.size(1)), value=none)
        return wide.scatter(1, column, of_contexts.to(wide.dtype))[:, : self.num_columns]

    # ---- masses and shares ------------------------------------------------------------------------------------------

    def class_weights(self, state: States) -> ClassWeights:
        if not self.source.width:
            return self.base.class_weights(self.below(state))
        context = self.context_rows(state)
        return ClassWeights(context.pick_groups(context.table.log_mass), len(state))

    def teacher_forced(self, previous: Tensor) -> tuple[States, ClassWeights]:
        states = self.flat_states(previous)  # first, because new contexts may add context classes
        if self.is_context_independent:
            return super().teacher_forced(previous)
        if self.source.width or not self.base.is_context_independent:
            return states, ClassWeights(self.log_mass(states), len(states))
        # one row per sentence, although its contexts differ
        class_weights = self.base.class_weights(self.base.start(len(previous)))
        return states, class_weights.repeated(previous.size(1))

    def log_mass(self, state: States) -> Tensor:
        if not self.source.width:
            return self.base.log_mass(self.below(state))
        context = self.context_rows(state)
        return context.pick(context.table.log_mass)

    def _unk_factor(self, state: States) -> Tensor:
        """(N, 1)"""
        return self.source.log_unk_factor(self.contexts_of(state)).unsqueeze(1)

    def log_mass_without(self, state: States, words: Tensor, taken: Tensor) -> Tensor:
        """As in the base class. Words of context classes have already left their classes, and leave an empty class."""
        if not self.source.width:
            return self.base.log_mass_without(self.below(state), self._as_below(words, state), taken)
        context, (index, is_context) = self.context_rows(state), self._find_class(words, state)
        others = self._as_below(words, state).masked_fill(is_context, self.source.unk or 0)
        all_words = torch.cat([context.pick(context.table.words_below), others], dim=1)
        out = torch.cat([context.pick(context.table.moved), taken & ~is_context], dim=1)
        rest = self.base.log_mass_without(context.below, all_words, out)[:, self.source.width :]
        if self.source.unk is not None:
            rest = rest + (others == self.source.unk) * self._unk_factor(state).to(rest.dtype)
        mass = context.pick(context.table.mass).gather(1, index)
        return torch.where(is_context, mass.masked_fill(taken, NEGATIVE_INFINITY), rest)

    def log_share_sums(self, state: States) -> tuple[Tensor, Tensor]:
        sums = self.base.log_share_sums(self.below(state))
        if not self.source.width:
            return sums
        count, total = (values.expand(len(state), -1) for values in sums)
        context = self.context_rows(state)
        original, share = context.pick(context.table.original), context.pick(context.table.share_below)
        moved = ~share.isneginf()
        count = count.scatter_add(1, original, -moved.to(count.dtype))
        total = total.scatter_add(1, original, -share.masked_fill(~moved, 0.0))
        total += count * torch.zeros_like(count).scatter_add(1, original, context.pick(context.table.log_renormaliser))
        width = self.source.width  # each context class has one member, whose share is 1
        return functional.pad(count, (0, width), value=1.0), functional.pad(total, (0, width))

    def log_share(self, state: States, tokens: Tensor) -> Tensor:
        below, words_below = self.below(state), self._as_below(tokens, state)
        share = self._reach.log_share(below, words_below)
        if not self.source.width:
            return share
        (index, is_context), context = self._find_class(tokens, state), self.context_rows(state)
        shares_alone = context.pick(self._class_shares(context.table)).gather(1, index.unsqueeze(1)).squeeze(1)
        gain = _gain_at(context, self.base.classes(below, words_below).unsqueeze(1)).squeeze(1)
        return torch.where(is_context, shares_alone, share + gain)

    def _class_shares(self, table: ClassTable) -> Tensor:
        """Return the log share of the only member of each context class, (M, J): 0, or −inf without mass or out
        of reach.
        """
        if self._member_shares is None or self._member_shares[0] is not table:
            self._member_shares = table, self._find_class_shares(table)
        return self._member_shares[1]

    def _find_class_shares(self, table: ClassTable) -> Tensor:
        shares = table.mass.masked_fill(~table.mass.isneginf(), 0.0)
        if self._remaining is None or (self._reach is self.base and not self.base.has_dead_ends):
            return shares
        lost = shares_of(self._reach, table.below, table.words_below).isneginf()
        if self.source.unk is not None:  # words with mass from the source alone
            states = repeat(table.below, table.width)
            after = self.base.advance(states, table.words_below.flatten())
            far = self.base.steps_to_end(after).view_as(table.words) >= self._remaining
            lost = torch.where(table.share_below.isneginf(), far, lost)
        return shares.masked_fill(lost, NEGATIVE_INFINITY)

    # ---- the best words (search) ------------------------------------------------------------------------------------

    def best_share(self, state: States) -> Tensor:
        if not self.source.width:
            return self._reach.best_share(self.below(state))
        context = self.context_rows(state)
        table = context.table
        if self._best_shares is None or self._best_shares[0] is not table:
            shares, all_rows = self._class_shares(table), ContextRows(table, state, None)
            first = self._best_remaining(all_rows, table.original, 1)[0].squeeze(2)  # shape: (M, J)
            best = torch.cat([broadcast_groups(self._reach.best_share(table.below), len(shares)), shares], dim=1)
            place = torch.where(table.moved, table.original, self.class_numbers)
            self._best_shares = table, best.scatter_(1, place, torch.where(table.moved, first, shares))
        return context.pick_groups(self._best_shares[1])

    def best_members(self, state: States, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        if not self.source.width:
            return self._reach.best_members(self.below(state), classes, k)
        context = self.context_rows(state)
        if not self.by_context:
            return self._best_members(context, classes, k)
        # hypotheses and steps repeat the same classes: each pair of a context and a class is computed once
        pairs = self.contexts_of(state).unsqueeze(1) * self.num_classes + classes
        place, *found = self._ranked.get(k, (self.class_of.new_full((self.source.rows * self.num_classes,), -1),))
        places = place[pairs]
        if bool((places < 0).any()):
            new = pairs[places < 0].unique()
            contexts, index = ContextRows(context.table, state, new // self.num_classes), new % self.num_classes
            more = [values.squeeze(1) for values in self._best_members(contexts, index.unsqueeze(1), k)]
            place[new] = (len(found[0]) if found else 0) + torch.arange(len(new), device=new.device)
            found = [torch.cat(pair) for pair in zip(found, more, strict=True)] if found else more
            self._ranked[k], places = (place, *found), place[pairs]
        return found[0][places], found[1][places]

    def _best_members(self, context: ContextRows, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        index = (classes - self.num_below).clamp_min(0)
        is_context = classes >= self.num_below
        shares, words = self._best_remaining(context, classes.masked_fill(is_context, 0), k)
        shares_alone = context.pick(self._class_shares(context.table)).gather(1, index).unsqueeze(2)
        word, is_context = context.pick(context.table.words).gather(1, index).unsqueeze(2), is_context.unsqueeze(2)
        shares = torch.where(is_context, functional.pad(shares_alone, (0, k - 1), value=NEGATIVE_INFINITY), shares)
        return shares, torch.where(is_context, word, words).masked_fill(shares.isneginf(), 0)

    def _best_remaining(self, context: ContextRows, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best words that stay in classes below: (N, C') -> log shares and words (N, C', k)."""
        shares, words = self._reach.best_members(context.below, classes, k + self.source.width)
        moved = context.pick(context.table.sorted_words)
        place = torch.searchsorted(moved, words.flatten(1)).clamp_max(moved.size(1) - 1)
        is_gone = (moved.gather(1, place) == words.flatten(1)).view_as(words)
        values, index = shares.masked_fill(is_gone, NEGATIVE_INFINITY).topk(k, dim=2)
        return values + _gain_at(context, classes).unsqueeze(2), words.gather(2, index)

    # ---- all words --------------------------------------------------------------------------------------------------

    def log_weights(self, state: States) -> Tensor:
        """(N, K), and J columns more if the source adds strings."""
        weights = self.base.log_weights(self.below(state)).expand(len(state), -1)
        if not self.source.width:
            return weights
        if self.source.unk is not None:
            unk = self.class_of.new_tensor([self.source.unk])
            weights = weights.index_add(1, unk, self._unk_factor(state).to(weights))
        context = self.context_rows(state)
        return self._in_columns(weights, context.pick(context.table.mass), state)

    def log_shares(self, state: States) -> Tensor:
        """As `log_weights`."""
        shares = self._reach.log_shares(self.below(state))
        if not self.source.width:
            return shares
        context = self.context_rows(state)
        return self._in_columns(self._add_gain(shares, state), context.pick(self._class_shares(context.table)), state)

    def word_log_probs(self, classes: Tensor, state: States) -> Tensor:
        """log p(σ | K) (N, C + J) -> log p of the words, in the columns of `log_weights`."""
        words = self._reach.word_log_probs(classes[:, : self.num_below], self.below(state))
        if not self.source.width:
            return words
        context = self.context_rows(state)
        of_contexts = classes[:, self.num_below :] + context.pick(self._class_shares(context.table)).to(classes.dtype)
        return self._in_columns(self._add_gain(words, state), of_contexts, state)

    def _add_gain(self, of_words: Tensor, state: States) -> Tensor:
        """Return values of the columns below (N, K), plus the log renormaliser of the words that stay."""
        context = self.context_rows(state)
        lift = of_words.new_zeros(len(state), self.num_below)
        renormaliser = context.pick(context.table.log_renormaliser).to(of_words.dtype)
        lift = lift.scatter_add(1, context.pick(context.table.original), renormaliser)
        return of_words + lift.gather(1, self.base.column_classes(context.below).expand(len(state), -1))


def _gain_at(context: ContextRows, classes: Tensor) -> Tensor:
    """Return the growth of the log shares of words that stay in classes below: (N, C') -> (N, C')."""
    same = classes.unsqueeze(2) == context.pick(context.table.original).unsqueeze(1)
    return torch.where(same, context.pick(context.table.log_renormaliser).unsqueeze(1), 0.0).sum(2)


def each_layer(background: BoundBackground) -> Iterator[ContextClasses]:
    """Yield the layers of context classes of a background, outermost first."""
    while isinstance(background, ContextClasses):
        yield background
        background = background.base


def layers_of(background: BoundBackground, states: States) -> list[tuple[ContextClasses, States]]:
    """Return the layers of context classes of a background, innermost first, each with its states."""
    layers: list[tuple[ContextClasses, States]] = []
    for layer in each_layer(background):
        states = layers[-1][0].below(states) if layers else states
        layers.append((layer, states))
    return layers[::-1]


def strings_in(background: BoundBackground) -> ContextClasses | None:
    """Return the layer of `background` whose source adds strings, or None if there is none."""
    return next((layer for layer in each_layer(background) if layer.source.unk is not None), None)


def shares_of(background: BoundBackground, state: States, words: Tensor) -> Tensor:
    """Return the log shares of words of each hypothesis: (N, J) -> (N, J)."""
    rows = torch.arange(len(words), device=words.device).repeat_interleave(words.size(1))
    return background.select_rows(rows).log_share(repeat(state, words.size(1)), words.flatten()).view_as(words)
