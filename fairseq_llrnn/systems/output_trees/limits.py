"""What can be asked of a tree: its arity, its depth, the masses of its leaves."""

from __future__ import annotations

import numpy as np

from fairseq_llrnn.errors import OptionError


def check_arity(arity: int) -> None:
    """Raise OptionError where a node could have only one child."""
    if arity < 2:
        raise OptionError(f"arity of the tree: expected at least 2 children of a node, found {arity}; give more")


def least_depth(leaves: int, arity: int) -> int:
    """Of a tree of this arity that has room for so many leaves."""
    depth = 1
    while arity**depth < leaves:
        depth += 1
    return depth


def least_arity(leaves: int, depth: int) -> int:
    """Of a tree of this depth that has room for so many leaves."""
    arity = max(2, int(leaves ** (1 / depth)))  # rounded: one below, as it may be, or right
    while arity**depth < leaves:
        arity += 1
    return arity


def check_room(leaves: int, arity: int, depth: int | None) -> None:
    """Refuse an arity below 2, and a depth, if one is given, in which there is no room for the leaves.

    Raises:
        OptionError: with how many leaves there is room for, and what would do.
    """
    check_arity(arity)
    if depth is not None and (depth < 1 or arity**depth < leaves):
        room = f"{arity:,}^{depth} = {arity**depth:,}" if depth >= 1 else "no"
        raise OptionError(
            f"depth of the tree: expected room for {leaves:,} leaves, found {room} in a tree of arity {arity:,} and "
            f"depth {depth}; give a depth of {least_depth(leaves, arity)}"
            + (f", or an arity of {least_arity(leaves, depth):,}" if depth >= 1 else "")
        )


def check_masses(masses: np.ndarray) -> None:
    """Raise ValueError unless they are one mass, finite and not negative, for each of at least one leaf, (S,)."""
    if masses.ndim != 1 or len(masses) < 1 or not np.isfinite(masses).all() or (masses < 0).any():
        raise ValueError(f"masses: expected a row of finite numbers from 0 on, found {masses.shape}, or others")
