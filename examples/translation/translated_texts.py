"""Inputs of scripts about lexical translations: a text and its translation."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import check_as_long, iter_lines

Pairs = list[tuple[list[str], list[str]]]


def read_pairs(source: str, reference: str) -> Pairs:
    """Return sentences and their translations. Raises DataError if there are none, or if one text is longer."""
    sides = [[line.split() for _, line in iter_lines(path)] for path in (source, reference)]
    check_as_long(source, reference, *map(len, sides))
    if not sides[0]:
        raise DataError(f"{source}: expected sentences, found none; give another text")
    return list(zip(*sides, strict=True))
