"""Context classes: classes of one word each that exist only in a sentence or at a step, in front of any background.

Sizes: N hypotheses, B sentences, T time, V words, C classes of the background below, J context classes of the context
that has most of them, K columns of the background below (V, and more where it brings strings of its own).

Context class j is class C + j. Its only member leaves its class below, so that it can have a score of its own and the
sum over classes stays exact (Dymetman & Xiao 2016, §4 and §6). With b₁ the weights below and m the mass that the source
adds to a word (none, if it only singles it out),

    b(K, x)  =  b₁(K, x) + m(K, x)        mass of class C + j: b(K, x_j)        of σ: B₁(σ) − Σ_{x_j ∈ σ} b₁(K, x_j)

One law for all sources: mass before + mass added = mass after, each word is in exactly one class, and the shares of a
class sum to one (tests/support/context_class_laws.py). The mass that is left of a class is summed again without the
words that leave (`Background.log_mass_without`): as a difference it would lose its digits. Those that stay share the
gain, log B₁(σ) − log B(σ), in their log shares.

A source says which words these are, by context; slots of evidence and exceptions of experts are sources. Sources nest:
one background of context classes may stand in front of another.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background, Corrections

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

        One that nobody below knows, of a source that brings no strings, is as if it were not there.
        """
        raise NotImplementedError

    def advance(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        """The contexts after these tokens: (N,), (N,) -> (N,)."""
        return contexts

    def along(self, previous: Tensor) -> Tensor:
        """The contexts before each position of a batch whose inputs are `previous`: (B, T) -> (B, T)."""
        found = [self.start(len(previous)).to(previous.device)]
        for t in range(1, previous.size(1)):
            found.append(self.advance(found[-1], previous[:, t]) if self.changes else found[0])
        return torch.stack(found, dim=1)

    # ---- only where it brings strings -------------------------------------------------------------------------------

    def log_added(self, contexts: Tensor) -> Tensor:
        """log m of the word of each context class: (N,) -> (N, J), −inf for NO_WORD."""
        raise NotImplementedError

    def log_unk_factor(self, contexts: Tensor) -> Tensor:
        """What <unk>'s weight is multiplied by, as a logarithm: (N,) -> (N,)."""
        raise NotImplementedError

    def unreadable(self, contexts: Tensor) -> Tensor:
        """Whether a network reads the word of each context class as <unk>: (…,) -> (…, J) bool."""
        raise NotImplementedError


def _recalled(find: Callable[[ContextClasses, Tensor], Tensor]) -> Callable[[ContextClasses, Tensor], Tensor]:
    """find(state), first dimension N or 1: not again for the state that it was asked for last.

    Where no state changes it, it is found once for every context.
    """
    name = find.__name__

    @wraps(find)
    def recall(self: ContextClasses, state: Tensor) -> Tensor:
        width, last = self.source.width, self._last.get(name)
        if last is not None and last[1] == width and (last[0] is state or torch.equal(last[0], state)):
            return last[2]
        if not self.constant:
            found = find(self, state)
        else:
            if name not in self._tables:
                self._tables[name] = find(self, self.start(self.source.rows)).expand(self.source.rows, -1)
            found = self._tables[name].index_select(0, self.contexts_of(state))
        self._last[name] = state, width, found
        return found

    return recall


class ContextClasses(Background):
    """The background `base` with the context classes of `source`.

    A hypothesis' state: the number of its context, then the state below.
    """

    def __init__(self, base: Background, source: ContextClassSource) -> None:
        super().__init__(base.class_of, base.num_classes)
        self.base, self.source = base, source
        self.num_below = base.num_classes  # C
        self.constant = base.constant and not source.changes
        self._reach = (base,)  # what a limit leaves of it, for shares; in a tuple: copies share sub-modules
        self._remaining: int | None = None
        self._base_shape: torch.Size | None = None
        self._tables: dict[str, Tensor] = {}  # of `_recalled`: by name, for every context that a batch begins with
        self._last: dict[str, tuple[Tensor, int, Tensor]] = {}  # … and for the state asked for last, J, and the answer
        self._ranked: dict[int, tuple[Tensor, Tensor, Tensor]] = {}  # of `best_members`, by k
        self._grow()

    def _grow(self) -> None:
        self.num_classes = self.num_below + self.source.width
        self.sparse = self.base.sparse and not self.source.width

    # ---- training and limits ----------------------------------------------------------------------------------------

    def held_out(self, tokens: Tensor) -> Background:
        base = self.base.held_out(self._known(tokens))
        return self if base is self.base else type(self)(base, self.source)

    def within(self, remaining: int) -> Background:
        base = self.base.within(remaining)
        if base is self.base:
            return self
        limited = copy.copy(self)
        limited._reach, limited._remaining = (base,), remaining
        limited._tables, limited._last, limited._ranked = {}, {}, {}
        return limited

    def steps_to_end(self, state: Tensor) -> Tensor:
        return self.base.steps_to_end(self.below(state))

    # ---- states -----------------------------------------------------------------------------------------------------

    def start(self, n: int) -> Tensor:
        return self._joined(self.source.start(n).to(self.class_of.device), self.base.start(n))

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        if self.constant:
            return state
        below = self.base.advance(self.below(state), self._known(tokens, state))
        contexts = self.source.advance(self.contexts_of(state), tokens)
        self._grow()
        return self._joined(contexts, below)

    def states_along(self, previous: Tensor) -> list[Tensor]:
        return list(self.flat_states(previous).unflatten(0, (len(previous), -1)).unbind(1))

    def flat_states(self, previous: Tensor) -> Tensor:
        contexts = self.source.along(previous)
        self._grow()
        return self._joined(contexts.flatten(), self.base.flat_states(self._known(previous)))

    def _joined(self, contexts: Tensor, below: Tensor) -> Tensor:
        self._base_shape = below.shape[1:]
        return torch.cat([contexts.to(below.dtype).unsqueeze(1), below.reshape(len(below), -1)], dim=1)

    def contexts_of(self, state: Tensor) -> Tensor:
        """The contexts of the hypotheses: (N,)."""
        return state[:, 0].long()

    def below(self, state: Tensor) -> Tensor:
        """The state of the background below, in the shape that it has there."""
        if self._base_shape is None:
            self._base_shape = self.base.start(self.source.rows).shape[1:]
        return state[:, 1:].reshape(len(state), *self._base_shape)

    # ---- tokens, their classes and columns --------------------------------------------------------------------------

    @_recalled
    def _words(self, state: Tensor) -> Tensor:
        """The words of the context classes, (N, J); NO_WORD where there are fewer."""
        words = self.source.words(self.contexts_of(state))
        return words if self.source.unk is not None else self._existing(words, self.below(state))

    def _existing(self, words: Tensor, below: Tensor | None) -> Tensor:
        return words.masked_fill(~self.base.knows(words, below), NO_WORD)

    @_recalled
    def _leave(self, state: Tensor) -> Tensor:
        """Whether they leave a class below, (N, J) bool."""
        words = self._words(state)
        return self.base.knows(words, self.below(state)) & (words != NO_WORD)

    @_recalled
    def _known_words(self, state: Tensor) -> Tensor:
        """Those that leave a class below, and some word for the others: (N, J)."""
        return self._words(state).masked_fill(~self._leave(state), self.source.unk or 0)

    @_recalled
    def former_classes(self, state: Tensor) -> Tensor:
        """The classes that they have left: (N, J), of some word for the others."""
        words = self._known_words(state)
        each = self.below(state).repeat_interleave(words.size(1), 0)
        return self.base.classes(each, words.flatten()).view_as(words)

    @_recalled
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

    def classes_along(self, tokens: Tensor) -> Tensor:
        if self.source.changes:  # the first input is not read
            states = self.flat_states(functional.pad(tokens, (1, 0))[:, :-1])
            return self.classes(states, tokens.flatten()).view_as(tokens)
        which, own = self._which(tokens, None)
        return torch.where(own, self.num_below + which, self.base.classes_along(self._known(tokens)))

    def only_member(self, state: Tensor, classes: Tensor) -> Tensor:
        base = self.base.only_member(self.below(state), classes.clamp_max(self.num_below - 1))
        if not self.source.width:
            return base
        words = self._words(state).clamp_min(0)
        return torch.where(
            classes >= self.num_below, words.gather(1, (classes - self.num_below).clamp_min(0)), base
        )

    def readable(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        read = self.base.readable(self._known(tokens, state), None if state is None else self.below(state))
        if self.source.unk is None:
            return read
        which, own = self._which(tokens, state)
        contexts = self.source.start(len(tokens)) if state is None else self.contexts_of(state)
        unread = self.source.unreadable(contexts.to(tokens.device)).gather(1, which)
        return read.masked_fill(own & unread, self.source.unk)

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

    def _in_columns(self, of_words: Tensor, own: Tensor, state: Tensor) -> Tensor:
        """Values of the columns below (N, K), with those of context classes (N, J) in their words' columns."""
        size = of_words.size(1)
        # strings have columns of their own behind those below, which void places and what they hold fall out of
        more = size + torch.arange(own.size(1), device=own.device)
        column = self.base.column_of(self._known_words(state), self.below(state))
        column = torch.where(self._leave(state), column, more)
        none = NEGATIVE_INFINITY if own.is_floating_point() else 0
        wide = functional.pad(of_words.expand(len(state), -1), (0, own.size(1)), value=none)
        return wide.scatter(1, column, own)[:, : self.num_columns] if own.size(1) else wide

    # ---- masses and shares ------------------------------------------------------------------------------------------

    def corrections(self, state: Tensor) -> Corrections | None:
        return self.base.corrections(self.below(state)) if self.sparse else None

    def log_mass(self, state: Tensor) -> Tensor:
        return self._log_mass(state) if self.source.width else self.base.log_mass(self.below(state))

    @_recalled
    def _log_mass(self, state: Tensor) -> Tensor:
        own = self._own_mass(state)
        mass = torch.cat([self._mass_below(state).expand(len(state), -1), own], dim=1)
        if self.source.unk is not None:
            mass.index_add_(1, self.class_of[self.source.unk].view(1), self._unk_factor(state).to(mass.dtype))
        # what is left of a class is written once, or it would have its gradient twice
        first = self._first(state)
        place = torch.where(first, self.former_classes(state), self._own_classes)
        return mass.scatter_(1, place, torch.where(first, self._rest(state), own))

    @property
    def _own_classes(self) -> Tensor:
        """(J,)"""
        return self.num_below + torch.arange(self.source.width, device=self.class_of.device)

    @_recalled
    def _mass_below(self, state: Tensor) -> Tensor:
        return self.base.log_mass(self.below(state))

    @_recalled
    def _rest(self, state: Tensor) -> Tensor:
        """The log mass of each former class without all that leave it: (N, J)."""
        return self.base.log_mass_without(self.below(state), self._known_words(state), self._leave(state))

    @_recalled
    def _before(self, state: Tensor) -> Tensor:
        """Its log mass below: (N, J)."""
        return self._mass_below(state).expand(len(state), -1).gather(1, self.former_classes(state))

    @_recalled
    def _gains(self, state: Tensor) -> Tensor:
        """What the log shares gain of those who stay in it: (N, J); 0 but for `_first`."""
        rest = self._rest(state)
        return torch.where(self._first(state) & ~rest.isneginf(), self._before(state) - rest, 0.0)

    @_recalled
    def _share_below(self, state: Tensor) -> Tensor:
        """The log shares below of the words that leave a class, −inf for the others: (N, J)."""
        share = _each(self.base, self.below(state), self._known_words(state))
        return share.masked_fill(~self._leave(state), NEGATIVE_INFINITY)

    @_recalled
    def _own_mass(self, state: Tensor) -> Tensor:
        """The log mass of each context class, −inf where there is none: (N, J)."""
        share = self._share_below(state)
        own = torch.where(share.isneginf(), share, self._before(state) + share)
        if self.source.unk is None:
            return own
        return torch.logaddexp(self.source.log_added(self.contexts_of(state)).to(own.dtype), own)

    def _unk_factor(self, state: Tensor) -> Tensor:
        """(N, 1)"""
        return self.source.log_unk_factor(self.contexts_of(state)).unsqueeze(1)

    def log_mass_without(self, state: Tensor, words: Tensor, taken: Tensor) -> Tensor:
        """As the contract's; words of context classes have left their classes before, and leave an empty one."""
        which, is_own = self._which(words, state)
        others = self._known(words, state).masked_fill(is_own, self.source.unk or 0)
        both = torch.cat([self._known_words(state), others], dim=1)
        out = torch.cat([self._leave(state), taken & ~is_own], dim=1)
        rest = self.base.log_mass_without(self.below(state), both, out)[:, self.source.width :]
        if self.source.unk is not None:
            rest = rest + (others == self.source.unk) * self._unk_factor(state)
        if not self.source.width:
            return rest
        own = self._own_mass(state).gather(1, which).masked_fill(taken, NEGATIVE_INFINITY)
        return torch.where(is_own, own, rest)

    def log_share(self, state: Tensor, tokens: Tensor) -> Tensor:
        below, known = self.below(state), self._known(tokens, state)
        share = self._reach[0].log_share(below, known)
        if not self.source.width:
            return share
        which, is_own = self._which(tokens, state)
        own = self._own_shares(state).gather(1, which.unsqueeze(1)).squeeze(1)
        gain = self._gain(state, self.base.classes(below, known).unsqueeze(1)).squeeze(1)
        return torch.where(is_own, own, share + gain)

    def _gain(self, state: Tensor, classes: Tensor) -> Tensor:
        """What the log shares gain of those who stay in the classes below: (N, C') -> (N, C')."""
        former, gain = self.former_classes(state), self._gains(state)
        return torch.where(classes.unsqueeze(2) == former.unsqueeze(1), gain.unsqueeze(1), 0.0).sum(2)

    @_recalled
    def _own_shares(self, state: Tensor) -> Tensor:
        """The log share of the only member of each context class, (N, J): 0, or −inf without mass or out of reach."""
        mass = self._own_mass(state)
        shares = mass.masked_fill(~mass.isneginf(), 0.0)
        if self._remaining is None:
            return shares
        below, words = self.below(state), self._known_words(state)
        lost = _each(self._reach[0], below, words).isneginf()
        if self.source.unk is not None:  # words that have their mass from the source alone
            after = self.base.advance(below.repeat_interleave(words.size(1), 0), words.flatten())
            far = self.base.steps_to_end(after).view_as(words) >= self._remaining
            lost = torch.where(self._share_below(state).isneginf(), far, lost)
        return shares.masked_fill(lost, NEGATIVE_INFINITY)

    # ---- a whole sequence at once (training) ------------------------------------------------------------------------

    def log_mass_along(self, previous: Tensor) -> Tensor:
        if not self._width_along(previous):
            return self.base.log_mass_along(previous)
        if self.constant:
            return self.log_mass(self.start(len(previous))).unsqueeze(1)
        return self.log_mass(self.flat_states(previous)).view(*previous.shape, -1)

    def log_share_along(self, previous: Tensor, targets: Tensor) -> Tensor:
        if not self._width_along(previous):
            return self._reach[0].log_share_along(previous, targets)
        return self.log_share(self.flat_states(previous), targets.flatten()).view_as(targets)

    def word_log_probs_along(self, classes: Tensor, previous: Tensor) -> Tensor:
        if not self._width_along(previous):
            return self._reach[0].word_log_probs_along(classes, previous)
        steps = [self.word_log_probs(classes[:, t], state) for t, state in enumerate(self.states_along(previous))]
        return torch.stack(steps, dim=1)

    def _width_along(self, previous: Tensor) -> int:
        """Meet all contexts of a batch: how many context classes the one has that has most."""
        self.source.along(previous)
        self._grow()
        return self.source.width

    # ---- the best words (search) ------------------------------------------------------------------------------------

    def best_share(self, state: Tensor) -> Tensor:
        if not self.source.width:
            return self._reach[0].best_share(self.below(state))
        return self._best_share(state)

    @_recalled
    def _best_share(self, state: Tensor) -> Tensor:
        former, own, leave = self.former_classes(state), self._own_shares(state), self._leave(state)
        first = self._staying(state, former, 1)[0].squeeze(2)  # shape: (N, J)
        best = torch.cat([self._reach[0].best_share(self.below(state)).expand(len(state), -1), own], dim=1)
        return best.scatter_(1, torch.where(leave, former, self._own_classes), torch.where(leave, first, own))

    def best_members(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        if not self.source.width:
            return self._reach[0].best_members(self.below(state), classes, k)
        if not self.constant:
            return self._best_members(state, classes, k)
        # hypotheses and steps ask for the same classes over and over: every pair of a context and a class is found once
        pairs = self.contexts_of(state).unsqueeze(1) * self.num_classes + classes
        if k not in self._ranked:
            place = self.class_of.new_full((self.source.rows * self.num_classes,), -1)
            place[pairs[0, 0]] = 0
            self._ranked[k] = place, *self._best_members(state[:1], classes[:1, :1], k)
        place, shares, words = self._ranked[k]
        new = pairs[place[pairs] < 0].unique()
        if len(new) > 0:
            place[new] = len(shares) + torch.arange(len(new), device=new.device)
            begin, which = self.start(self.source.rows)[new // self.num_classes], new % self.num_classes
            more = self._best_members(begin, which.unsqueeze(1), k)
            shares, words = torch.cat([shares, more[0]]), torch.cat([words, more[1]])
            self._ranked[k] = place, shares, words
        return shares[place[pairs], 0], words[place[pairs], 0]

    def _best_members(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        own = classes - self.num_below
        is_own, which = (own >= 0).unsqueeze(2), own.clamp_min(0)
        shares, words = self._staying(state, classes.masked_fill(own >= 0, 0), k)
        alone = self._own_shares(state).gather(1, which).unsqueeze(2)
        word = self._words(state).gather(1, which).unsqueeze(2)
        shares = torch.where(is_own, functional.pad(alone, (0, k - 1), value=NEGATIVE_INFINITY), shares)
        return shares, torch.where(is_own, word, words).masked_fill(shares.isneginf(), 0)

    def _staying(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k best that have stayed in classes below: (N, C') -> log shares and words (N, C', k)."""
        shares, words = self._reach[0].best_members(self.below(state), classes, k + self.source.width)
        gone = words.unsqueeze(3) == self._words(state)[:, None, None]
        values, which = shares.masked_fill(gone.any(3), NEGATIVE_INFINITY).topk(k, dim=2)
        return values + self._gain(state, classes).unsqueeze(2), words.gather(2, which)

    # ---- all words (only where asked for) ---------------------------------------------------------------------------

    def log_weights(self, state: Tensor) -> Tensor:
        """(N, K), and J columns more where the source brings strings."""
        weights = self.base.log_weights(self.below(state)).expand(len(state), -1)
        if self.source.unk is not None:
            unk = self.class_of.new_tensor([self.source.unk])
            weights = weights.index_add(1, unk, self._unk_factor(state).to(weights))
        return self._in_columns(weights, self._own_mass(state), state)

    def log_shares(self, state: Tensor) -> Tensor:
        """As `log_weights`."""
        shares = self._reach[0].log_shares(self.below(state))
        return self._in_columns(self._lifted(shares, state), self._own_shares(state), state)

    def word_log_probs(self, classes: Tensor, state: Tensor) -> Tensor:
        """log p(σ | K) (N, C + J) -> log p of the words, as `log_weights`."""
        words = self._reach[0].word_log_probs(classes[:, : self.num_below], self.below(state))
        own = classes[:, self.num_below :] + self._own_shares(state)
        return self._in_columns(self._lifted(words, state), own, state)

    def _lifted(self, of_words: Tensor, state: Tensor) -> Tensor:
        """Values of the columns below (N, K), with the gain of those who stay."""
        former, gain = self.former_classes(state), self._gains(state)
        lift = gain.new_zeros(len(state), self.num_below).scatter_add(1, former, gain)
        return of_words + lift.gather(1, self.base.column_classes(self.below(state)).expand(len(state), -1))


def _each(background: Background, state: Tensor, words: Tensor) -> Tensor:
    """The log shares of some words of each hypothesis: (N, J) -> (N, J)."""
    return background.log_share(state.repeat_interleave(words.size(1), 0), words.flatten()).view_as(words)
