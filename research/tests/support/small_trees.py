"""Random trees over few classes, and what their nodes say, by the definition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from sparse_masses import sparse_masses
from torch import Tensor

from fairseq_llrnn.backgrounds.class_weights import ClassWeights
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output.normalisers import LogLinearOutput
from llrnn_research.output_trees.tree import Tree, numbered
from llrnn_research.output_trees.tree_layer import TreeLayer
from llrnn_research.output_trees.tree_log_linear import TreeOutput

LEAST = -1e4
H = 3


def any_tree(rng: np.random.Generator, leaves: int, arity: int) -> Tree:
    """A tree that is any but balanced: leaves at all depths, nodes of one child, and sometimes an empty node."""
    parent = {0: -1}
    waiting: list[tuple[int, list[int]]] = [(0, rng.permutation(leaves).tolist())]
    of_leaf = np.zeros(leaves, dtype=np.int64)
    while waiting:
        node, below = waiting.pop()
        cuts = sorted(rng.integers(0, len(below) + 1, arity - 1).tolist())
        for begin, end in zip([0, *cuts], [*cuts, len(below)], strict=True):
            part = below[begin:end]
            of_one_child = len(part) == len(below) and rng.random() < 0.3  # no long chain of them
            if (len(part) == len(below) and not of_one_child) or (len(part) == 1 and rng.random() < 0.8):
                of_leaf[part] = node
            elif part or rng.random() < 0.1:
                parent[len(parent)] = node
                if part:
                    waiting.append((len(parent) - 1, part))
    return numbered(np.array([*parent.values(), *of_leaf]), leaves)[0]


def choices(tree: Tree, node: int = 0) -> object:
    """The same for trees with the same choices, however their nodes are numbered, and with any empty nodes."""
    if node >= tree.internal:
        return node - tree.internal
    children = [child for child in np.flatnonzero(tree.parent == node).tolist() if tree.below[child]]
    return frozenset(choices(tree, child) for child in children)


def flat_tree(leaves: int) -> Tree:
    return Tree.from_parents(np.array([-1] + [0] * leaves), leaves)


def log_probs_by_paths(
    tree: Tree, hidden: Tensor, rows: Tensor, bias: Tensor, log_mass: Tensor, of_slots: Tensor | None = None
) -> Tensor:
    """log p of all classes, (N, S + J): a softmax for each node, multiplied along the paths.

    Args:
        rows, bias: of all nodes, (I + S, H) and (I + S,). log_mass: (N, S). of_slots: scores and masses, (N, J).
    """
    forbidden = log_mass.isneginf() if of_slots is None else torch.cat([log_mass, of_slots], dim=1).isneginf()
    log_mass = log_mass.clamp_min(LEAST)  # e to this power is 0, and no gradient is NaN
    mass = [log_mass[:, tree.order[begin:end]].logsumexp(1) for begin, end in tree.span.tolist()]
    columns: dict[int, Tensor] = {0: hidden.new_zeros(len(hidden))}
    slots: list[Tensor] = []
    for node in range(tree.internal):
        children = tree.child[tree.first[node] : tree.first[node + 1]].tolist()
        children = [child for child in children if tree.span[child, 0] < tree.span[child, 1]]
        if not children:
            continue
        scores = [hidden @ rows[child] + bias[child] + mass[child] for child in children]
        if node == 0 and of_slots is not None:
            scores += list(of_slots.clamp_min(LEAST).unbind(1))
        odds = torch.stack(scores, dim=1).log_softmax(1).unbind(1)
        columns |= {child: columns[node] + odd for child, odd in zip(children, odds, strict=False)}
        slots = list(odds[len(children) :]) if node == 0 else slots
    found = torch.stack([columns[tree.internal + leaf] for leaf in range(tree.leaves)] + slots, dim=1)
    return found.masked_fill(forbidden, float("-inf"))


@dataclass
class TreeCase:
    """A layer of S signatures, one word each, over a random tree, and N hidden states."""

    rng: np.random.Generator
    tree: Tree
    output: LogLinearOutput
    layer: TreeLayer
    hidden: Tensor
    log_mass: Tensor  # (S,)

    @classmethod
    def of(cls, seed: int, rows: str = "free", leaves: int = 12, positions: int = 7, flat: bool = False) -> TreeCase:
        rng = np.random.default_rng(seed)
        tree = flat_tree(leaves) if flat else any_tree(rng, leaves, int(rng.integers(2, 5)))
        table = FeatureTable.from_rows([{f"A:{i % 5}": 1.0, f"B:{i}": 0.5} for i in range(leaves)])
        output = LogLinearOutput(table, torch.arange(leaves), H).double()
        log_mass = torch.from_numpy(rng.standard_normal(leaves) * 2)
        layer = TreeLayer(tree, H, log_mass, rows).double()
        for parameter in (*output.parameters(), *layer.parameters()):
            parameter.data = torch.from_numpy(rng.standard_normal(parameter.shape))
        hidden = torch.from_numpy(rng.standard_normal((positions, H))).requires_grad_()
        return cls(rng, tree, output, layer, hidden, log_mass)

    def class_weights(self, groups: int) -> Tensor:
        """(G, S), some of them −inf."""
        class_weights = torch.from_numpy(self.rng.standard_normal((groups, self.tree.leaves)) * 2)
        forbidden = torch.from_numpy(self.rng.random(class_weights.shape) < 0.3)
        return class_weights.masked_fill(forbidden, float("-inf"))

    def all_rows(self) -> tuple[Tensor, Tensor]:
        """Of all nodes, by the definition."""
        rows, bias = self.output.composed()
        if self.layer.rows == "free":
            return torch.cat([self.layer.node_rows, rows]), torch.cat([self.layer.node_bias, bias])
        share = self.log_mass.exp()
        node_rows, of_bias = [], []
        for begin, end in self.tree.span[: self.tree.internal].tolist():
            below = torch.from_numpy(self.tree.order[begin:end].copy())
            weights = (share[below] / share[below].sum().clamp_min(1e-300)).float().double()
            node_rows.append(weights @ rows[below])
            of_bias.append(weights @ bias[below])
        return torch.cat([torch.stack(node_rows), rows]), torch.cat([torch.stack(of_bias), bias])

    def normal(self, *shape: int) -> Tensor:
        return torch.from_numpy(self.rng.standard_normal(shape))

    def parameters(self) -> list[Tensor]:
        return [self.hidden, *self.output.parameters(), *self.layer.parameters()]

    def expected(self, log_mass: Tensor, of_slots: Tensor | None = None) -> Tensor:
        each = log_mass.repeat_interleave(len(self.hidden) // len(log_mass), 0)
        return log_probs_by_paths(self.tree, self.hidden, *self.all_rows(), each, of_slots)

    def classes(self, many: int = 0) -> Tensor:
        return torch.from_numpy(self.rng.integers(self.tree.leaves + many, size=len(self.hidden)))

    def made(self, composed: bool) -> TreeOutput:
        return TreeOutput(self.output, self.layer, self.output.composed() if composed else None)


def corrections_of(case: TreeCase, kind: int, largest: float = 3.0) -> ClassWeights:
    """Random ones: entries of one place, removed classes, and rows that forbid all others."""
    many = len(case.hidden)
    shared = case.class_weights(1)
    shared[0, 0] = 0.0
    known = torch.from_numpy(case.rng.permutation(shared.isfinite()[0].nonzero()[:, 0].numpy()))
    size = (0, 30, 60)[kind % 3]
    rows = torch.from_numpy(np.sort(case.rng.integers(many, size=size)))
    classes = known[torch.from_numpy(case.rng.integers(len(known), size=size))]
    added = torch.from_numpy(case.rng.standard_normal(size) * largest)
    added[case.rng.random(size) < 0.2] = float("-inf")
    only = None if kind % 2 else torch.from_numpy(case.rng.random(many) < 0.5)
    constant = torch.from_numpy(case.rng.standard_normal(many))
    return sparse_masses(shared, rows, classes, added.requires_grad_(), only, constant.requires_grad_())
