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

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background, Masses
from fairseq_llrnn.output.context_sources import ContextClassSource
from fairseq_llrnn.output.context_words import ContextWords, recalled


class ContextClasses(ContextWords):
    """The background `base` with the context classes of `source`."""

    def __init__(self, base: Background, source: ContextClassSource) -> None:
        super().__init__(base, source)
        self._reach = (base,)  # what a limit leaves of it, for shares; in a tuple: copies share sub-modules
        self._remaining: int | None = None
        self._ranked: dict[int, tuple[Tensor, Tensor, Tensor]] = {}  # of `best_members`, by k

    def with_hidden(self, hidden: Tensor) -> Background:
        return self._over(self.base.with_hidden(hidden))

    def for_rows(self, index: Tensor) -> Background:
        return self._over(self.base.for_rows(index))

    def _over(self, base: Background) -> Background:
        """The same in front of another background, that of the same sentences; itself where it is the same."""
        if base is self.base:
            return self
        made = type(self)(base, self.source)
        return made if self._remaining is None else made.within(self._remaining)

    def within(self, remaining: int) -> Background:
        base = self.base.within(remaining)
        if base is self.base:
            return self
        limited = copy.copy(self)
        limited._reach, limited._remaining = (base,), remaining
        limited._tables, limited._last, limited._ranked = {}, {}, {}
        return limited

    # ---- masses and shares ------------------------------------------------------------------------------------------

    def masses(self, state: Tensor) -> Masses:
        return super().masses(state) if self.source.width else self.base.masses(self.below(state))

    def along(self, previous: Tensor) -> tuple[Tensor, Masses]:
        states = self.flat_states(previous)  # first: there are more context classes when all contexts were met
        if self.source.width or not self.base.constant:
            return super().along(previous)
        masses = self.base.masses(self.base.start(len(previous)))  # one row for a sentence, though its contexts differ
        return states, masses.repeated(previous.size(1))

    def log_mass(self, state: Tensor) -> Tensor:
        return self._log_mass(state) if self.source.width else self.base.log_mass(self.below(state))

    @recalled
    def _log_mass(self, state: Tensor) -> Tensor:
        own = self._own_mass(state)
        mass = torch.cat([self._mass_below(state).expand(len(state), -1), own], dim=1)
        if self.source.unk is not None:
            mass.index_add_(1, self.class_of[self.source.unk].view(1), self._unk_factor(state).to(mass.dtype))
        # what is left of a class is written once, or it would have its gradient twice
        first = self._first(state)
        place = torch.where(first, self.former_classes(state), self._own_classes)
        return mass.scatter_(1, place, torch.where(first, self._rest(state), own))

    @recalled
    def _mass_below(self, state: Tensor) -> Tensor:
        return self.base.log_mass(self.below(state))

    @recalled
    def _rest(self, state: Tensor) -> Tensor:
        """The log mass of each former class without all that leave it: (N, J)."""
        return self.base.log_mass_without(self.below(state), self._known_words(state), self._leave(state))

    @recalled
    def _before(self, state: Tensor) -> Tensor:
        """Its log mass below: (N, J)."""
        return self._mass_below(state).expand(len(state), -1).gather(1, self.former_classes(state))

    @recalled
    def _gains(self, state: Tensor) -> Tensor:
        """What the log shares gain of those who stay in it: (N, J); 0 but for `_first`."""
        rest = self._rest(state)
        return torch.where(self._first(state) & ~rest.isneginf(), self._before(state) - rest, 0.0)

    @recalled
    def _share_below(self, state: Tensor) -> Tensor:
        """The log shares below of the words that leave a class, −inf for the others: (N, J)."""
        share = _each(self.base, self.below(state), self._known_words(state))
        return share.masked_fill(~self._leave(state), NEGATIVE_INFINITY)

    @recalled
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
            rest = rest + (others == self.source.unk) * self._unk_factor(state).to(rest.dtype)
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

    @recalled
    def _own_shares(self, state: Tensor) -> Tensor:
        """The log share of the only member of each context class, (N, J): 0, or −inf without mass or out of reach."""
        mass = self._own_mass(state)
        shares = mass.masked_fill(~mass.isneginf(), 0.0)
        if self._remaining is None or self._reach[0] is self.base:
            return shares
        below, words = self.below(state), self._known_words(state)
        lost = _each(self._reach[0], below, words).isneginf()
        if self.source.unk is not None:  # words that have their mass from the source alone
            after = self.base.advance(below.repeat_interleave(words.size(1), 0), words.flatten())
            far = self.base.steps_to_end(after).view_as(words) >= self._remaining
            lost = torch.where(self._share_below(state).isneginf(), far, lost)
        return shares.masked_fill(lost, NEGATIVE_INFINITY)

    # ---- the best words (search) ------------------------------------------------------------------------------------

    def best_share(self, state: Tensor) -> Tensor:
        if not self.source.width:
            return self._reach[0].best_share(self.below(state))
        return self._best_share(state)

    @recalled
    def _best_share(self, state: Tensor) -> Tensor:
        former, own, leave = self.former_classes(state), self._own_shares(state), self._leave(state)
        first = self._staying(state, former, 1)[0].squeeze(2)  # shape: (N, J)
        best = torch.cat([self._reach[0].best_share(self.below(state)).expand(len(state), -1), own], dim=1)
        return best.scatter_(1, torch.where(leave, former, self._own_classes), torch.where(leave, first, own))

    def best_members(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        if not self.source.width:
            return self._reach[0].best_members(self.below(state), classes, k)
        if not self.by_context:
            return self._best_members(state, classes, k)
        # hypotheses and steps ask for the same classes over and over: every pair of a context and a class is found once
        pairs = self.contexts_of(state).unsqueeze(1) * self.num_classes + classes
        if k not in self._ranked:
            place = self.class_of.new_full((self.source.rows * self.num_classes,), -1)
            place[pairs[0, 0]] = 0
            shares, words = self._best_members(state[:1], classes[:1, :1], k)
            self._ranked[k] = place, shares.squeeze(1), words.squeeze(1)
        place, shares, words = self._ranked[k]
        there = place[pairs]
        if bool((there < 0).any()):
            new = pairs[there < 0].unique()
            place[new] = len(shares) + torch.arange(len(new), device=new.device)
            begin, which = self._begin[new // self.num_classes], new % self.num_classes
            more = self._best_members(begin, which.unsqueeze(1), k)
            shares, words = torch.cat([shares, more[0].squeeze(1)]), torch.cat([words, more[1].squeeze(1)])
            self._ranked[k], there = (place, shares, words), place[pairs]
        return shares[there], words[there]

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
        own = self._words(state).sort(1).values  # shape: (N, J)
        place = torch.searchsorted(own, words.flatten(1)).clamp_max(own.size(1) - 1)
        gone = (own.gather(1, place) == words.flatten(1)).view_as(words)
        values, which = shares.masked_fill(gone, NEGATIVE_INFINITY).topk(k, dim=2)
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
        own = classes[:, self.num_below :] + self._own_shares(state).to(classes.dtype)
        return self._in_columns(self._lifted(words, state), own, state)

    def _lifted(self, of_words: Tensor, state: Tensor) -> Tensor:
        """Values of the columns below (N, K), with the gain of those who stay."""
        former, gain = self.former_classes(state), self._gains(state)
        lift = of_words.new_zeros(len(state), self.num_below).scatter_add(1, former, gain.to(of_words.dtype))
        return of_words + lift.gather(1, self.base.column_classes(self.below(state)).expand(len(state), -1))


def strings_in(background: Background) -> ContextClasses | None:
    """The context classes, among those of `background`, whose source brings strings of its own."""
    while isinstance(background, ContextClasses):
        if background.source.unk is not None:
            return background
        background = background.base
    return None


def strings_of(background: Background, state: Tensor) -> tuple[ContextClasses, Tensor]:
    """As `strings_in`, and its own part of the state. There must be some."""
    while isinstance(background, ContextClasses) and background.source.unk is None:
        state = background.below(state)
        background = background.base
    assert isinstance(background, ContextClasses), "no source brings strings"
    return background, state


def _each(background: Background, state: Tensor, words: Tensor) -> Tensor:
    """The log shares of some words of each hypothesis: (N, J) -> (N, J)."""
    rows = torch.arange(len(state), device=state.device).repeat_interleave(words.size(1))
    return background.for_rows(rows).log_share(state.index_select(0, rows), words.flatten()).view_as(words)
