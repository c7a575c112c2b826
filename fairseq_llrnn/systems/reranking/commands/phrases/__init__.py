"""Commands `llrnn phrases …`: phrase tables in the format of Moses, extracted from a bitext, scored by models."""

import sys
from collections.abc import Iterable
from pathlib import Path

from fairseq_llrnn.cli.places import STDOUT
from fairseq_llrnn.files.atomic_write import writing
from fairseq_llrnn.systems.reranking.phrase_table import PhrasePair, write_phrase_pairs, write_phrase_table


def write_to(out: str, pairs: Iterable[PhrasePair]) -> int:
    """Write a table to --out (`-`: stdout), and return its number of pairs. Raises DataError."""
    if out == STDOUT:
        return write_phrase_pairs(sys.stdout, pairs)
    with writing(out, "result"):
        return write_phrase_table(Path(out), pairs)
