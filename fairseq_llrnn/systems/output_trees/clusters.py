"""Two levels: a cluster, then a class of it (Jernite 2018, §2.3, eq. 2.6; Goodman 2001, *Classes for fast maximum
entropy training*).

Classes are sorted by mass and cut into C clusters of equal size. Those of equal mass, 1/C, would cost as many scores,
C + Σ_c size_c / C = C + S/C, which is least at C = √S. But of clusters of equal size none is large, which bounds what a
search pays that looks into one; and few of them have most of the mass, so that a batch visits fewer.
"""

from __future__ import annotations

import math

import numpy as np

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.systems.output_trees.limits import check_masses
from fairseq_llrnn.systems.output_trees.tree import NONE, Tree


def cluster_tree(masses: np.ndarray, number: int | None = None) -> Tree:
    """Clusters of classes of similar mass, the heaviest ones first.

    Args:
        masses: (S,) of the classes, in any unit.
        number: C; None: √S, rounded up.

    Raises:
        OptionError: fewer than 1 cluster or more than S.
    """
    check_masses(masses)
    size = len(masses)
    number = math.isqrt(size - 1) + 1 if number is None else number
    if not 1 <= number <= size:
        raise OptionError(f"number of clusters: expected 1 to {size:,}, one per class, found {number:,}; give another")
    cluster = np.empty(size, dtype=np.int64)
    cluster[np.argsort(-masses, kind="stable")] = np.arange(size) * number // size
    return Tree.from_parents(np.concatenate([[NONE], np.zeros(number, dtype=np.int64), 1 + cluster]), size)
