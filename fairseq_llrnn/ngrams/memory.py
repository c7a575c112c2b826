"""Whether a model of n-grams and those without each fold go into memory: said before hours of work are lost.

Sizes: E n-grams, K folds.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path

from fairseq_llrnn.errors import DataError

# An arc of the automaton: token, state after it, weight, 8 bytes each
BYTES_PER_NGRAM = 24
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # versions 2 and 1


def memory_limit() -> int:
    """Bytes that this process may have: the fewest of its machine, its container and `ulimit`."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # another system, or the word `max`
            limits.append(int(Path(path).read_text(encoding="ascii")))
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        limits += [] if soft == resource.RLIM_INFINITY else [soft]
    return min(limits)


def check_room(order: int, ngrams: int, folds: int) -> None:
    """Raise DataError where what is to come of a model has no room: of the whole text, of the folds, and all joined.

    Args:
        ngrams: E of the whole text. folds: K.
    """
    needed, there = BYTES_PER_NGRAM * ngrams * (1 + 2 * folds), memory_limit()
    if needed > there:
        beside = f" and of {folds} folds" if folds else ""
        raise DataError(
            f"ngram:{order}: {ngrams:,} n-grams{beside} need {needed / 1e9:,.1f} GB, found {there / 1e9:,.1f} GB that "
            f"this process may have; leave those out that come seldom, as in ngram({order}, "
            f"prune=[{', '.join('01345'[:order])}]), say folds=0 if the network is trained on another text, or give a "
            "smaller ARPA file as ngram:FILE"
        )
