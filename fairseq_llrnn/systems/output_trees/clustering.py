"""Hierarchical clustering of vectors: classes whose vectors are near have much of their path in common.

The baseline of Jernite (2018, §3.5, Table 3.3), after Mnih & Hinton (2008), *A scalable hierarchical distributed
language model*. The classes of a node are split among its M children by k-means (Lloyd 1982), whose last step gives
every child as many: the nearest pair of class and centre first, as long as the child has room.
"""

from __future__ import annotations

import numpy as np

from fairseq_llrnn.systems.output_trees.even import cut_evenly
from fairseq_llrnn.systems.output_trees.limits import check_room
from fairseq_llrnn.systems.output_trees.matching import matched
from fairseq_llrnn.systems.output_trees.tree import Tree

STEPS = 10  # of k-means


def clustering_tree(vectors: np.ndarray, arity: int, depth: int | None = None, seed: int = 1) -> Tree:
    """A balanced tree, as flat as its arity allows, the same for the same seed.

    Args:
        vectors: (S, H) of the classes, finite.
        depth: the most levels; None: any number.

    Raises:
        OptionError: an arity below 2, a depth without room.
    """
    check_room(len(vectors), arity, depth)
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise ValueError(f"vectors: expected finite ones of all classes, (S, H), found {vectors.shape}, or others")
    random = np.random.default_rng(seed)
    vectors = vectors.astype(np.float64)
    parts, done = [np.arange(len(vectors))], []
    while parts:
        part = parts.pop()
        if len(part) <= arity:
            done.append(part)
        else:
            parts += reversed(_split(part, vectors[part], arity, random))
    return cut_evenly(np.concatenate(done), arity)


def _split(part: np.ndarray, vectors: np.ndarray, arity: int, random: np.random.Generator) -> list[np.ndarray]:
    """`arity` parts of the sizes that `cut_evenly` makes."""
    centres = vectors[np.sort(random.choice(len(part), arity, replace=False))]
    for _ in range(STEPS):
        nearest = _nearness(vectors, centres).argmax(1)
        counts = np.bincount(nearest, minlength=arity)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, vectors)
        centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
    sizes = len(part) // arity + (np.arange(arity) < len(part) % arity)
    child = matched(_nearness(vectors, centres), np.zeros(len(part), dtype=np.int64), sizes[None])
    return [part[child == j] for j in range(arity)]


def _nearness(vectors: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """(n, M) minus the squared distance to each centre."""
    return 2 * vectors @ centres.T - (centres**2).sum(1) - (vectors**2).sum(1)[:, None]
