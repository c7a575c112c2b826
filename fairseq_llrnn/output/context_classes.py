"""Context classes: classes of one word each that exist only in a sentence or at a step, in front of any background.

Sizes: N hypotheses, B sentences, T time, V words, C classes of the background below, J context classes of the context
that has most of them, K columns of the background below (V, and more where it brings strings of its own).

Context class j is class C + j. Its only member leaves its class below, so that it can have a score of its own and the
sum over classes stays exact (Dymetman & Xiao 2016, §4 and §6). With b₁ the weights below and m the mass that the source
adds to a word (none, if it only singles it out),

    b(K, x)  =  b₁(K, x) + m(K, x)        mass of class C + j: b(K, x_j)        of σ: B₁(σ) − Σ_{x_j ∈ σ} b₁(K, x_j)

A source may also multiply b₁ of its words (`log_lift`). One law for all sources: mass before + mass added = mass after,
each word is in exactly one class, and the shares of a class sum to one (tests/support/context_class_laws.py). The mass
that is left of a class is summed again without the words that leave (`Background.log_mass_without`): as a difference it
would lose its digits. Those that stay share the gain, log B₁(σ) − log B(σ), in their log shares.

A source says which words these are, by context; slots of evidence are one source. Which rows the
output layer has for them is in class_source.py. Sources nest:
one background of context classes may stand in front of another. What depends on the contexts alone is found once for
all that a batch begins with; anything else not again for the states that it was asked for last (`recalled`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Self, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background, Masses
from fairseq_llrnn.backgrounds.masses import each_row, log_difference, runs, same_tensor

NO_WORD = -1  # where a context has fewer than J context classes


class ContextClassSource:
    """What a source of context classes supplies: `rows`, `width`, `start` and `words`. Contexts are known by number."""

    rows: int  # how many contexts a batch begins with; they have the first numbers
    width: int  # J; may grow while contexts are met
    changes = False  # whether tokens lead from one context to another
    # Where it brings strings of its own (ids that the background below does not know), and mass with them: what all
    # other such strings are to the background below, a word that is alone in its class.
    unk: int | None = None

    def start(self, n: int) -> Tensor:
        """The contexts of n sentences that begin: (n,)."""
        raise NotImplementedError

    def words(self, contexts: Tensor) -> Tensor:
        """The word of each context class, different ones in a context: (…,) -> (…, J), NO_WORD where there are fewer.

        A word that the background below lacks, of a source that brings no strings, counts as NO_WORD.
        """
        raise NotImplementedError

    def advance(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        """The contexts after these tokens: (N,), (N,) -> (N,)."""
        return contexts

    def per_position(self, previous: Tensor) -> Tensor:
        """The contexts before each position of a batch whose inputs are `previous`: (B, T) -> (B, T)."""
        contexts = [self.start(len(previous)).to(previous.device)]
        for t in range(1, previous.size(1)):
            contexts.append(self.advance(contexts[-1], previous[:, t]) if self.changes else contexts[0])
        return torch.stack(contexts, dim=1)

    # ---- only where it brings strings -------------------------------------------------------------------------------

    def log_added(self, contexts: Tensor) -> Tensor:
        """log m of the word of each context class: (N,) -> (N, J), −inf for NO_WORD."""
        raise NotImplementedError

    def log_lift(self, contexts: Tensor) -> Tensor | None:
        """What its weight below is multiplied by, as a logarithm: (N,) -> (N, J); None: nothing changes it."""
        return None

    def log_unk_factor(self, contexts: Tensor) -> Tensor:
        """What <unk>'s weight is multiplied by, as a logarithm: (N,) -> (N,)."""
        raise NotImplementedError

    def unreadable(self, contexts: Tensor) -> Tensor:
        """Whether the word of each context class is unknown to a network: (…,) -> (…, J) bool."""
        raise NotImplementedError

    def read_as(self, contexts: Tensor) -> Tensor:
        """What a network reads in the place of the word of each context class: (…,) -> (…, J)."""
        assert self.unk is not None
        return self.words(contexts).masked_fill(self.unreadable(contexts), self.unk)


