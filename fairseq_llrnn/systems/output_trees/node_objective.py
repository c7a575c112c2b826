"""How well a node tells classes apart, and which choices of its classes improve that (Jernite 2018, §3.3).

At node n, q_i is the share of class i among the examples that reach n, p_j|i the mean probability that they give to
child j, and p_j = Σ_i q_i p_j|i. With M children

    J_n  =  2/M Σ_i q_i Σ_j |p_j − p_j|i|                                             (3.10)
    ∂J_n / ∂ log p_j|i  =  2/M q_i (1 − q_i) p_j|i sign(p_j|i − p_j)                  (3.13)

0 ≤ J_n ≤ 4/M (1 − 1/M), and the upper bound is reached only by a node that sends each class to one child, and as many
examples to each child (Lemmas 3.2 and 3.3). (3.13) is the derivative of the i-th term. Through p_j, log p_j|i moves the
others, too, by −2/M q_i p_j|i Σ_{i' ≠ i} q_i' sign(p_j|i' − p_j); the thesis leaves that out.

Below, O nodes are worked on at once: a row is of one class at one node, its owner.
"""

from __future__ import annotations

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
