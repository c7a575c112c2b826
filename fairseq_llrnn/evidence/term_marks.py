"""Source tokens that carry terms: ids beyond all others, which say the token and which terms are asked for at it.

A sentence's terms travel inside its source ids, so that whatever sorts, splits or repeats sentences cannot part them:

    id  =  (mark + 1) · 2³²  +  the token's own id

A mark is a number of a `TermTable` (evidence/term_table.py). Who reads a source token asks for its own id (`plain`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

SHIFT = 32
OWN = (1 << SHIFT) - 1

Ids = TypeVar("Ids", "Tensor", np.ndarray, int)


def plain(ids: Ids) -> Ids:
    """The tokens' own ids."""
    return ids & OWN


def marks_of(ids: Ids) -> Ids:
    """Their marks, −1 for tokens that carry none."""
    return (ids >> SHIFT) - 1


def marked(token: int, mark: int) -> int:
    """A token that carries a mark."""
    return ((mark + 1) << SHIFT) | token
