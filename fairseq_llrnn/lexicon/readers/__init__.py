"""Readers of words: each is asked for the rows of a place, and is called as the option that names the place."""

from collections.abc import Callable, Iterator, Mapping

from fairseq_llrnn.lexicon.readers.apertium import apertium_rows
from fairseq_llrnn.lexicon.readers.conllu import conllu_rows
from fairseq_llrnn.lexicon.readers.hunspell import hunspell_rows
from fairseq_llrnn.lexicon.readers.tsv import lexicon_rows
from fairseq_llrnn.lexicon.readers.unimorph import unimorph_rows
from fairseq_llrnn.lexicon.readers.values import values_rows
from fairseq_llrnn.lexicon.table import ReadRequest, Row

# Others are packages (languages/), morphemes (segments.py) and readers of other people (registry.py).
READERS: Mapping[str, Callable[[str, ReadRequest], Iterator[tuple[Row, int]]]] = {
    "conllu": conllu_rows,
    "lexicon": lexicon_rows,
    "unimorph": unimorph_rows,
    "hunspell": hunspell_rows,
    "apertium": apertium_rows,
    "values": values_rows,
}
ANSWERING = ("hunspell", "apertium")  # which give only what has to do with the words that are asked for
