"""How well a node tells classes apart, and so which child a class is to have (Jernite 2018, §3.3).

At node n, q_i is the share of class i among the examples that reach n, p_j|i the mean probability that they give to
child j, and p_j = Σ_i q_i p_j|i. With M children

    J_n  =  2/M Σ_i q_i Σ_j |p_j − p_j|i|                                             (3.10)
    ∂J_n / ∂ log p_j|i  =  2/M q_i (1 − q_i) p_j|i sign(p_j|i − p_j)                  (3.13)

0 ≤ J_n ≤ 4/M (1 − 1/M), and the upper bound is reached only by a node that sends each class to one child, and as many
examples to each child (Lemmas 3.2 and 3.3). (3.13) is the derivative of the i-th term. Through p_j, log p_j|i moves the
others, too, by −2/M q_i p_j|i Σ_{i' ≠ i} q_i' sign(p_j|i' − p_j); the thesis leaves that out.

Below, O nodes are worked on at once: a row is of one class at one node, its owner.

Which child a class is to have says one weight per pair, so that one matching decides all. In this order,

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

ROUNDING = 1e-6  # nearer to p_j a p_j|i, whose sums are float32, has no sign
LARGEST_RATIO = 4.0  # so that weights are from −1 to 1


def choice_weights(counts: np.ndarray, means: np.ndarray, owner: np.ndarray, owners: int) -> np.ndarray:
    """(n, M) the derivatives (3.13).

    Args:
        counts: (n,) examples of a class that reached its owner. means: (n, M) p_j|i. owner: (n,). owners: O.
    """
    share, mean = _shares(counts, means, owner, owners)
    scale = 2 / means.shape[1] * share * (1 - share)
    apart = means - mean[owner]
    apart[np.abs(apart) <= ROUNDING * mean[owner]] = 0
    return scale[:, None] * means * np.sign(apart)


def log_ratio_weights(counts: np.ndarray, means: np.ndarray, owner: np.ndarray, owners: int) -> np.ndarray:
    """(n, M) 2/M q_i (1 − q_i) log(p_j|i / p_j), cut off at ±LARGEST_RATIO; arguments as of `choice_weights`.

    The derivative in p_j|i itself, 2/M q_i (1 − q_i) sign(p_j|i − p_j), is the same for all children that a class
    prefers. These weights have its signs, and rank such children by how much they are preferred, and not, as (3.13), by
    p_j|i, which is largest for the child with the greatest mass.
    """
    share, mean = _shares(counts, means, owner, owners)
    scale = 2 / means.shape[1] * share * (1 - share)
    floor = np.finfo(np.float32).tiny
    ratio = np.log(np.maximum(means, floor)) - np.log(np.maximum(mean, floor))[owner]
    ratio[np.abs(ratio) <= ROUNDING] = 0
    return scale[:, None] * ratio.clip(-LARGEST_RATIO, LARGEST_RATIO)


def _shares(counts: np.ndarray, means: np.ndarray, owner: np.ndarray, owners: int) -> tuple[np.ndarray, np.ndarray]:
    """q_i (n,) and p_j (O, M)."""
    share = counts / np.maximum(np.bincount(owner, counts, owners), 1)[owner]
    order = np.argsort(owner, kind="stable")
    begin = np.flatnonzero(np.diff(owner[order], prepend=-1))
    mean = np.zeros((owners, means.shape[1]))
    if len(order):
        mean[owner[order[begin]]] = np.add.reduceat(share[order, None] * means[order], begin)
    return share, mean


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
