"""The tree as a normalisation: what the head asks (normalisation.py), in terms of TreeOutput.

Sizes: N positions or hypotheses, S signatures, J context classes, H hidden width, K classes asked about.
Context classes are children of the root. Where the vocabulary is open, <unk> is the last of them: its own leaf has no
mass in the tree (TreeLayer), and its log-probability is put where that of its signature belongs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.backgrounds.masses import Masses
from fairseq_llrnn.output.learned_tree import LearnedTreeLayer
from fairseq_llrnn.output.log_linear import SlotScores, best_words_of
from fairseq_llrnn.output.normalisation import Distribution, OtherScores
from fairseq_llrnn.output.tree_log_linear import TreeOutput
from fairseq_llrnn.output.tree_statistics import VisitProbabilities


@dataclass(frozen=True)
class TreeNormalisation:
    """A normalisation over a tree."""

    made: TreeOutput
    opened: int | None = None  # the signature of <unk>, where the vocabulary is open
    learned: LearnedTreeLayer | None = None  # in training, where it counts what the layer says

    def target_log_prob(
        self,
        hidden: Tensor,
        targets: Tensor,
        log_mass: Masses,
        log_share: Tensor,
        slots: SlotScores | None = None,
    ) -> Tensor:
        masses = _without(log_mass, self.opened)
        visited: list[VisitProbabilities] | None = None if self.learned is None else []
        log_prob = self.made.target_log_prob(hidden, targets, masses, log_share, slots, visited)
        if self.learned is not None and visited is not None:
            self.learned.observe(visited)
        return log_prob

    def smoothing_gain(
        self, hidden: Tensor, targets: Tensor, log_q: Tensor, log_mass: Tensor, slots: SlotScores | None = None
    ) -> Tensor:
        shape, leaves = targets.shape, self.made.layer.leaves
        masses = _without(Masses(log_mass.expand(*shape, -1).flatten(0, -2), targets.numel()), self.opened)
        if slots is not None:
            slots = SlotScores(slots.scores.flatten(0, -2), slots.log_mass.flatten(0, -2), slots.targets.flatten())
        width = leaves if slots is None else leaves + slots.scores.size(1)
        q = log_q.expand(*shape, width).flatten(0, -2)
        flat = self.made.smoothing_gain(hidden.flatten(0, -2), targets.flatten(), q, masses, slots)
        return flat.view(shape)

    def distribution(
        self, hidden: Tensor, others: OtherScores, masses: Masses, temperature: float | Tensor = 1.0
    ) -> Distribution:
        return TreeDistribution(self.made, hidden, others, masses, temperature)


class TreeDistribution(Distribution):
    """p(σ | K), as far as it is asked for."""

    def __init__(
        self,
        made: TreeOutput,
        hidden: Tensor,
        others: OtherScores,
        masses: Masses,
        temperature: float | Tensor,
    ) -> None:
        """As of Normalisation.distribution."""
        self.made, self.hidden = made, hidden
        self.leaves, self.temperature = made.layer.leaves, temperature
        self.opened = None if others.opened is None else others.opened[0]
        self.masses, self.slots = self._children_of_root(others, masses)

    def _children_of_root(self, others: OtherScores, masses: Masses) -> tuple[Masses, SlotScores | None]:
        """The masses of signatures, and scores and masses of all that hangs below the root besides."""
        static, slots = masses.of_columns(slice(self.leaves)), None
        none = self.hidden.new_zeros(len(self.hidden), dtype=torch.int64)
        if others.context is not None:
            slots = SlotScores(others.context, masses.each_row(masses.shared[:, self.leaves :]), none)
        if others.opened is not None:
            scored, scores = others.opened
            slots = scored.beside(slots, scores, scored.mass(static), none, self.leaves)
            static = _without(static, scored.of_class)
        return static, slots

    @cached_property
    def log_probs(self) -> Tensor:
        flat = self.made.class_log_probs(self.hidden, self.masses, self.slots, self.temperature)
        if self.opened is not None:
            place = torch.tensor([self.opened.of_class], device=flat.device)
            flat = flat[:, :-1].index_copy(1, place, flat[:, -1:])
        return flat

    def log_probs_of(self, classes: Tensor) -> Tensor:
        if "log_probs" in self.__dict__:
            return super().log_probs_of(classes)
        classes = self.child_of_root(classes)
        return self.made.log_probs_of(self.hidden, classes, self.masses, self.slots, self.temperature)

    def child_of_root(self, classes: Tensor) -> Tensor:
        """Classes as TreeOutput knows them: <unk> of an open vocabulary is the last child of the root."""
        return classes if self.opened is None else classes.masked_fill(classes == self.opened.of_class, self._last)

    @property
    def _last(self) -> int:
        assert self.slots is not None
        return self.leaves + self.slots.scores.size(1) - 1

    @torch.no_grad()
    def best_words(self, background: Background, state: Tensor, k: int) -> tuple[Tensor, Tensor]:
        share = background.best_share(state)
        if self.opened is not None:
            share = torch.cat([share, share[:, self.opened.of_class].unsqueeze(1)], dim=1)
        given = self.hidden, self.masses, share, k, self.slots, self.temperature
        best, values, classes = self.made.best_classes(*given)
        if self.opened is not None:
            classes = classes.masked_fill(classes == self._last, self.opened.of_class)
        return best_words_of(values, classes, best, background, state, k)


def _without(masses: Masses, opened: int | None) -> Masses:
    """The masses of signatures, none of them that of open classes."""
    if opened is None:
        return masses
    place, own = torch.tensor([opened], device=masses.shared.device), masses.entries
    shared = masses.shared.index_fill(1, place, NEGATIVE_INFINITY)
    if own is None:
        return replace(masses, shared=shared)
    others = own.classes != opened
    left = replace(own, rows=own.rows[others], classes=own.classes[others], added=own.added[others])
    return replace(masses, shared=shared, entries=left)
