"""The unigram of a language: how frequent words are in the texts of others (lexicon/languages), `language:uk`.

It knows words that the counted text lacks. What is no word (punctuation, the end of a sentence, `<unk>`) keeps the
weight that the counted unigram gives it, because lists of words lack it; the words share the rest:

    b(x) = U(x)                                       x without a letter or digit, or special
    b(x) = (1 − Σ U(such x)) · f(x) / Σ f(words)      f: frequency; of a word that the list lacks, the rarest one's

Sizes: V words of the dictionary.
"""

from __future__ import annotations

import numpy as np

from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.lexicon.languages.findings import frequency_source

LANGUAGE = "language"  # the kind of background: `language` or `language:CODE`


def language_weights(words: WordList, unigram: np.ndarray, allowed: np.ndarray, code: str) -> np.ndarray:
    """Probabilities (V,), float64, summing to one over the allowed words.

    Args:
        unigram: (V,) probabilities U, of the counted text. allowed: (V,) bool.

    Raises:
        OptionError: nobody knows the frequencies of this language, or the package is not installed.
    """
    source = frequency_source(code, f"--background {LANGUAGE}:{code}")
    spelt = np.array([any(map(str.isalnum, word)) for word in words.symbols]) & allowed & ~words.specials
    weights = np.where(allowed & ~spelt, unigram, 0.0)
    places = np.flatnonzero(spelt)
    if len(places):
        found = source.frequencies([words.symbols[i] for i in places], code)
        found = np.maximum(found, source.least(code))
        weights[places] = (1.0 - weights.sum()) * found / found.sum()
    return weights / weights.sum()
