"""Readers that fill a `Lexicon`: treebanks, word lists, a morphological analyser; and of words cut into segments."""

from fairseq_llrnn.lexicon.readers.apertium import read_apertium, read_apertium_lemmas
from fairseq_llrnn.lexicon.readers.conllu import (
    Token,
    in_one_word,
    iter_conllu_sentences,
    iter_conllu_words,
    read_conllu,
    surface_words,
)
from fairseq_llrnn.lexicon.readers.segmentations import read_segmentations
from fairseq_llrnn.lexicon.readers.tsv import read_tsv_lexicon
from fairseq_llrnn.lexicon.readers.ud_folder import treebank
from fairseq_llrnn.lexicon.readers.unimorph import read_unimorph
from fairseq_llrnn.lexicon.readers.values import read_values

__all__ = [
    "Token",
    "in_one_word",
    "iter_conllu_sentences",
    "iter_conllu_words",
    "read_apertium",
    "read_apertium_lemmas",
    "read_conllu",
    "read_segmentations",
    "read_tsv_lexicon",
    "read_unimorph",
    "read_values",
    "surface_words",
    "treebank",
]
