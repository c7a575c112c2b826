"""Readers of words: each yields the rows of a place, and has the name of the option that gives the place."""

from collections.abc import Callable, Iterator, Mapping

from fairseq_llrnn.lexicon.readers.apertium import apertium_rows
from fairseq_llrnn.lexicon.readers.conllu import conllu_rows
from fairseq_llrnn.lexicon.readers.hunspell import hunspell_rows
from fairseq_llrnn.lexicon.readers.tsv import lexicon_rows
from fairseq_llrnn.lexicon.readers.unimorph import unimorph_rows
from fairseq_llrnn.lexicon.readers.values import values_rows
from fairseq_llrnn.lexicon.table import ReadRequest, Row

# further sources: packages (languages/), morphemes (segments.py) and readers of other packages (registry.py)
READERS: Mapping[str, Callable[[str, ReadRequest], Iterator[tuple[Row, int]]]] = {
    "conllu": conllu_rows,
    "lexicon": lexicon_rows,
    "unimorph": unimorph_rows,
    "hunspell": hunspell_rows,
    "apertium": apertium_rows,
    "values": values_rows,
}
ANSWERING = ("hunspell", "apertium")  # readers that only look up the words of the text
