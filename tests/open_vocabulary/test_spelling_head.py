"""A head whose open words a network spells, without fairseq: loss, gradient, saving, and what it refuses."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from small_priors import SYMBOLS

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.open_vocabulary.speller_sizes import SpellerSizes
from fairseq_llrnn.prior import OpenOptions, Prior, Recipe
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart, open_words
from fairseq_llrnn.testing import check_class_features

H = 3
SPELLED = open_words(SpellerSizes(embed_dim=4, hidden_size=5, dropout=0.0))


def prior(neural: bool = True) -> Prior:
    counts = np.array([0, 0, 9, 1, *range(9, 1, -1)])
    spelled = OpenOptions("neural" if neural else "characters", types=1)
    return build_prior(SYMBOLS, Recipe(counts=counts, top_words=2, open_vocabulary=spelled))


def test_training_makes_unknown_words_cheaper() -> None:
    torch.manual_seed(1)
    head = LogLinearHead(prior(), H, classes=[SPELLED])
    targets = head.encode(["le zèbre", "zoé le zèbre", "le chat"])
    hidden = torch.randn(3, 4, H)
    optimizer = torch.optim.Adam(head.parameters(), 0.05)
    before = head.loss(hidden, targets, reduction="none").detach()
    assert torch.isfinite(before).all()
    for _ in range(20):
        optimizer.zero_grad()
        head.loss(hidden, targets).backward()
        assert all(p.grad is not None for p in head.parameters())
        optimizer.step()
    after = head.loss(hidden, targets, reduction="none").detach()
    assert (after < before)[0, 1] and (after < before)[1, 0]


def test_spelled_classes_have_features_as_those_of_characters() -> None:
    head = LogLinearHead(prior(), H, classes=[SPELLED]).double().eval()
    targets, hidden = head.encode(["le zèbre", "le chat"]), torch.randn(2, 3, H, dtype=torch.float64)
    phi = check_class_features(head, hidden, targets)["open_words"]
    expected = head.open_words.mixture.rows.dense().double()
    torch.testing.assert_close(phi, expected.expand_as(phi))


def test_a_saved_prior_and_weights_say_the_same(tmp_path: Path) -> None:
    torch.manual_seed(1)
    first = LogLinearHead(prior(), H, classes=[SPELLED]).eval()
    torch.nn.init.normal_(first.open_words.speller.output.weight)
    first.prior.save(tmp_path / "prior")
    read = Prior.load(tmp_path / "prior")
    assert read.find(OpenVocabularyPart).vocabulary.kind == "neural"
    second = LogLinearHead(read, H, classes=[SPELLED]).eval()
    second.load_state_dict(first.state_dict())
    hidden, text = torch.randn(1, 3, H), ["zoé zèbre"]
    with torch.no_grad():
        expected = first.loss(hidden, first.encode(text))
        torch.testing.assert_close(second.loss(hidden, second.encode(text)), expected)
        torch.testing.assert_close(copy.deepcopy(first).loss(hidden, first.encode(text)), expected)


def test_sizes_need_such_a_prior() -> None:
    assert LogLinearHead(prior(), H).open_words.speller is not None
    assert LogLinearHead(prior(neural=False), H).open_words.speller is None
    for other in (prior(neural=False), build_prior(SYMBOLS, Recipe(top_words=2))):
        with pytest.raises(OptionError, match="needs a prior whose open vocabulary is spelled by a network"):
            LogLinearHead(other, H, classes=[SPELLED])
