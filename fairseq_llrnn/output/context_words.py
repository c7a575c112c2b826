"""Which words are in which context classes of which hypothesis: tokens, classes and columns, without their masses.

Sizes: N hypotheses, B sentences, T time, V words, C classes of the background below, J context classes of the context
that has most of them, K columns of the background below (V, and more where it brings strings of its own).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.output.context_sources import NO_WORD, ContextClassSource

Own = TypeVar("Own", bound="ContextWords")


def recalled(find: Callable[[Own, Tensor], Tensor]) -> Callable[[Own, Tensor], Tensor]:
    """find(state), first dimension N or 1: not again for the state that it was asked for last.

    Where the contexts alone decide, it is found once for each of them, and not again for the same contexts.
    """
    name = find.__name__

    @wraps(find)
    def recall(self: Own, state: Tensor) -> Tensor:
        width, last = self.source.width, self._last.get(name)
        key = self.contexts_of(state) if self.by_context else state
        if last is not None and last[1] == width and (last[0] is key or torch.equal(last[0], key)):
            found = last[2]
        elif not self.by_context:
            found = find(self, state)
        else:
            if name not in self._tables:
                self._tables[name] = find(self, self._begin).expand(self.source.rows, -1)
            found = self._tables[name].index_select(0, key)
        self._last[name] = key, width, found
        return found

    return recall


class ContextWords(Background):
    """The background `base` with the context classes of `source`, but for what masses and shares are.

    A hypothesis' state: the number of its context (and more, in a subclass), then the state below.
    """

    own_columns = 1  # of a state

    def __init__(self, base: Background, source: ContextClassSource) -> None:
        super().__init__(base.class_of, base.num_classes)
        self.base, self.source = base, source
        self.num_below = base.num_classes  # C
        self.by_context = base.constant and not source.changes  # whether contexts decide what `recalled` finds
        self.constant = self.by_context
        self.growth = base.growth
        self._flat: tuple[Tensor, Tensor] | None = None  # the inputs whose states were asked for last, and these
        self._base_shape: torch.Size | None = None
        self._asked: tuple[Tensor, Tensor] | None = None  # the state whose contexts were asked for last, and these
        self._tables: dict[str, Tensor] = {}  # of `recalled`: by name, for every context that a batch begins with
        self._last: dict[str, tuple[Tensor, int, Tensor]] = {}  # … and for the state asked for last, J, and the answer
        self._grow()

    def _grow(self) -> None:
        self.num_classes = self.num_below + self.source.width
        self.sparse = self.base.sparse and not self.source.width

    def cross_fitted(self, tokens: Tensor) -> Background:
        base = self.base.cross_fitted(self._known(tokens))
        return self if base is self.base else type(self)(base, self.source)

    def given(self, source: Tensor, leave_out: Tensor | None = None) -> Background:
        base = self.base.given(source, leave_out)
        return self if base is self.base else type(self)(base, self.source)

    def gates(self, hidden_size: int) -> None:
        self.base.gates(hidden_size)

    def steps_to_end(self, state: Tensor) -> Tensor:
        return self.base.steps_to_end(self.below(state))

    # ---- states -----------------------------------------------------------------------------------------------------

    def start(self, n: int) -> Tensor:
        return self._joined(self._own_start(n), self.base.start(n))

    @cached_property
    def _begin(self) -> Tensor:
        """The states of all contexts that a batch begins with."""
        return self.start(self.source.rows)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        if self.constant:
            return state
        below = self.below(state)
        if not self.base.constant:
            below = self.base.advance(below, self._known(tokens, state))
        own = self._own_after(state, tokens)
        self._grow()
        return self._joined(own, below)

    def _own_start(self, n: int) -> Tensor:
        """The columns of n states that begin: (n, own_columns)."""
        return self.source.start(n).to(self.class_of.device).unsqueeze(1)

    def _own_after(self, state: Tensor, tokens: Tensor) -> Tensor:
        """Those after the tokens (N,)."""
        return self.source.advance(self.contexts_of(state), tokens).unsqueeze(1)

    def _own_per_position(self, previous: Tensor) -> Tensor:
        """Those before each position: (B, T) -> (B, T, own_columns)."""
        return self.source.per_position(previous).unsqueeze(2)

    def flat_states(self, previous: Tensor) -> Tensor:
        read = previous[:, 1:]
        if self._flat is None or not torch.equal(self._flat[0], read):
            own = self._own_per_position(previous)
            self._grow()
            self._flat = read, self._joined(own.flatten(0, 1), self.base.flat_states(self._known(previous)))
        return self._flat[1]

    def _joined(self, own: Tensor, below: Tensor) -> Tensor:
        self._base_shape = below.shape[1:]
        return torch.cat([own.to(below.dtype), below.reshape(len(below), -1)], dim=1)

    def contexts_of(self, state: Tensor) -> Tensor:
        """The contexts of the hypotheses: (N,)."""
        if self._asked is None or self._asked[0] is not state:
            self._asked = state, state[:, 0].long()
        return self._asked[1]

    def below(self, state: Tensor) -> Tensor:
        """The state of the background below, in the shape that it has there."""
        if self.growth:
            return state[:, self.own_columns :]
        if self._base_shape is None:
            self._base_shape = self.base.start(self.source.rows).shape[1:]
        return state[:, self.own_columns :].reshape(len(state), *self._base_shape)

    # ---- tokens, their classes and columns --------------------------------------------------------------------------

    @recalled
    def _words(self, state: Tensor) -> Tensor:
        """The words of the context classes, (N, J); NO_WORD where there are fewer."""
        words = self.source.words(self.contexts_of(state))
        return words if self.source.unk is not None else self._existing(words, self.below(state))

    def _existing(self, words: Tensor, below: Tensor | None) -> Tensor:
        return words.masked_fill(~self.base.knows(words, below), NO_WORD)

    @recalled
    def _leave(self, state: Tensor) -> Tensor:
        """Whether they leave a class below, (N, J) bool."""
        words = self._words(state)
        return self.base.knows(words, self.below(state)) & (words != NO_WORD)

    @recalled
    def _known_words(self, state: Tensor) -> Tensor:
        """Those that leave a class below, and some word for the others: (N, J)."""
        return self._words(state).masked_fill(~self._leave(state), self.source.unk or 0)

    @recalled
    def former_classes(self, state: Tensor) -> Tensor:
        """The classes that they have left: (N, J), of some word for the others."""
        words = self._known_words(state)
        each = self.below(state).repeat_interleave(words.size(1), 0)
        return self.base.classes(each, words.flatten()).view_as(words)

    @recalled
    def _first(self, state: Tensor) -> Tensor:
        """Whether each is the first to leave its class, and so says what is left of it: (N, J) bool."""
        former, leave = self.former_classes(state), self._leave(state)
        beside = (former.unsqueeze(2) == former.unsqueeze(1)) & leave.unsqueeze(1)  # shape: (N, J, J)
        return leave & ~beside.tril(-1).any(2)

    def _which(self, tokens: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Which context class each token (N, …) is in, and whether it is in one."""
        if state is not None:
            words = self._words(state)
        else:
            words = self.source.words(self.source.start(len(tokens)).to(tokens.device))
            words = words if self.source.unk is not None else self._existing(words, None)
        if not words.size(1):
            return torch.zeros_like(tokens), torch.zeros_like(tokens, dtype=torch.bool)
        same = words.view(len(words), *[1] * (tokens.dim() - 1), -1) == tokens.unsqueeze(-1)
        return same.long().argmax(-1), same.any(-1)

    def _known(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        """The tokens (N, …) as the background below knows them."""
        if self.source.unk is None:
            return tokens
        known = self.base.knows(tokens, None if state is None else self.below(state))
        return tokens.masked_fill(~known, self.source.unk)

    def knows(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        known = self.base.knows(tokens, None if state is None else self.below(state))
        return known if self.source.unk is None else known | self._which(tokens, state)[1]

    def classes(self, state: Tensor, tokens: Tensor) -> Tensor:
        which, own = self._which(tokens, state)
        below = self.base.classes(self.below(state), self._known(tokens, state))
        return torch.where(own, self.num_below + which, below)

    def only_member(self, state: Tensor, classes: Tensor) -> Tensor:
        base = self.base.only_member(self.below(state), classes.clamp_max(self.num_below - 1))
        if not self.source.width:
            return base
        words = self._words(state).clamp_min(0)
        return torch.where(classes >= self.num_below, words.gather(1, (classes - self.num_below).clamp_min(0)), base)

    def readable(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        read = self.base.readable(self._known(tokens, state), None if state is None else self.below(state))
        if self.source.unk is None:
            return read
        which, own = self._which(tokens, state)
        contexts = self.source.start(len(tokens)) if state is None else self.contexts_of(state)
        in_place = self.source.read_as(contexts.to(tokens.device)).gather(1, which)
        return torch.where(own & (in_place != tokens), in_place, read)

    def columns(self, state: Tensor) -> Tensor:
        base = self.base.columns(self.below(state)).expand(len(state), -1)
        if self.source.unk is None:
            return base
        return torch.cat([base, self._words(state).clamp_min(0)], dim=1)

    def column_of(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        below = None if state is None else self.below(state)
        column = self.base.column_of(self._known(tokens, state), below)
        if self.source.unk is None:
            return column
        which, own = self._which(tokens, state)
        return torch.where(own & ~self.base.knows(tokens, below), self.base.num_columns + which, column)

    def column_classes(self, state: Tensor) -> Tensor:
        base = self.base.column_classes(self.below(state)).expand(len(state), -1)
        return self._in_columns(base, self._own_classes.expand(len(state), -1), state)

    @property
    def num_columns(self) -> int:
        return self.base.num_columns + (0 if self.source.unk is None else self.source.width)

    @property
    def _own_classes(self) -> Tensor:
        """(J,)"""
        return self.num_below + torch.arange(self.source.width, device=self.class_of.device)

    def _in_columns(self, of_words: Tensor, own: Tensor, state: Tensor) -> Tensor:
        """Values of the columns below (N, K), with those of context classes (N, J) in their words' columns."""
        size = of_words.size(1)
        # strings have columns of their own behind those below, which void places and what they hold fall out of
        more = size + torch.arange(own.size(1), device=own.device)
        column = self.base.column_of(self._known_words(state), self.below(state))
        column = torch.where(self._leave(state), column, more)
        none = NEGATIVE_INFINITY if own.is_floating_point() else 0
        wide = functional.pad(of_words.expand(len(state), -1), (0, own.size(1)), value=none)
        return wide.scatter(1, column, own.to(wide.dtype))[:, : self.num_columns] if own.size(1) else wide
