"""A prior over a dozen words, built as `llrnn prior` builds it, for tests of the head."""

import numpy as np

from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.prior.plain import plain_prior
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe

SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>", "le", "la", "maison", "fenêtre", "chat", "12", "chien", "vache")
COUNTS = np.array([0, 0, 5, 1, 9, 8, 3, 2, 2, 1, 1, 1])
FEMININE, MASCULINE = ("maison", "fenêtre", "vache"), ("chat", "chien")


def small_lexicon() -> Lexicon:
    lexicon = Lexicon()
    lexicon.add("la", ["POS:DET", "Gender:Fem"])
    lexicon.add("le", ["POS:DET", "Gender:Masc"])
    for words, gender in ((FEMININE, "Fem"), (MASCULINE, "Masc")):
        for word in words:
            lexicon.add(word, ["POS:NOUN", f"Gender:{gender}"])
    return lexicon


def make_prior(settings: Recipe | None = None) -> Prior:
    """V = 12 words; two of them have an identity, unless the settings say otherwise."""
    words = WordList(SYMBOLS, COUNTS)
    return plain_prior(words, COUNTS, small_lexicon(), settings or Recipe(top_words=2))[0]
