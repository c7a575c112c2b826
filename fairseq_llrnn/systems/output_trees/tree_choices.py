"""The choices on the way to a word in a tree of signatures, for its explanation.

Sizes: T positions, S signatures, I internal nodes, H hidden width, J classes that hang below the root besides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY
from fairseq_llrnn.backgrounds.masses import Masses
from fairseq_llrnn.output.feature_weights import row_scores
from fairseq_llrnn.output.normalisers import ClassPath, Detail, SlotScores
from fairseq_llrnn.systems.output_trees.tree_log_linear import TreeOutput
from fairseq_llrnn.systems.output_trees.tree_masses import node_masses
from fairseq_llrnn.systems.output_trees.tree_normalisation import TreeDistribution

if TYPE_CHECKING:
    from fairseq_llrnn.output.records import Batch

CHOICE = "Tree"  # what a word's score has from a node on its way, in the list of its features: Tree:1, Tree:2, …


@dataclass(frozen=True)
class Choice:
    """A choice among the children of a node: log_prob = log_background + score + normaliser."""

    child: int  # the number of the child, from 0
    children: int  # how many there are
    log_background: float  # log B(child)/B(node)
    score: float  # the child's row · h
    log_prob: float

    @property
    def normaliser(self) -> float:
        """−log Z of the node; 0 where the child is forbidden."""
        return 0.0 if self.log_background == NEGATIVE_INFINITY else self.log_prob - self.log_background - self.score


def explained_choices(batch: Batch, tokens: Tensor) -> tuple[Tensor, list[ClassPath]]:
    """Of a batch of one sentence: log p(σ | K) less the masses, (T, S + J), and the choices that lead to each token."""
    dense = Masses(batch.masses.dense(), batch.masses.num_rows)
    distribution = batch.rows.classes.distribution(batch.hidden.flatten(0, 1), batch.slots, dense)
    assert isinstance(distribution, TreeDistribution)
    classes = distribution.child_of_root(batch.background.classes(batch.states, tokens))
    scores = distribution.log_probs - dense.shared
    scores = scores.masked_fill(dense.shared.isneginf(), 0.0)
    of_batch = distribution.hidden, classes, distribution.masses.shared, distribution.slots
    choices = choices_of(distribution.output, *of_batch)
    return scores, [path_of(steps) for steps in choices]


def path_of(choices: tuple[Choice, ...]) -> ClassPath:
    """What an explanation says of the choices that lead to a class."""
    terms = tuple((f"{CHOICE}:{level}", one.score) for level, one in enumerate(choices[:-1], 1))
    facts = [
        {
            "child": one.child + 1,
            "children": one.children,
            "background": math.exp(one.log_background),
            "p": math.exp(one.log_prob),
        }
        for one in choices
    ]
    items = tuple((f"{one['child']} of {one['children']} ", one["background"], "→", one["p"]) for one in facts)
    return ClassPath(
        sum(one.log_background for one in choices),
        terms,
        sum(one.normaliser for one in choices),
        Detail("choices", facts, "choices", items),
    )


def choices_of(
    output: TreeOutput, hidden: Tensor, classes: Tensor, log_mass: Tensor, slots: SlotScores | None
) -> list[tuple[Choice, ...]]:
    """The choices that lead to each class, from the root on.

    Args:
        hidden: (T, H). classes: (T,), from S on slots. log_mass: of the signatures, (1, S) or (T, S).
    """
    tree, scores = output.layer.tree, row_scores(hidden, *output.all_rows)  # shape: (T, I + S)
    masses = node_masses(output.layer, log_mass).expand(len(hidden), -1).to(scores.dtype)
    paths = []
    for t, target in enumerate(classes.tolist()):
        path = [0] if target >= tree.leaves else [int(node) for node in tree.path[target] if node >= 0]
        steps = []
        for level, node in enumerate(path):
            children = torch.from_numpy(tree.child[tree.first[node] : tree.first[node + 1]]).to(scores.device)
            score, mass = scores[t, children], masses[t, children]
            if node == 0 and slots is not None:
                mass = torch.cat([mass, slots.log_mass[t].to(score)])
                score = torch.cat([score, slots.scores[t].to(score)])
            if target >= tree.leaves:
                place = len(children) + target - tree.leaves
            else:
                place = int(tree.place[tree.chosen[target, level]])
            background, log_prob = (each.log_softmax(0)[place].item() for each in (mass, score + mass))
            if mass[place].isneginf():  # as all of its siblings may be
                background = log_prob = NEGATIVE_INFINITY
            values = background, score[place].item(), log_prob
            steps.append(Choice(place, len(score), *values))
        paths.append(tuple(steps))
    return paths
