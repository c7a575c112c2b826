"""The tree as the normaliser of a head (output/normalisers.py), computed by TreeOutput.

Sizes: T positions of one sentence, S signatures, I internal nodes, J context classes, H hidden width, K classes.

Context classes are children of the root. If one replaces a signature, it is the last of them. The signature's leaf then
has no mass in the tree, and the class's log-probability is put in the signature's place.

`explained_choices` returns the choices along the path to a word, for explanations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.background import View
from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, ClassWeights
from fairseq_llrnn.output.feature_weights import row_scores
from fairseq_llrnn.output.normalisers import ClassPath, Detail, Distribution, SlotScores, best_words_of
from fairseq_llrnn.output.records import Batch
from llrnn_research.output_trees.tree_log_linear import TreeOutput
from llrnn_research.output_trees.tree_masses import node_masses
from llrnn_research.output_trees.tree_scores import VisitProbabilities


@dataclass(frozen=True)
class TreeNormalisation:
    """Rows of a batch or a search."""

    output: TreeOutput
    observe: Callable[[list[VisitProbabilities]], None] | None = None  # collects statistics in training

    def log_prob(
        self,
        hidden: Tensor,
        classes: Tensor,
        class_weights: ClassWeights,
        log_share: Tensor,
        slots: SlotScores | None = None,
        is_counted: Tensor | None = None,
    ) -> Tensor:
        visited: list[VisitProbabilities] | None = None if self.observe is None else []
        log_prob = self.output.class_log_prob(hidden, classes, _unreplaced(class_weights, slots), slots, visited)
        if self.observe is not None and visited is not None:
            self.observe(visited)
        return log_prob + log_share.to(log_prob.dtype)

    def smoothing_gain(
        self, hidden: Tensor, classes: Tensor, log_q: Tensor, log_mass: Tensor, slots: SlotScores | None = None
    ) -> Tensor:
        shape, leaves = classes.shape, self.output.layer.leaves
        class_weights = _unreplaced(ClassWeights(log_mass.expand(*shape, -1).flatten(0, -2), classes.numel()), slots)
        if slots is not None:
            slots = SlotScores(slots.scores.flatten(0, -2), slots.log_mass.flatten(0, -2), slots.replaced)
        width = leaves if slots is None else leaves + slots.scores.size(1)
        q = log_q.expand(*shape, width).flatten(0, -2)
        flat = self.output.smoothing_gain(hidden.flatten(0, -2), classes.flatten(), q, class_weights, slots)
        return flat.view(shape)

    def distribution(
        self, hidden: Tensor, slots: SlotScores | None, class_weights: ClassWeights, temperature: float | Tensor = 1.0
    ) -> Distribution:
        return TreeDistribution(self.output, hidden, slots, class_weights, temperature)


class TreeDistribution(Distribution):
    """p(σ | K), computed for the requested classes only."""

    def __init__(
        self,
        output: TreeOutput,
        hidden: Tensor,
        slots: SlotScores | None,
        class_weights: ClassWeights,
        temperature: float | Tensor,
    ) -> None:
        """Arguments as for Normalised.distribution."""
        self.output, self.hidden = output, hidden
        self.leaves, self.temperature, self.slots = output.layer.leaves, temperature, slots
        self.class_weights = _unreplaced(class_weights.select_classes(slice(self.leaves)), slots)
        self.replaced = None if slots is None else slots.replaced
        self.last = self.leaves - 1 + (0 if slots is None else slots.scores.size(1))  # replaces a signature

    @cached_property
    def log_probs(self) -> Tensor:
        flat = self.output.class_log_probs(self.hidden, self.class_weights, self.slots, self.temperature)
        if self.replaced is not None:
            flat = flat[:, :-1].index_copy(1, torch.tensor([self.replaced], device=flat.device), flat[:, -1:])
        return flat

    def log_probs_of(self, classes: Tensor) -> Tensor:
        if "log_probs" in self.__dict__:
            return super().log_probs_of(classes)
        classes = self.child_of_root(classes)
        return self.output.log_probs_of(self.hidden, classes, self.class_weights, self.slots, self.temperature)

    def child_of_root(self, classes: Tensor) -> Tensor:
        """Return classes as numbered by TreeOutput: a replaced signature is the last child of the root."""
        return classes if self.replaced is None else classes.masked_fill(classes == self.replaced, self.last)

    @torch.no_grad()
    def best_words(self, view: View, k: int) -> tuple[Tensor, Tensor]:
        share = view.best_share
        if self.replaced is not None:
            share = torch.cat([share, share[:, self.replaced].unsqueeze(1)], dim=1)
        arguments = self.hidden, self.class_weights, share, k, self.slots, self.temperature
        best, values, classes = self.output.best_classes(*arguments)
        if self.replaced is not None:
            classes = classes.masked_fill(classes == self.last, self.replaced)
        return best_words_of(values, classes, best, view, k)


def _unreplaced(class_weights: ClassWeights, slots: SlotScores | None) -> ClassWeights:
    """Return the masses of signatures without that of the signature replaced by a slot."""
    if slots is None or slots.replaced is None:
        return class_weights
    place, entries = torch.tensor([slots.replaced], device=class_weights.shared.device), class_weights.entries
    shared = class_weights.shared.index_fill(1, place, NEGATIVE_INFINITY)
    if entries is None:
        return ClassWeights(shared, class_weights.num_rows)
    others = entries.classes != slots.replaced
    left = replace(entries, rows=entries.rows[others], classes=entries.classes[others], added=entries.added[others])
    return ClassWeights(shared, class_weights.num_rows, left)


CHOICE = "Tree"  # prefix of the scores of nodes among a word's features: Tree:1, Tree:2, …


@dataclass(frozen=True)
class Choice:
    """A choice among the children of a node: log_prob = log_background + score + normaliser."""

    child: int  # number of the child, from 0
    children: int  # number of children
    log_background: float  # log B(child)/B(node)
    score: float  # the child's row · h
    log_prob: float

    @property
    def normaliser(self) -> float:
        """Return −log Z of the node, 0 if the child is forbidden."""
        return 0.0 if self.log_background == NEGATIVE_INFINITY else self.log_prob - self.log_background - self.score


def explained_choices(batch: Batch, tokens: Tensor) -> tuple[Tensor, list[ClassPath]]:
    """Return log p(σ | K) minus the masses, (T, S + J), and the choices that lead to each token, for one sentence."""
    dense = ClassWeights(batch.class_weights.dense(), batch.class_weights.num_rows)
    distribution = batch.rows.normalised.distribution(batch.hidden.flatten(0, 1), batch.slots, dense)
    assert isinstance(distribution, TreeDistribution)
    classes = distribution.child_of_root(batch.view.classes(tokens))
    scores = distribution.log_probs - dense.shared
    scores = scores.masked_fill(dense.shared.isneginf(), 0.0)
    of_batch = distribution.hidden, classes, distribution.class_weights.shared, distribution.slots
    choices = choices_of(distribution.output, *of_batch)
    return scores, [path_of(steps) for steps in choices]


def path_of(choices: tuple[Choice, ...]) -> ClassPath:
    """Return the part of an explanation for the choices that lead to a class."""
    terms = tuple((f"{CHOICE}:{level}", step.score) for level, step in enumerate(choices[:-1], 1))
    facts = [
        {
            "child": step.child + 1,
            "children": step.children,
            "background": math.exp(step.log_background),
            "p": math.exp(step.log_prob),
        }
        for step in choices
    ]
    items = tuple((f"{step['child']} of {step['children']} ", step["background"], "→", step["p"]) for step in facts)
    return ClassPath(
        sum(step.log_background for step in choices),
        terms,
        sum(step.normaliser for step in choices),
        Detail("choices", facts, "choices", items),
    )


def choices_of(
    output: TreeOutput, hidden: Tensor, classes: Tensor, log_mass: Tensor, slots: SlotScores | None
) -> list[tuple[Choice, ...]]:
    """Return the choices that lead to each class, from the root on.

    Args:
        hidden: (T, H).
        classes: (T,), from S on slots.
        log_mass: of the signatures, (1, S) or (T, S).
    """
    tree, scores = output.layer.tree, row_scores(hidden, *output.all_rows)  # shape: (T, I + S)
    class_weights = node_masses(output.layer, log_mass).expand(len(hidden), -1).to(scores.dtype)
    paths = []
    for t, target in enumerate(classes.tolist()):
        path = [0] if target >= tree.leaves else [int(node) for node in tree.path[target] if node >= 0]
        steps = []
        for level, node in enumerate(path):
            children = torch.from_numpy(tree.child[tree.first[node] : tree.first[node + 1]]).to(scores.device)
            score, mass = scores[t, children], class_weights[t, children]
            if node == 0 and slots is not None:
                mass = torch.cat([mass, slots.log_mass[t].to(score)])
                score = torch.cat([score, slots.scores[t].to(score)])
            if target >= tree.leaves:
                place = len(children) + target - tree.leaves
            else:
                place = int(tree.place[tree.chosen[target, level]])
            background, log_prob = (logits.log_softmax(0)[place].item() for logits in (mass, score + mass))
            if mass[place].isneginf():  # perhaps with all siblings
                background = log_prob = NEGATIVE_INFINITY
            values = background, score[place].item(), log_prob
            steps.append(Choice(place, len(score), *values))
        paths.append(tuple(steps))
    return paths