class Records:
    """Tensors (N, …) about the context classes of N states; each is selected for some of these when it is read."""

    def index_select(self, dim: int, rows: Tensor) -> Self:
        """As of a tensor."""
        some = object.__new__(type(self))
        some.__dict__["selected"] = self, rows
        return some

    def __getattr__(self, name: str) -> Tensor:
        if "selected" not in self.__dict__:
            raise AttributeError(name)
        every, rows = self.__dict__["selected"]
        values: Tensor = getattr(every, name).index_select(0, rows)
        self.__dict__[name] = values
        return values


@dataclass(frozen=True)
class ClassWords(Records):
    """The words of context classes, and the classes that they have left."""

    words: Tensor  # NO_WORD where there are fewer
    leave: Tensor  # whether they leave a class below
    words_below: Tensor  # those that leave a class below, and some word for the others
    former: Tensor  # the classes that they have left, of some word for the others
    first: Tensor  # whether each is the first to leave its class, and so says what is left of it


@dataclass(frozen=True)
class ClassMasses(Records):
    """What context classes weigh, and what they leave below."""

    share_below: Tensor  # log shares below, −inf for words that leave no class
    mass: Tensor  # log mass of each context class, −inf where there is none
    rest: Tensor  # that of each former class without all that leave it
    gain: Tensor  # what the log shares gain of those who stay in it; 0 but for the first


class StateClasses:
    """The context classes in N states: the contexts, and what was found of the classes there (`recalled`)."""

    def __init__(self, state: Tensor, contexts: Tensor, width: int, every: StateClasses | None = None) -> None:
        """every: the contexts that a batch begins with, where contexts decide; what is said of them is found once."""
        self.state, self.contexts, self.width, self.every = state, contexts, width, every
        self.facts: dict[str, Any] = {}

    @cached_property
    def runs(self) -> Tensor:
        """(G,), as of backgrounds/masses.py."""
        return runs(self.contexts)


Fact = TypeVar("Fact", bound=Tensor | Records)
OF_REACH = ("_class_shares", "_best_share")  # what is found anew for another limit of length
OF_RUNS = ("_log_mass", "_best_share")  # what has a row for each run, since it is as wide as all classes


def recalled(find: Callable[[Any, StateClasses], Fact]) -> Callable[[Any, StateClasses], Fact]:
    """find(self, here), a row for each state, once (module docstring)."""
    name = find.__name__

    @wraps(find)
    def recall(self: ContextClasses, here: StateClasses) -> Fact:
        facts = here.facts if self._reached is None or name not in OF_REACH else self._reached.setdefault(here, {})
        if name not in facts and here.every is None:
            facts[name] = find(self, here)
        elif name not in facts:
            rows = here.runs if name in OF_RUNS else here.contexts
            facts[name] = getattr(self, name)(here.every).index_select(0, rows)
        result: Fact = facts[name]
        return result

    return recall


