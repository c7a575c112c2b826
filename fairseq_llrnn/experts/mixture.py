"""The background of a batch in which the exceptional words of every context have classes of their own.

Sizes: N hypotheses, B batch, T time, C classes of the background below (static ones, then slots of evidence), J
exceptions of the context that has most of them so far. Weights b(K, x) do not change. Exception j of a context is class
C + j there and has one member, a word that has left its class: so it can have a value of its own under each expert, and
the sum over classes stays exact. A slot of evidence that is an exception leaves its class likewise.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background, Corrections
from fairseq_llrnn.backgrounds.split_classes import beside_own, best_staying
from fairseq_llrnn.evidence.background import EvidenceMixture
from fairseq_llrnn.evidence.slots import NO_WORD
from fairseq_llrnn.experts.contexts import Contexts


class ExpertMixture(Background):
    """A hypothesis' state: the number of its context, then the state of the background below."""

    def __init__(self, base: Background, contexts: Contexts, reach: Background | None = None) -> None:
        """
        Args:
            base: has <pad> alone in its class, which takes what no exception writes (checked where experts are opened).
            reach: what `base` is within a limit of length, of which the shares are; masses know no limit.
        """
        super().__init__(base.class_of, base.num_classes)
        self.base, self.contexts = base, contexts
        self.reach = base if reach is None else reach
        self.evidence = base if isinstance(base, EvidenceMixture) else None
        self.num_below = base.num_classes  # C
        self.constant = base.constant and not contexts.panel.looks_at_prefix
        self._base_shape: torch.Size | None = None
        self._grow()

    def _grow(self) -> None:
        self.num_classes = self.num_below + self.contexts.width
        self.sparse = self.base.sparse and not self.contexts.width

    # ---- states ---------------------------------------------------------------------------------------------------

    def start(self, n: int) -> Tensor:
        base = self.base.start(n)
        self._base_shape = base.shape[1:]
        return self._joined(self.contexts.start(n).to(self.class_of.device), base)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        base = self.base.advance(self.below(state), tokens)
        contexts = self.contexts.advance(self.contexts_of(state), tokens)
        self._grow()
        return self._joined(contexts, base)

    def states_along(self, previous: Tensor) -> list[Tensor]:
        return list(self.flat_states(previous).unflatten(0, (len(previous), -1)).unbind(1))

    def flat_states(self, previous: Tensor) -> Tensor:
        contexts = self.contexts.along(previous)
        self._grow()
        below = self.base.flat_states(previous)
        self._base_shape = below.shape[1:]
        return self._joined(contexts.flatten(), below)

    def _joined(self, contexts: Tensor, base: Tensor) -> Tensor:
        return torch.cat([contexts.to(base.dtype).unsqueeze(1), base.reshape(len(base), -1)], dim=1)

    def contexts_of(self, state: Tensor) -> Tensor:
        """The contexts of the hypotheses: (N,)."""
        return state[:, 0].long()

    def below(self, state: Tensor) -> Tensor:
        """The state of the background below."""
        if self._base_shape is None:
            self._base_shape = self.base.start(self.contexts.rows).shape[1:]
        return state[:, 1:].reshape(len(state), *self._base_shape)

    def within(self, remaining: int) -> Background:
        reach = self.base.within(remaining)
        return self if reach is self.base else ExpertMixture(self.base, self.contexts, reach)

    def steps_to_end(self, state: Tensor) -> Tensor:
        return self.base.steps_to_end(self.below(state))

    # ---- classes ----------------------------------------------------------------------------------------------------

    def exceptions(self, state: Tensor) -> Tensor:
        """The words of the classes from C on: (N, J), NO_WORD where a context has fewer."""
        words = self.contexts.exceptions(self.contexts_of(state))
        return self._possible(words, None if self.evidence is None else state[:, 1:2].long())

    def _possible(self, words: Tensor, sentence: Tensor | None) -> Tensor:
        """`words` (…, J) with NO_WORD for strings outside the vocabulary that are no slot of their sentence (…, 1)."""
        outside = words >= len(self.class_of)
        if self.evidence is not None and sentence is not None:
            outside &= ~self.evidence.words.slot(sentence.expand_as(words), words)[1]
        return words.masked_fill(outside, NO_WORD)

    def former_classes(self, state: Tensor) -> Tensor:
        """The classes that the exceptions have left: (N, J), those of padding where there is no exception."""
        words, _ = self._places(state)
        each = self.below(state).repeat_interleave(words.size(1), 0)
        return self.base.classes(each, words.flatten()).view_as(words)

    def _places(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """The exceptions as words that exist, and whether they do: (N, J) each."""
        words = self.exceptions(state)
        real = words != NO_WORD
        return words.masked_fill(~real, self.contexts.panel.pad), real

    def _which(self, state: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Which exception of its context each token (N, …) is, and whether it is one."""
        words = self.exceptions(state)
        if not words.size(1):
            return torch.zeros_like(tokens), torch.zeros_like(tokens, dtype=torch.bool)
        words = words.view(len(words), *[1] * (tokens.dim() - 1), -1)
        same = words == tokens.unsqueeze(-1)
        return same.long().argmax(-1), same.any(-1)

    def classes(self, state: Tensor, tokens: Tensor) -> Tensor:
        which, is_exception = self._which(state, tokens)
        return torch.where(is_exception, self.num_below + which, self.base.classes(self.below(state), tokens))

    def classes_along(self, tokens: Tensor) -> Tensor:
        previous = functional.pad(tokens, (1, 0), value=self.contexts.panel.eos)[:, :-1]
        row = torch.arange(len(tokens), device=tokens.device).view(-1, 1, 1)
        words = self._possible(self.contexts.exceptions(self.contexts.along(previous)), row)  # shape: (B, T, J)
        same = words == tokens.unsqueeze(-1)
        if not words.size(2):
            return self.base.classes_along(tokens)
        return torch.where(same.any(-1), self.num_below + same.long().argmax(-1), self.base.classes_along(tokens))

    def only_member(self, state: Tensor, classes: Tensor) -> Tensor:
        base = self.base.only_member(self.below(state), classes.clamp_max(self.num_below - 1))
        if not self.contexts.width:
            return base
        word = self.exceptions(state).gather(1, (classes - self.num_below).clamp_min(0)).clamp_min(0)
        return torch.where(classes >= self.num_below, word, base)

    def readable(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        return self.base.readable(tokens, None if state is None else self.below(state))

    def corrections(self, state: Tensor) -> Corrections | None:
        return self.base.corrections(self.below(state)) if self.sparse else None

    # ---- masses and shares ------------------------------------------------------------------------------------------

    def log_mass(self, state: Tensor) -> Tensor:
        below = self.base.log_mass(self.below(state))
        if not self.contexts.width:
            return below
        below = below.expand(len(state), -1)
        classes, writes, _, after, own = self._leaving(state)
        # what no exception writes is written to padding's class, which nothing has left: its own mass
        pad = self.class_of[self.contexts.panel.pad]
        written = torch.where(writes, classes, pad)
        left = torch.where(writes, after, below[:, pad].unsqueeze(1))
        return torch.cat([below.scatter(1, written, left), own], dim=1)

    def log_mass_along(self, previous: Tensor) -> Tensor:
        if not self._contexts_along(previous):
            return self.base.log_mass_along(previous)
        if self.constant:
            return self.log_mass(self.start(len(previous))).unsqueeze(1)
        flat = self.log_mass(self.flat_states(previous))
        return flat.expand(previous.numel(), -1).view(*previous.shape, -1)

    def _contexts_along(self, previous: Tensor) -> int:
        """Meet all contexts of a batch: how many exceptions the one has that has most."""
        self.contexts.along(previous)
        self._grow()
        return self.contexts.width

    def _leaving(self, state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Of the exceptions, (N, J) each.

        The classes that they leave; whether an exception is the first to leave its class (so that its mass is written
        once); the class' log mass before and after; and their own.
        """
        words, real = self._places(state)
        below = self.below(state)
        classes = self.former_classes(state)
        beside = (classes.unsqueeze(2) == classes.unsqueeze(1)) & real.unsqueeze(1)  # shape: (N, J, J)
        writes = real & ~beside.tril(-1).any(2)
        before = self.base.log_mass(below).expand(len(state), -1).gather(1, classes)
        after = self.base.log_mass_without(below, words, real)
        share = self.base.log_share(below.repeat_interleave(words.size(1), 0), words.flatten()).view_as(words)
        own = torch.where(real & ~share.isneginf() & ~before.isneginf(), before + share, NEGATIVE_INFINITY)
        return classes, writes, before, after, own

    def _lift(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """What the shares of those gain that stay in a class: the gain (N, J), and the class (N, J) that has it.

        A gain is named once for every class; the other entries are 0, of padding's class.
        """
        classes, writes, before, after, _ = self._leaving(state)
        gain = torch.where(writes & ~after.isneginf(), before - after, 0.0)
        return gain, torch.where(writes, classes, self.class_of[self.contexts.panel.pad])

    def _lift_of(self, state: Tensor, classes: Tensor) -> Tensor:
        """The gain in classes of the background below: (N, C') -> (N, C')."""
        gain, of = self._lift(state)
        return torch.where(classes.unsqueeze(2) == of.unsqueeze(1), gain.unsqueeze(1), 0.0).sum(2)

    def _own_shares(self, state: Tensor) -> Tensor:
        """The log share of each exception in its class, of which it is the only member: 0, or −inf without mass."""
        words, real = self._places(state)
        each = self.below(state).repeat_interleave(words.size(1), 0)
        share = self.reach.log_share(each, words.flatten()).view_as(words)
        return share.masked_fill(real & ~share.isneginf(), 0.0).masked_fill(~real, NEGATIVE_INFINITY)

    def log_share(self, state: Tensor, tokens: Tensor) -> Tensor:
        below = self.below(state)
        share = self.reach.log_share(below, tokens)
        if not self.contexts.width:
            return share
        which, is_exception = self._which(state, tokens)
        own = self._own_shares(state).gather(1, which.unsqueeze(1)).squeeze(1)
        lift = self._lift_of(state, self.base.classes(below, tokens).unsqueeze(1)).squeeze(1)
        return torch.where(is_exception, own, share + lift)

    def log_share_along(self, previous: Tensor, targets: Tensor) -> Tensor:
        if not self._contexts_along(previous):
            return self.reach.log_share_along(previous, targets)
        return self.log_share(self.flat_states(previous), targets.flatten()).view_as(targets)

    def best_share(self, state: Tensor) -> Tensor:
        best = self.reach.best_share(self.below(state))
        if not self.contexts.width:
            return best
        best = best.expand(len(state), -1)
        classes = self.former_classes(state)
        first = self._staying(state, classes, 1)[0].squeeze(2)  # shape: (N, J)
        _, real = self._places(state)
        left = torch.where(real, first, best.gather(1, classes))
        return torch.cat([best.scatter(1, classes, left), self._own_shares(state)], dim=1)

    def best_members(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        if not self.contexts.width:
            return self.reach.best_members(self.below(state), classes, k)
        own = classes - self.num_below
        best = self._staying(state, classes.masked_fill(own >= 0, 0), k)
        return beside_own(own, self._own_shares(state), self.exceptions(state), best)

    def _staying(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k best members of classes below C that are no exceptions: (N, C') -> log shares and words (N, C', k)."""
        shares, words = best_staying(self.reach, self.below(state), classes, self.exceptions(state), k)
        return shares + self._lift_of(state, classes).unsqueeze(2), words

    # ---- all words (only where asked for) ---------------------------------------------------------------------------

    def log_weights(self, state: Tensor) -> Tensor:
        return self.base.log_weights(self.below(state))

    def log_shares(self, state: Tensor) -> Tensor:
        shares = self.reach.log_shares(self.below(state))
        if not self.contexts.width:
            return shares
        return self._with_exceptions(self._lifted(shares, state), self._own_shares(state), state)

    def word_log_probs(self, classes: Tensor, state: Tensor) -> Tensor:
        words = self.reach.word_log_probs(classes[:, : self.num_below], self.below(state))
        if not self.contexts.width:
            return words
        of_exceptions = classes[:, self.num_below :] + self._own_shares(state)
        return self._with_exceptions(self._lifted(words, state), of_exceptions, state)

    def word_log_probs_along(self, classes: Tensor, previous: Tensor) -> Tensor:
        if not self._contexts_along(previous):
            return self.reach.word_log_probs_along(classes, previous)
        states = self.flat_states(previous)
        return self.word_log_probs(classes.flatten(0, 1), states).view(*previous.shape, -1)

    def _lifted(self, columns: Tensor, state: Tensor) -> Tensor:
        """Values of the columns (N, ≥ V) of words, with the gain of those that stay."""
        gain, of = self._lift(state)
        lift = gain.new_zeros(len(state), self.num_below).scatter_add(1, of, gain)[:, self.class_of]
        if self.evidence is not None:  # words that are slots have left the class before
            lift = lift.scatter(1, self.evidence.words.leaves[state[:, 1].long()], 0.0)
        return columns + functional.pad(lift, (0, columns.size(1) - lift.size(1)))

    def _with_exceptions(self, columns: Tensor, of_exceptions: Tensor, state: Tensor) -> Tensor:
        """The values (N, J) of exceptions put into their columns (N, ≥ V)."""
        words, real = self._places(state)
        column = words if self.evidence is None else self.evidence.column_of(words, self.below(state))
        # an extra column takes what no exception writes
        wide = functional.pad(columns.expand(len(state), -1), (0, 1))
        return wide.scatter(1, column.masked_fill(~real, columns.size(1)), of_exceptions)[:, :-1]


def evidence_of(background: Background) -> EvidenceMixture | None:
    """The background of sentences that offer slots, whether or not experts know of it."""
    if isinstance(background, ExpertMixture):
        return background.evidence
    return background if isinstance(background, EvidenceMixture) else None
