"""Readers of words: a row of SOURCES for each option with files or analysers.

A new reader needs a module, a row, and an option of the same name in LexiconOptions. Its files are then origins of a
prior, pieces get its features, and tests/lexicon/test_sources.py checks its pages. Another package announces a reader
as an entry point instead, for `--lexicon NAME:FILE` (registry.py).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from fairseq_llrnn.lexicon.lexicon_table import ReadRequest, Row
from fairseq_llrnn.lexicon.readers.apertium import apertium_rows
from fairseq_llrnn.lexicon.readers.conllu import conllu_rows
from fairseq_llrnn.lexicon.readers.hunspell import hunspell_rows
from fairseq_llrnn.lexicon.readers.tsv import lexicon_rows
from fairseq_llrnn.lexicon.readers.unimorph import unimorph_rows
from fairseq_llrnn.lexicon.readers.values import values_rows


class Source(NamedTuple):
    """A reader: it yields the rows of a place with their counts."""

    read: Callable[[str, ReadRequest], Iterator[tuple[Row, int]]]
    has_features: bool = True  # or lemmas alone
    is_lookup: bool = False  # whether it looks up the words of the text, instead of reading all words of a file


# further sources: packages (languages/) and morphemes (segments.py)
SOURCES: Mapping[str, Source] = {
    "conllu": Source(conllu_rows),
    "lexicon": Source(lexicon_rows),
    "unimorph": Source(unimorph_rows),
    "hunspell": Source(hunspell_rows, has_features=False, is_lookup=True),
    "apertium": Source(apertium_rows, is_lookup=True),
    "values": Source(values_rows),
}
