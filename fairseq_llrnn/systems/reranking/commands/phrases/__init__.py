"""Commands `llrnn phrases …`: phrase tables in the format of Moses, extracted from a bitext, scored by models."""

from collections.abc import Iterable

from fairseq_llrnn.cli.places import text_output
from fairseq_llrnn.systems.reranking.phrase_table import PhrasePair, write_phrase_table


def write_to(out: str, pairs: Iterable[PhrasePair]) -> int:
    """Write a table to --out (`-`: stdout), and return its number of pairs. Raises DataError."""
    with text_output(out) as file:
        return write_phrase_table(file, pairs)
