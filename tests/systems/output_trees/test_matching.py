"""Matching in rounds against the loop that takes one pair after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.systems.output_trees.builders import matched


def one_by_one(weights: np.ndarray, room: np.ndarray) -> list[int]:
    """The loop of Algorithm 3.3: the heaviest pair first, of equal ones that with the smallest item, then group."""
    left = {i: row for i, row in enumerate(weights.tolist())}
    room, taken = room.tolist(), [-1] * len(weights)
    while left:
        _, i, j = min((-row[j], i, j) for i, row in left.items() for j in range(len(row)) if room[j])
        taken[i] = j
        room[j] -= 1
        del left[i]
    return taken


@settings(max_examples=60)
@given(st.integers(0, 14), st.integers(1, 4), st.integers(1, 3), st.integers(1, 5), st.integers(0, 999))
def test_rounds_take_what_the_loop_takes(number: int, groups: int, owners: int, values: int, seed: int) -> None:
    """Few different values: many pairs have equal weights."""
    random = np.random.default_rng(seed)
    weights = random.integers(0, values, size=(number, groups)).astype(float)
    owner = random.integers(0, owners, size=number)
    room = np.zeros((owners, groups), dtype=np.int64)
    for o in owner:  # as many places as items, then some more
        room[o, random.integers(groups)] += 1
    room += random.integers(0, 2, size=room.shape)
    before = weights.copy()
    found = matched(weights, owner, room)
    assert (weights == before).all()
    for o in range(owners):
        assert found[owner == o].tolist() == one_by_one(weights[owner == o], room[o])


def test_too_little_room_is_found() -> None:
    with pytest.raises(ValueError, match="room"):
        matched(np.ones((3, 2)), np.zeros(3, dtype=int), np.ones((1, 2), dtype=int))
