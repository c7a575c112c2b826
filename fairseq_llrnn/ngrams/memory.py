"""Whether a model of n-grams and those without each fold go into memory: said before hours of work are lost.

Sizes: E n-grams, K folds.
"""

from __future__ import annotations

import os

from fairseq_llrnn.errors import DataError

# An arc of the automaton: token, state after it, weight, 8 bytes each; once in the model of its fold, once in the whole
BYTES_PER_NGRAM = 48


def physical_memory() -> int:
    """Bytes of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_room(order: int, ngrams: int, folds: int) -> None:
    """Raise DataError where what is to come of a model has no room on this machine.

    Args:
        ngrams: E of the whole text. folds: K.
    """
    needed, there = BYTES_PER_NGRAM * ngrams * (1 + folds), physical_memory()
    if needed > there:
        beside = f" and of {folds} folds" if folds else ""
        raise DataError(
            f"ngram:{order}: {ngrams:,} n-grams{beside} need {needed / 1e9:,.1f} GB, found a machine with "
            f"{there / 1e9:,.1f} GB; leave those out that come seldom (--ngram-prune {' '.join('01345'[:order])}), say "
            "--folds 0 if the network is trained on another text, or give a smaller ARPA file as ngram:FILE"
        )
