"""Items take places one after the other, the pair of item and group with the greatest weight first.

So Algorithms 3.2 and 3.3 of Jernite (2018) assign labels to children: of all pairs (i, j) of an item without a place
and a group with room, the heaviest one is taken, of equal ones that with the smallest i, then j. Both sides rank pairs
by the same order, so there is one stable matching (Gale & Shapley 1962, *College admissions and the stability of
marriage*), and the loop finds it: a pair that blocked its result would have been taken first. Deferred acceptance finds
the same in few rounds over whole arrays: items ask the best group that has not refused them; groups keep the best.

Items may be split among several owners, each of which has G groups of its own.
"""

from __future__ import annotations

import numpy as np


def matched(weights: np.ndarray, owner: np.ndarray, room: np.ndarray) -> np.ndarray:
    """The group of every item.

    Args:
        weights: (n, G), above −inf; of an item and each group of its owner. Not changed.
        owner: (n,) from 0 to O − 1.
        room: (O, G) how many items a group holds; the groups of an owner hold at least all of its items.

    Returns:
        (n,) from 0 to G − 1.
    """
    number, groups = weights.shape
    taken = np.zeros(number, dtype=np.int64)
    if not number:
        return taken
    left = weights.copy()  # −inf: refused
    asking = np.arange(number)
    best = np.empty(number)
    flat_room = room.reshape(-1)
    counts = np.zeros(room.size, dtype=np.int64)
    place = owner * groups
    while len(asking):
        choice = left[asking].argmax(1)  # the first of equal ones
        taken[asking], best[asking] = choice, left[asking, choice]
        asked = place[asking] + choice
        counts += np.bincount(asked, minlength=len(counts))
        is_over = counts > flat_room
        if not is_over.any():
            break
        if not np.isfinite(best[asking]).all():
            raise ValueError("room: expected places for all items of an owner, found fewer")
        rivals = np.flatnonzero(is_over[place + taken])  # ascending, so that equal weights stay in order
        rivals = rivals[np.lexsort((-best[rivals], place[rivals] + taken[rivals]))]
        group = place[rivals] + taken[rivals]
        first = np.concatenate([[True], group[1:] != group[:-1]])
        rank = np.arange(len(rivals)) - np.flatnonzero(first)[np.cumsum(first) - 1]
        asking = np.sort(rivals[rank >= flat_room[group]])
        left[asking, taken[asking]] = -np.inf
        counts = np.minimum(counts, flat_room)
    return taken
