"""The network reads a word as its own row plus those of its morphemes: x_k + Σ_j m_j (Jernite 2018, eq. 2.7)."""

import torch

from fairseq_llrnn import LogLinearHead
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.head import FeatureInput
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior import Recipe
from fairseq_llrnn.prior.building import build_prior

CUT = {"unhappy": ["un", "happy"], "unhappiness": ["un", "happi", "ness"], "happy": ["happy"], "lala": ["la", "la"]}
SYMBOLS = (*SPECIALS, *CUT, "alone", "12")
MORPHEMES = {
    "unhappy": {"Prefix:un", "Stem:happy"},
    "unhappiness": {"Prefix:un", "Stem:happi", "Ending:ness"},
    "happy": {"Stem:happy"},
    "lala": {"Stem:la", "Ending:la"},
    "alone": {"Stem:alone"},
    "12": set(),
}


def test_the_sum_over_a_words_morphemes() -> None:
    places = ("Prefix", "Stem", "Ending")
    options = Recipe(
        background="uniform", top_words=1, counts=torch.arange(len(SYMBOLS)).numpy(),
        words=LexiconOptions(morphemes=CUT, morpheme_floor=1), input_top_words="all", input_features=places,
    )  # fmt: skip
    prior = build_prior(SYMBOLS, options)
    head = LogLinearHead(prior, 3, embedding=FeatureInput(5)).double()
    names = prior.input.features.index
    weight = head.embedding.weight  # type: ignore[union-attr]
    embedded = head.embed(torch.arange(len(SYMBOLS)))
    expected = []
    for word in SYMBOLS:
        if word in SPECIALS:
            expected.append(weight[names[f"SPECIAL:{word}"]])
            continue
        total = weight[names[f"TOPFORM:{word}"]]  # x_k
        for morpheme in sorted(MORPHEMES[word]):
            total = total + weight[names[morpheme]]  # m_j
        expected.append(total)
    torch.testing.assert_close(embedded, torch.stack(expected), rtol=0, atol=1e-15)
    upstream = torch.randn_like(embedded)
    (own,) = torch.autograd.grad(embedded, weight, upstream, retain_graph=True)
    (slow,) = torch.autograd.grad(torch.stack(expected), weight, upstream)
    torch.testing.assert_close(own, slow)
    assert prior.output.features.num_features < prior.input.features.num_features
