"""AssignLabels as Jernite (2018) prints it, one pair of label and child after the other: Algorithms 3.2 and 3.3.

Statistics are dictionaries: sums[label, node] is a list of M numbers, counts[label, node] a number of examples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from llrnn_research.output_trees.reassignment import DEAL, KEEP

TINY = 1.1754943508222875e-38  # the smallest positive float32 of full precision


def node_weights(
    labels: Sequence[int], sums: Mapping[int, Sequence[float]], counts: Mapping[int, int], kept: Mapping[int, int],
    arity: int, ratios: bool = False,
) -> dict[tuple[int, int], float]:  # fmt: skip
    """(3.13) for labels that the node has seen; the others keep their child, or are dealt out in turn.

    Args:
        sums, counts: of the labels seen at this node. kept: child of those that were below it.
        ratios: whether weights are 2/M q (1 − q) log(p_j|i / p_j), instead.
    """
    total = sum(counts.get(i, 0) for i in labels)
    mean = [sum(sums[i][j] for i in labels if counts.get(i, 0)) / max(total, 1) for j in range(arity)]
    weights = {}
    turn = 0
    for i in labels:
        q = counts.get(i, 0) / max(total, 1)
        p = [value / counts[i] for value in sums[i]] if q else [0.0] * arity
        sign = [(p[j] > mean[j] * (1 + 1e-6)) - (p[j] < mean[j] * (1 - 1e-6)) for j in range(arity)]
        own = [2 / arity * q * (1 - q) * p[j] * sign[j] for j in range(arity)]
        if ratios:
            logs = [math.log(max(p[j], TINY)) - math.log(max(mean[j], TINY)) for j in range(arity)]
            own = [2 / arity * q * (1 - q) * (abs(x) > 1e-6) * min(4.0, max(-4.0, x)) for x in logs]
        if not any(own):
            own = [DEAL - ((j - turn) % arity) / arity for j in range(arity)]
            turn += 1
            if i in kept:
                own[kept[i]] = KEEP
        weights.update({(i, j): own[j] for j in range(arity)})
    return weights


def heaviest(weights: Mapping[tuple[int, int], float], labels: set[int], full: set[int]) -> tuple[int, int]:
    """The pair that is taken next; of equal ones the one with the smallest label, then child."""
    return min(((-w, i, j) for (i, j), w in weights.items() if i in labels and j not in full))[1:]


def assign_to_depth(
    weights: Mapping[tuple[int, int], float], labels: Sequence[int], arity: int, most: int
) -> list[list[int]]:
    """The loop of Algorithm 3.3 at one node, whose children hold at most so many labels."""
    unassigned, full = set(labels), set()
    assigned: list[list[int]] = [[] for _ in range(arity)]
    while unassigned:
        i, j = heaviest(weights, unassigned, full)
        assigned[j].append(i)
        unassigned.remove(i)
        if len(assigned[j]) == most:
            full.add(j)
    return [sorted(labels) for labels in assigned]


def assign_freely(weights: Mapping[tuple[int, int], float], labels: Sequence[int], arity: int) -> list[list[int]]:
    """The loop of Algorithm 3.2 at one node: every child gets a number of labels that is ≡ 1 modulo M − 1."""
    unassigned, full = set(labels), set()
    assigned: list[list[int]] = [[] for _ in range(arity)]
    groups = (len(labels) - arity) // (arity - 1)
    while unassigned:
        if not groups:
            full = {j for j, own in enumerate(assigned) if own and (len(own) - 1) % (arity - 1) == 0}
        i, j = heaviest(weights, unassigned, full)
        if assigned[j] and (len(assigned[j]) - 1) % (arity - 1) == 0:
            groups -= 1
        assigned[j].append(i)
        unassigned.remove(i)
    return [sorted(labels) for labels in assigned]
