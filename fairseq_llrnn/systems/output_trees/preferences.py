"""Which child of its node a class is to have: one weight per pair, so that one matching decides all.

In this order,

1. a class that has been seen at the node has the weights of its choices, (3.13) or of the same signs;
2. one that has not, but was below this node before, prefers the child that it had;
3. all others are dealt out in turn.

The thesis starts its counts at one, with equal probabilities for all children, so that its classes of the second and
third kind take the child that is chosen least. Our nodes know masses before they are trained, so equal probabilities
would say something of a class that nothing is known of.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairseq_llrnn.systems.output_trees.node_objective import choice_weights

KEEP, DEAL = -2.0, -3.0  # below all weights of the first kind, which are from −1 to 1


Weigh = Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]


def preferences(
    sums: np.ndarray,
    counts: np.ndarray,
    place: np.ndarray,
    owner: np.ndarray,
    owners: int,
    weigh: Weigh = choice_weights,
) -> np.ndarray:
    """(n, M) weights, from more than DEAL − 1 to 1.

    Args:
        sums: (n, M) of the probabilities of the owner's children, over the examples of a class.
        counts: (n,) number of these examples.
        place: (n,) the child that a class had, or −1, if it was not below its owner.
        owner: (n,) node of a class, from 0 to O − 1. owners: O.
        weigh: what gives the weights of the first kind.
    """
    means = sums / np.maximum(counts, 1)[:, None]
    weights = weigh(counts, means, owner, owners)
    unknown = np.flatnonzero((weights == 0).all(1))  # a class without rivals, too, keeps its place
    weights[unknown] = DEAL - _in_turn(owner[unknown], sums.shape[1])
    kept = unknown[place[unknown] >= 0]
    weights[kept, place[kept]] = KEEP
    return weights


def _in_turn(owner: np.ndarray, children: int) -> np.ndarray:
    """(n, M) from 0 to less than 1: the k-th class of an owner prefers child k modulo M, then those behind it."""
    return (np.arange(children) - rank_among_equal(owner)[:, None]) % children / children


def rank_among_equal(keys: np.ndarray) -> np.ndarray:
    """(n,) how many equal keys, whole numbers from 0 on, are before one."""
    order = np.argsort(keys, kind="stable")
    begin = np.flatnonzero(np.diff(keys[order], prepend=-1))
    rank = np.empty(len(keys), dtype=np.int64)
    rank[order] = np.arange(len(keys)) - np.repeat(begin, np.diff(begin, append=len(keys)))
    return rank
