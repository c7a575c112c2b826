"""A prior over a dozen words, built as `llrnn prior` builds it, for tests of the head."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.prior.base_prior import plain_prior
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import OpenOptions, Recipe

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


def open_prior(kind: str = "characters") -> Prior:
    """The same words with an open vocabulary."""
    counts = np.array([0, 0, 9, 1, *range(9, 1, -1)])
    return build_prior(SYMBOLS, Recipe(counts=counts, top_words=2, open_vocabulary=OpenOptions(kind, types=1)))


# ---- heads over them ------------------------------------------------------------------------------------------------

H, B, T = 5, 3, 4
TARGETS = torch.tensor([[4, 8, 4, 2], [5, 6, 2, 1], [9, 3, 7, 2]])


def hidden_states() -> Tensor:
    return torch.randn(B, T, H, generator=torch.Generator().manual_seed(2), dtype=torch.float64, requires_grad=True)


def random_head(prior: Prior, size: int = H, **options: Any) -> LogLinearHead:
    """In float64, each parameter a value of its own, for an evaluation."""
    torch.manual_seed(1)
    head = LogLinearHead(prior, size, **options).double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_()
    return head.eval()
