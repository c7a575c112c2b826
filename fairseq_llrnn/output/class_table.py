"""Masses, shares and best words of context classes (context_classes.py), by context.

Sizes: V words, C classes of the background below, J the largest number of context classes of a context, M rows of a
table, or pairs of a row and a class.

Context class j is class C + j. The residual mass of a class that words have left is summed again without them
(`View.mass_without`), because a difference would lose digits. The log shares of its remaining words grow by
log B₁(σ) − log B(σ).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import View
from fairseq_llrnn.backgrounds.cached import cached_property
from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, broadcast_groups, log_difference, row_numbers
from fairseq_llrnn.backgrounds.states import repeat
from fairseq_llrnn.output.context_source import NO_WORD, ContextClassSource


class ClassTable:
    """The context classes of M contexts or states: their words, and the classes from which these moved."""

    def __init__(
        self, view: View, source: ContextClassSource, contexts: Tensor, remaining: int | None = None,
        has_dead_ends: bool = False,
    ) -> None:  # fmt: skip
        """view: of the background below, M rows. contexts: (M,).

        Args:
            remaining: the limit of length, also if it limits only words that the source adds.
            has_dead_ends: of the background below.
        """
        self.view, self.source, self.contexts, self.width = view, source, contexts, source.width
        self.remaining = None if view.remaining is None and not has_dead_ends else remaining
        words = source.words(contexts)
        knows = view.bound.in_vocabulary(words, view.states)
        self.words = words if source.unk is not None else words.masked_fill(~knows, NO_WORD)  # shape: (M, J)
        self.moved = knows & (self.words != NO_WORD)  # whether each word leaves a class below
        self.words_below = self.words.masked_fill(~self.moved, source.unk or 0)  # these, and some word for the others
        brings_mass = source.unk is not None and source.width > 0
        self._added = source.log_added(contexts) if brings_mass else None  # shape: (M, J)
        self._pairs = self.words_below.flatten(), row_numbers(words).flatten()  # shape: (M · J,) each

    @cached_property
    def original(self) -> Tensor:
        """The class below of each word: (M, J)."""
        return self.view.classes(*self._pairs).view_as(self.words)

    @cached_property
    def first(self) -> Tensor:
        """Whether each word is the first to leave its class: (M, J)."""
        same_class = (self.original.unsqueeze(2) == self.original.unsqueeze(1)) & self.moved.unsqueeze(1)
        return self.moved & ~same_class.tril(-1).any(2)

    # ---- masses -----------------------------------------------------------------------------------------------------

    @cached_property
    def mass_below(self) -> Tensor:
        """The log masses below: (M, C)."""
        return self.view.class_mass.dense()

    @cached_property
    def share_below(self) -> Tensor:
        """The log share below of each moved word, −inf for others: (M, J)."""
        weights = self.view.weights_at(*self._pairs).view(self.words.shape)
        share = log_difference(weights, self.mass_below.gather(1, self.original))
        return share.masked_fill(~self.moved, NEGATIVE_INFINITY)

    @cached_property
    def mass(self) -> Tensor:
        """The log mass of each context class, −inf for padding: (M, J)."""
        source, share = self.source, self.share_below
        mass = torch.where(share.isneginf(), share, self.mass_below.gather(1, self.original) + share)
        if self._added is None:
            return mass
        own = source.log_weights_below(self.view, self.contexts, self.words_below)
        if own is not None:
            mass = own.to(mass.dtype).masked_fill(~self.moved, NEGATIVE_INFINITY)
        return torch.logaddexp(self._added.to(mass.dtype), mass)

    @cached_property
    def residual_mass(self) -> Tensor:
        """The log mass of each original class without all moved words: (M, J)."""
        return self.view.mass_without(self.words_below, self.moved)

    @cached_property
    def log_renormaliser(self) -> Tensor:
        """The growth of the log shares of words that stay in the original class, at its first moved word, else
        0: (M, J).
        """
        before = self.mass_below.gather(1, self.original)
        return torch.where(self.first & ~self.residual_mass.isneginf(), before - self.residual_mass, 0.0)

    def gain_at(self, classes: Tensor, rows: Tensor) -> Tensor:
        """Return the growth of the log shares of words that stay in classes below: pairs (M,) -> (M,)."""
        same = classes.unsqueeze(1) == self.original[rows]
        return torch.where(same, self.log_renormaliser[rows], 0.0).sum(1)

    @cached_property
    def log_mass(self) -> Tensor:
        """The log masses of all classes: (M, C + J)."""
        mass, num_below = torch.cat([self.mass_below, self.mass], dim=1), self.view.num_classes
        if self.source.unk is not None:
            factor = self.source.log_unk_factor(self.contexts).unsqueeze(1)
            mass.index_add_(1, self.view.class_of[self.source.unk].view(1), factor.to(mass.dtype))
        # the residual mass of a class is written once: otherwise its gradient would count twice
        own = num_below + torch.arange(self.width, device=mass.device)
        place = torch.where(self.first, self.original, own)
        return mass.scatter_(1, place, torch.where(self.first, self.residual_mass, self.mass))

    def share_sums(self) -> tuple[Tensor, Tensor]:
        """As `View.share_sums`: (M, C + J) each."""
        count, total = (broadcast_groups(values, len(self.contexts)) for values in self.view.share_sums())
        moved = ~self.share_below.isneginf()
        count = count.scatter_add(1, self.original, -moved.to(count.dtype))
        total = total.scatter_add(1, self.original, -self.share_below.masked_fill(~moved, 0.0))
        total += count * torch.zeros_like(count).scatter_add(1, self.original, self.log_renormaliser)
        # each context class has one member, whose share is 1
        return functional.pad(count, (0, self.width), value=1.0), functional.pad(total, (0, self.width))

    # ---- the best words (search) ------------------------------------------------------------------------------------

    @cached_property
    def member_shares(self) -> Tensor:
        """The log share of the only member of each context class, 0, or −inf without mass or out of reach: (M, J)."""
        shares = self.mass.masked_fill(~self.mass.isneginf(), 0.0)
        if self.remaining is None:
            return shares
        tokens, rows = self._pairs
        lost = self.view.locate(tokens, rows)[1].isneginf().view_as(self.words)
        if self.source.unk is not None:  # words with mass from the source alone
            bound = self.view.bound
            after = bound.advance(repeat(self.view.states, self.width), tokens)
            far = bound.steps_to_end(after).view_as(self.words) >= self.remaining
            lost = torch.where(self.share_below.isneginf(), far, lost)
        return shares.masked_fill(lost, NEGATIVE_INFINITY)

    @cached_property
    def best_share(self) -> Tensor:
        """As `View.best_share`: (M, C + J)."""
        tokens, rows = self._pairs
        staying = self.best_staying(self.original.flatten(), 1, rows)[0].view_as(self.words)
        below = broadcast_groups(self.view.best_share, len(self.contexts))
        own = self.view.num_classes + torch.arange(self.width, device=below.device)
        place = torch.where(self.moved, self.original, own)
        values = torch.where(self.moved, staying, self.member_shares)
        return torch.cat([below, self.member_shares], dim=1).scatter_(1, place, values)

    @cached_property
    def _sorted_words(self) -> Tensor:
        """(M, J)"""
        return self.words.sort(1).values

    def best_staying(self, classes: Tensor, k: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the k best words that stay in classes below: pairs (M,) -> log shares and words (M, k)."""
        shares, words = self.view.best(classes, k + self.width, rows)
        moved = self._sorted_words[rows]
        place = torch.searchsorted(moved, words).clamp_max(moved.size(1) - 1)
        values, index = shares.masked_fill(moved.gather(1, place) == words, NEGATIVE_INFINITY).topk(k, dim=1)
        return values + self.gain_at(classes, rows).unsqueeze(1), words.gather(1, index)

    def best(self, classes: Tensor, k: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        """As `View.best`, for pairs (M,) with a row of the table."""
        num_below = self.view.num_classes
        index, is_context = (classes - num_below).clamp_min(0), (classes >= num_below).unsqueeze(1)
        shares, words = self.best_staying(classes.masked_fill(classes >= num_below, 0), k, rows)
        alone = functional.pad(self.member_shares[rows, index].unsqueeze(1), (0, k - 1), value=NEGATIVE_INFINITY)
        shares = torch.where(is_context, alone, shares)
        words = torch.where(is_context, self.words[rows, index].unsqueeze(1), words)
        return shares, words.masked_fill(shares.isneginf(), 0)

    @cached_property
    def _ranked(self) -> dict[int, tuple[Tensor, ...]]:
        return {}

    def best_again(self, classes: Tensor, k: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        """As `best`. Each pair is computed once, because hypotheses and steps repeat the same classes."""
        num_classes = self.view.num_classes + self.width
        pairs = rows * num_classes + classes
        unranked = (classes.new_full((len(self.contexts) * num_classes,), -1),)
        place, *found = self._ranked.get(k, unranked)
        places = place[pairs]
        if bool((places < 0).any()):
            new = pairs[places < 0].unique()
            more = self.best(new % num_classes, k, new // num_classes)
            place[new] = (len(found[0]) if found else 0) + torch.arange(len(new), device=new.device)
            found = [torch.cat(pair) for pair in zip(found, more, strict=True)] if found else list(more)
            self._ranked[k], places = (place, *found), place[pairs]
        return found[0][places], found[1][places]