class ContextClasses(Background):
    """The background `base` with the context classes of `source`.

    A hypothesis' state: the number of its context (and more, in a subclass), then the state below, where the context
    does not decide it.
    """

    state_columns = 1  # of a state

    def __init__(self, base: Background, source: ContextClassSource) -> None:
        super().__init__(base.class_of, base.num_classes)
        self.base, self.source = base, source
        self.num_below = base.num_classes  # C
        self.by_context = base.constant and not source.changes  # whether contexts decide what `recalled` finds
        self.constant = self.by_context
        self.growth = base.growth
        self._reach = (base,)  # what a limit leaves of it, for shares; in a tuple: copies share sub-modules
        self._remaining: int | None = None
        self._flat: tuple[Tensor, Tensor] | None = None  # the inputs whose states were asked for last, and these
        self._base_shape: torch.Size | None = None
        # those of the states that were asked for last, and of all contexts, with gradients and without
        self._asked: dict[tuple[str, bool], StateClasses] = {}
        self._reached: dict[StateClasses, dict[str, Any]] | None = None  # what depends on a limit
        self._ranked: dict[int, tuple[Tensor, Tensor, Tensor]] = {}  # of `best_members`, by k
        self._grow()

    def _grow(self) -> None:
        self.num_classes = self.num_below + self.source.width
        self.sparse = self.base.sparse and not self.source.width

    # ---- in front of another background -----------------------------------------------------------------------------

    def possible_words(self) -> Tensor:
        return self.base.possible_words()

    def _over(self, base: Background) -> Background:
        """The same in front of another background, that of the same sentences; itself where it is the same."""
        if base is self.base:
            return self
        layer = type(self)(base, self.source)
        return layer if self._remaining is None else layer.within(self._remaining)

    def cross_fitted(self, tokens: Tensor) -> Background:
        return self._over(self.base.cross_fitted(self._as_below(tokens)))

    def given(self, source: Tensor, leave_out: Tensor | None = None) -> Background:
        return self._over(self.base.given(source, leave_out))

    def with_hidden(self, hidden: Tensor) -> Background:
        return self._over(self.base.with_hidden(hidden))

    def for_rows(self, index: Tensor) -> Background:
        return self._over(self.base.for_rows(index))

    def within(self, remaining: int) -> Background:
        base = self.base.within(remaining)
        if base is self.base and (self.source.unk is None or not self.base.closes):
            return self
        limited = copy.copy(self)
        limited._reach, limited._remaining = (base,), remaining
        limited._reached, limited._ranked = {}, {}
        return limited

    def steps_to_end(self, state: Tensor) -> Tensor:
        return self.base.steps_to_end(self.below(state))

    @property
    def closes(self) -> bool:
        return self.base.closes

    # ---- states -----------------------------------------------------------------------------------------------------

    def start(self, n: int) -> Tensor:
        columns = self._start_columns(n)
        return columns if self.by_context else self._joined(columns, self.base.start(n))

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        if self.constant:
            return state
        if self.by_context:
            return self._columns_after(state, tokens)
        below = self.below(state)
        if not self.base.constant:
            below = self.base.advance(below, self._as_below(tokens, state))
        columns = self._columns_after(state, tokens)
        self._grow()
        return self._joined(columns, below)

    def _start_columns(self, n: int) -> Tensor:
        """The columns of n states that begin: (n, state_columns)."""
        return self.source.start(n).to(self.class_of.device).unsqueeze(1)

    def _columns_after(self, state: Tensor, tokens: Tensor) -> Tensor:
        """Those after the tokens (N,)."""
        return self.source.advance(self.contexts_of(state), tokens).unsqueeze(1)

    def _columns_per_position(self, previous: Tensor) -> Tensor:
        """Those before each position: (B, T) -> (B, T, state_columns)."""
        return self.source.per_position(previous).unsqueeze(2)

    def flat_states(self, previous: Tensor) -> Tensor:
        read = previous[:, 1:]
        if self._flat is None or not same_tensor(self._flat[0], read):
            columns = self._columns_per_position(previous).flatten(0, 1)
            self._grow()
            below = None if self.by_context else self.base.flat_states(self._as_below(previous))
            self._flat = read, columns if below is None else self._joined(columns, below)
        return self._flat[1]

    def _joined(self, columns: Tensor, below: Tensor) -> Tensor:
        self._base_shape = below.shape[1:]
        return torch.cat([columns.to(below.dtype), below.reshape(len(below), -1)], dim=1)

    def contexts_of(self, state: Tensor) -> Tensor:
        """The contexts of the hypotheses: (N,)."""
        return state[:, 0].long()

    def state_classes(self, state: Tensor) -> StateClasses:
        """The context classes of each state."""
        key = "last", torch.is_grad_enabled()
        last, width = self._asked.get(key), self.source.width
        if last is not None and last.width == width and last.state is state:
            return last
        contexts = self.contexts_of(state)
        if last is not None and last.width == width:
            decides = (last.contexts, contexts) if self.by_context else (last.state, state)
            if same_tensor(*decides):
                last.state = state
                return last
        classes = StateClasses(state, contexts, width, self._every(width) if self.by_context else None)
        self._asked[key] = classes
        return classes

    def _every(self, width: int) -> StateClasses:
        """Those of all contexts that a batch begins with."""
        key = "every", torch.is_grad_enabled()
        every = self._asked.get(key)
        if every is None or every.width != width:
            state = self._start_columns(self.source.rows)
            every = self._asked[key] = StateClasses(state, self.contexts_of(state), width)
        return every

    def below(self, state: Tensor) -> Tensor:
        """The state of the background below, in the shape that it has there."""
        return self._below(self.state_classes(state)) if self.by_context else self._below_in(state)

    @recalled
    def _below(self, here: StateClasses) -> Tensor:
        return self.base.start(self.source.rows) if self.by_context else self._below_in(here.state)

    def _below_in(self, state: Tensor) -> Tensor:
        if self.growth:
            return state[:, self.state_columns :]
        if self._base_shape is None:
            self._base_shape = self.base.start(self.source.rows).shape[1:]
        return state[:, self.state_columns :].reshape(len(state), *self._base_shape)

    # ---- words, their classes and columns ---------------------------------------------------------------------------

    @recalled
    def class_words(self, here: StateClasses) -> ClassWords:
        """The words of the context classes of each state; they do not depend on hidden states."""
        below, unk, words = self._below(here), self.source.unk, self.source.words(here.contexts)
        knows = self.base.knows(words, below)
        words = words if unk is not None else words.masked_fill(~knows, NO_WORD)
        leave = knows & (words != NO_WORD)
        words_below = words.masked_fill(~leave, unk or 0)
        states = below.repeat_interleave(words.size(1), 0)
        former = self.base.classes(states, words_below.flatten()).view_as(words_below)
        beside = (former.unsqueeze(2) == former.unsqueeze(1)) & leave.unsqueeze(1)  # shape: (N, J, J)
        return ClassWords(words, leave, words_below, former, leave & ~beside.tril(-1).any(2))

    def _which(self, tokens: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Which context class each token (N, …) is in, and whether it is in one."""
        if not self.source.width:
            return torch.zeros_like(tokens), torch.zeros_like(tokens, dtype=torch.bool)
        if state is not None:
            words = self.class_words(self.state_classes(state)).words
        else:
            words = self.source.words(self.source.start(len(tokens)).to(tokens.device))
            words = words if self.source.unk is not None else words.masked_fill(~self.base.knows(words), NO_WORD)
        same = words.view(len(words), *[1] * (tokens.dim() - 1), -1) == tokens.unsqueeze(-1)
        return same.long().argmax(-1), same.any(-1)

    def _as_below(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        """The tokens (N, …) as the background below knows them."""
        if self.source.unk is None:
            return tokens
        is_below = self.base.knows(tokens, None if state is None else self.below(state))
        return tokens.masked_fill(~is_below, self.source.unk)

    def knows(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        is_below = self.base.knows(tokens, None if state is None else self.below(state))
        return is_below if self.source.unk is None else is_below | self._which(tokens, state)[1]

    def classes(self, state: Tensor, tokens: Tensor) -> Tensor:
        which, is_context = self._which(tokens, state)
        below = self.base.classes(self.below(state), self._as_below(tokens, state))
        return torch.where(is_context, self.num_below + which, below)

    def only_member(self, state: Tensor, classes: Tensor) -> Tensor:
        base = self.base.only_member(self.below(state), classes.clamp_max(self.num_below - 1))
        if not self.source.width:
            return base
        words = self.class_words(self.state_classes(state)).words.clamp_min(0)
        return torch.where(classes >= self.num_below, words.gather(1, (classes - self.num_below).clamp_min(0)), base)

    def readable(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        read = self.base.readable(self._as_below(tokens, state), None if state is None else self.below(state))
        if self.source.unk is None:
            return read
        which, is_context = self._which(tokens, state)
        contexts = self.source.start(len(tokens)) if state is None else self.contexts_of(state)
        in_place = self.source.read_as(contexts.to(tokens.device)).gather(1, which)
        return torch.where(is_context & (in_place != tokens), in_place, read)

    def columns(self, state: Tensor) -> Tensor:
        base = self.base.columns(self.below(state)).expand(len(state), -1)
        if self.source.unk is None or not self.source.width:
            return base
        return torch.cat([base, self.class_words(self.state_classes(state)).words.clamp_min(0)], dim=1)

    def column_of(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        below = None if state is None else self.below(state)
        column = self.base.column_of(self._as_below(tokens, state), below)
        if self.source.unk is None:
            return column
        which, is_context = self._which(tokens, state)
        return torch.where(is_context & ~self.base.knows(tokens, below), self.base.num_columns + which, column)

    def column_classes(self, state: Tensor) -> Tensor:
        base = self.base.column_classes(self.below(state)).expand(len(state), -1)
        return self._in_columns(base, self._class_numbers.expand(len(state), -1), state)

    @property
    def num_columns(self) -> int:
        return self.base.num_columns + (0 if self.source.unk is None else self.source.width)

    @property
    def _class_numbers(self) -> Tensor:
        """(J,)"""
        return self.num_below + torch.arange(self.source.width, device=self.class_of.device)

    def _in_columns(self, of_words: Tensor, of_contexts: Tensor, state: Tensor) -> Tensor:
        """Values of the columns below (N, K), with those of context classes (N, J) in their words' columns."""
        if not of_contexts.size(1):
            return of_words.expand(len(state), -1)
        size, mine = of_words.size(1), self.class_words(self.state_classes(state))
        # strings have columns of their own behind those below, which void places and what they hold fall out of
        more = size + torch.arange(of_contexts.size(1), device=of_contexts.device)
        column = self.base.column_of(mine.words_below, self.below(state))
        column = torch.where(mine.leave, column, more)
        none = NEGATIVE_INFINITY if of_contexts.is_floating_point() else 0
        wide = functional.pad(of_words.expand(len(state), -1), (0, of_contexts.size(1)), value=none)
        return wide.scatter(1, column, of_contexts.to(wide.dtype))[:, : self.num_columns]

    # ---- masses and shares ------------------------------------------------------------------------------------------

    def masses(self, state: Tensor) -> Masses:
        if not self.source.width:
            return self.base.masses(self.below(state))
        return Masses(self._log_mass(self.state_classes(state)), len(state))

    def along(self, previous: Tensor) -> tuple[Tensor, Masses]:
        states = self.flat_states(previous)  # first: there are more context classes when all contexts were met
        if self.constant:
            return super().along(previous)
        if self.source.width or not self.base.constant:
            return states, Masses(self.log_mass(states), len(states))
        masses = self.base.masses(self.base.start(len(previous)))  # one row for a sentence, though its contexts differ
        return states, masses.repeated(previous.size(1))

    @recalled
    def _mass_below(self, here: StateClasses) -> Tensor:
        return self.base.log_mass(self._below(here)).expand(len(here.contexts), -1)

    @recalled
    def class_masses(self, here: StateClasses) -> ClassMasses:
        """What the context classes of each state weigh."""
        below, mine = self._below(here), self.class_words(here)
        before = self._mass_below(here).gather(1, mine.former)
        if self.base.constant or isinstance(self.base, ContextClasses):
            share = _each(self.base, below, mine.words_below)
        else:  # each of the N states is looked at once, not once for each of its J words
            rows = torch.arange(len(below), device=below.device).repeat_interleave(mine.words_below.size(1))
            weights = self.base.log_weights_at(below, rows, mine.words_below.flatten())
            share = log_difference(weights.view_as(before), before)
        share = share.masked_fill(~mine.leave, NEGATIVE_INFINITY)
        mass = torch.where(share.isneginf(), share, before + share)
        if self.source.unk is not None:
            if (lift := self.source.log_lift(here.contexts)) is not None:
                mass = mass + lift.to(mass.dtype)
            mass = torch.logaddexp(self.source.log_added(here.contexts).to(mass.dtype), mass)
        rest = self.base.log_mass_without(below, mine.words_below, mine.leave)
        gain = torch.where(mine.first & ~rest.isneginf(), before - rest, 0.0)
        return ClassMasses(share, mass, rest, gain)

    def log_mass(self, state: Tensor) -> Tensor:
        if not self.source.width:
            return self.base.log_mass(self.below(state))
        here = self.state_classes(state)
        return self._log_mass(here) if here.every is None else self._log_mass(here.every).index_select(0, here.contexts)

    @recalled
    def _log_mass(self, here: StateClasses) -> Tensor:
        mine, masses = self.class_words(here), self.class_masses(here)
        mass = torch.cat([self._mass_below(here), masses.mass], dim=1)
        if self.source.unk is not None:
            mass.index_add_(1, self.class_of[self.source.unk].view(1), self._unk_factor(here).to(mass.dtype))
        # what is left of a class is written once, or it would have its gradient twice
        place = torch.where(mine.first, mine.former, self._class_numbers)
        return mass.scatter_(1, place, torch.where(mine.first, masses.rest, masses.mass))

    def _unk_factor(self, here: StateClasses) -> Tensor:
        """(N, 1)"""
        return self.source.log_unk_factor(here.contexts).unsqueeze(1)

    def log_mass_without(self, state: Tensor, words: Tensor, taken: Tensor) -> Tensor:
        """As the contract's; words of context classes have left their classes before, and leave an empty one."""
        if not self.source.width:
            return self.base.log_mass_without(self.below(state), self._as_below(words, state), taken)
        here, (which, is_context) = self.state_classes(state), self._which(words, state)
        others = self._as_below(words, state).masked_fill(is_context, self.source.unk or 0)
        both = torch.cat([self.class_words(here).words_below, others], dim=1)
        out = torch.cat([self.class_words(here).leave, taken & ~is_context], dim=1)
        rest = self.base.log_mass_without(self._below(here), both, out)[:, self.source.width :]
        if self.source.unk is not None:
            rest = rest + (others == self.source.unk) * self._unk_factor(here).to(rest.dtype)
        mass = self.class_masses(here).mass.gather(1, which)
        return torch.where(is_context, mass.masked_fill(taken, NEGATIVE_INFINITY), rest)

    def log_share_sums(self, state: Tensor) -> tuple[Tensor, Tensor]:
        sums = self.base.log_share_sums(self.below(state))
        if not self.source.width:
            return sums
        many, total = (each.expand(len(state), -1) for each in sums)
        mine, masses = self.class_words(self.state_classes(state)), self.class_masses(self.state_classes(state))
        gone = ~masses.share_below.isneginf()
        many = many.scatter_add(1, mine.former, -gone.to(many.dtype))
        total = total.scatter_add(1, mine.former, -masses.share_below.masked_fill(~gone, 0.0))
        total = total + many * torch.zeros_like(many).scatter_add(1, mine.former, masses.gain)
        alone = self.source.width  # each context class has one member, whose share is 1
        return functional.pad(many, (0, alone), value=1.0), functional.pad(total, (0, alone))

    def log_share(self, state: Tensor, tokens: Tensor) -> Tensor:
        below, words_below = self.below(state), self._as_below(tokens, state)
        share = self._reach[0].log_share(below, words_below)
        if not self.source.width:
            return share
        (which, is_context), here = self._which(tokens, state), self.state_classes(state)
        alone = self._class_shares(here).gather(1, which.unsqueeze(1)).squeeze(1)
        gain = self._gain_at(here, self.base.classes(below, words_below).unsqueeze(1)).squeeze(1)
        return torch.where(is_context, alone, share + gain)

    def _gain_at(self, here: StateClasses, classes: Tensor) -> Tensor:
        """What the log shares gain of those who stay in the classes below: (N, C') -> (N, C')."""
        same = classes.unsqueeze(2) == self.class_words(here).former.unsqueeze(1)
        return torch.where(same, self.class_masses(here).gain.unsqueeze(1), 0.0).sum(2)

    @recalled
    def _class_shares(self, here: StateClasses) -> Tensor:
        """The log share of the only member of each context class, (N, J): 0, or −inf without mass or out of reach."""
        mass = self.class_masses(here).mass
        shares = mass.masked_fill(~mass.isneginf(), 0.0)
        if self._remaining is None or (self._reach[0] is self.base and not self.base.closes):
            return shares
        below, words = self._below(here), self.class_words(here).words_below
        lost = _each(self._reach[0], below, words).isneginf()
        if self.source.unk is not None:  # words that have their mass from the source alone
            after = self.base.advance(below.repeat_interleave(self.source.width, 0), words.flatten())
            far = self.base.steps_to_end(after).view_as(words) >= self._remaining
            lost = torch.where(self.class_masses(here).share_below.isneginf(), far, lost)
        return shares.masked_fill(lost, NEGATIVE_INFINITY)

    # ---- the best words (search) ------------------------------------------------------------------------------------

    def best_share(self, state: Tensor) -> Tensor:
        if not self.source.width:
            return self._reach[0].best_share(self.below(state))
        return self._best_share(self.state_classes(state))

    @recalled
    def _best_share(self, here: StateClasses) -> Tensor:
        shares, former, leave = self._class_shares(here), self.class_words(here).former, self.class_words(here).leave
        first = self._staying(here, former, 1)[0].squeeze(2)  # shape: (N, J)
        best = torch.cat([each_row(self._reach[0].best_share(self._below(here)), len(shares)), shares], dim=1)
        return best.scatter_(1, torch.where(leave, former, self._class_numbers), torch.where(leave, first, shares))

    def best_members(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        if not self.source.width:
            return self._reach[0].best_members(self.below(state), classes, k)
        if not self.by_context:
            return self._best_members(self.state_classes(state), classes, k)
        # hypotheses and steps ask for the same classes over and over: every pair of a context and a class is found once
        pairs = self.contexts_of(state).unsqueeze(1) * self.num_classes + classes
        if k not in self._ranked:
            place = self.class_of.new_full((self.source.rows * self.num_classes,), -1)
            place[pairs[0, 0]] = 0
            shares, words = self._best_members(self._in(state[:1, 0]), classes[:1, :1], k)
            self._ranked[k] = place, shares.squeeze(1), words.squeeze(1)
        place, shares, words = self._ranked[k]
        there = place[pairs]
        if bool((there < 0).any()):
            new = pairs[there < 0].unique()
            place[new] = len(shares) + torch.arange(len(new), device=new.device)
            here, which = self._in(new // self.num_classes), new % self.num_classes
            more = self._best_members(here, which.unsqueeze(1), k)
            shares, words = torch.cat([shares, more[0].squeeze(1)]), torch.cat([words, more[1].squeeze(1)])
            self._ranked[k], there = (place, shares, words), place[pairs]
        return shares[there], words[there]

    def _in(self, contexts: Tensor) -> StateClasses:
        """The context classes in these contexts, which decide: (M,)."""
        width = self.source.width
        return StateClasses(contexts.unsqueeze(1), contexts, width, self._every(width))

    def _best_members(self, here: StateClasses, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        which = (classes - self.num_below).clamp_min(0)
        is_context = classes >= self.num_below
        shares, words = self._staying(here, classes.masked_fill(is_context, 0), k)
        alone = self._class_shares(here).gather(1, which).unsqueeze(2)
        word, is_context = self.class_words(here).words.gather(1, which).unsqueeze(2), is_context.unsqueeze(2)
        shares = torch.where(is_context, functional.pad(alone, (0, k - 1), value=NEGATIVE_INFINITY), shares)
        return shares, torch.where(is_context, word, words).masked_fill(shares.isneginf(), 0)

    def _staying(self, here: StateClasses, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k best that have stayed in classes below: (N, C') -> log shares and words (N, C', k)."""
        shares, words = self._reach[0].best_members(self._below(here), classes, k + self.source.width)
        gone = self._sorted_words(here)
        place = torch.searchsorted(gone, words.flatten(1)).clamp_max(gone.size(1) - 1)
        is_gone = (gone.gather(1, place) == words.flatten(1)).view_as(words)
        values, which = shares.masked_fill(is_gone, NEGATIVE_INFINITY).topk(k, dim=2)
        return values + self._gain_at(here, classes).unsqueeze(2), words.gather(2, which)

    @recalled
    def _sorted_words(self, here: StateClasses) -> Tensor:
        return self.class_words(here).words.sort(1).values

    # ---- all words (only where asked for) ---------------------------------------------------------------------------

    def log_weights(self, state: Tensor) -> Tensor:
        """(N, K), and J columns more where the source brings strings."""
        weights = self.base.log_weights(self.below(state)).expand(len(state), -1)
        if not self.source.width:
            return weights
        if self.source.unk is not None:
            unk = self.class_of.new_tensor([self.source.unk])
            weights = weights.index_add(1, unk, self._unk_factor(self.state_classes(state)).to(weights))
        return self._in_columns(weights, self.class_masses(self.state_classes(state)).mass, state)

    def log_shares(self, state: Tensor) -> Tensor:
        """As `log_weights`."""
        shares = self._reach[0].log_shares(self.below(state))
        if not self.source.width:
            return shares
        return self._in_columns(self._lifted(shares, state), self._class_shares(self.state_classes(state)), state)

    def word_log_probs(self, classes: Tensor, state: Tensor) -> Tensor:
        """log p(σ | K) (N, C + J) -> log p of the words, as `log_weights`."""
        words = self._reach[0].word_log_probs(classes[:, : self.num_below], self.below(state))
        if not self.source.width:
            return words
        of_contexts = classes[:, self.num_below :] + self._class_shares(self.state_classes(state)).to(classes.dtype)
        return self._in_columns(self._lifted(words, state), of_contexts, state)

    def _lifted(self, of_words: Tensor, state: Tensor) -> Tensor:
        """Values of the columns below (N, K), with the gain of those who stay."""
        here = self.state_classes(state)
        lift = of_words.new_zeros(len(state), self.num_below)
        lift = lift.scatter_add(1, self.class_words(here).former, self.class_masses(here).gain.to(of_words.dtype))
        return of_words + lift.gather(1, self.base.column_classes(self._below(here)).expand(len(state), -1))


def each_layer(background: Background) -> Iterator[ContextClasses]:
    """The context classes in front of a background, the outermost first."""
    while isinstance(background, ContextClasses):
        yield background
        background = background.base


def anew(background: Background) -> Background:
    """The same background for another batch: context classes keep what they found, which learned parts may change."""
    if not isinstance(background, ContextClasses):
        return background
    return type(background)(anew(background.base), background.source)


def layers_of(background: Background, states: Tensor, shape: Sequence[int]) -> list[tuple[ContextClasses, Tensor]]:
    """The context classes in front of a background, the innermost first, each with its own columns of the states.

    Args:
        states: (N, …), of positions in the shape (B, T); the columns are (B, T, …).
    """
    layers: list[tuple[ContextClasses, Tensor]] = []
    for layer in each_layer(background):
        states = layers[-1][0].below(states) if layers else states
        layers.append((layer, states))
    return [(layer, columns.view(*shape, *columns.shape[1:])) for layer, columns in reversed(layers)]


def strings_in(background: Background) -> ContextClasses | None:
    """The context classes, among those of `background`, whose source brings strings of its own."""
    return next((layer for layer in each_layer(background) if layer.source.unk is not None), None)


def _each(background: Background, state: Tensor, words: Tensor) -> Tensor:
    """The log shares of some words of each hypothesis: (N, J) -> (N, J)."""
    rows = torch.arange(len(state), device=state.device).repeat_interleave(words.size(1))
    return background.for_rows(rows).log_share(state.index_select(0, rows), words.flatten()).view_as(words)
